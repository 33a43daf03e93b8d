"""Measuring one geometry: right before fast, verified graphs, interleaved rounds, the original's recheck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import cycle, islice
from typing import Any

from attrs import evolve, frozen

from calibration.assemble import record
from calibration.buffers import Buffers, Call, Given, buffers, tensors
from calibration.errors import CalibrationError
from calibration.gpu import Graph, Node, kernel_nodes
from calibration.inputs import Guarded
from calibration.joining import WHOLE, Want, join
from calibration.planned import Planned
from calibration.records import (
    DRIFTED,
    FLOOR,
    FLOORS,
    PEER,
    POLICY,
    RECIPE,
    TIMED_OUT,
    WRONG,
    Geometry,
    Measurement,
)
from calibration.rotation import judge_regime
from calibration.rounds import Bench, Deadline, Entry, Pick, timed
from features.proof import Proved, candidates, form_of
from features.workload import Workload
from kernels.driver import Kernel
from kernels.errors import KernelError
from kernels.execute import Prepared, prepare
from kernels.guard import Verdict, span
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import original_of
from kernels.reference import Answer, answer
from kernels.source import identity
from kernels.workspace import workspaces


@frozen
class Point:
    """What is measured, and for what: a geometry of a plan in one run of its purpose. `seed` makes its inputs."""

    planned: Planned
    regime: str
    purpose: str
    run: int
    seed: int

    @property
    def workload(self) -> Workload:
        """The workload: contiguous rows."""
        return self.planned.workload


def measure(bench: Bench, point: Point, want: Want = WHOLE, stored: Geometry | None = None) -> Geometry:
    """Measure what is wanted at a point, and once more where its original drifted.

    With a stored record this is a later round of it, which joins; where the original is not as it was, everything is
    measured again.

    Raises
    ------
    PlanError : a regime that is not measured.
    CalibrationError : the original fails, or something else ran than what was to be timed.
    """
    judge_regime(point.regime)
    if stored is not None and not want.whole:
        joined = join(stored, _settled(bench, point, want))
        if joined is not None:
            return joined
    return _settled(bench, point, WHOLE)


def _settled(bench: Bench, point: Point, want: Want) -> Geometry:
    measured = _measure(bench, point, want, attempt=1)
    return _measure(bench, point, want, attempt=2) if measured.status == DRIFTED else measured


def _measure(bench: Bench, point: Point, want: Want, attempt: int) -> Geometry:
    planned = point.planned
    used = buffers(planned, point.regime, bench.l2_bytes, point.seed)
    wants_peers = want.peers and planned.peers
    peers, failed = _peers(bench, planned, used) if wants_peers else ([], [])  # first: what compiles may take minutes
    deadline = Deadline(bench.clock)
    pick = bench.pick(point.workload) if bench.pick is not None and want.pick else None
    only = want.recipes
    if only is not None and pick is not None:
        only |= {pick.selection.decision.recipe}
    entries, ended = _recipes(bench, point.workload, used, deadline, only)
    if pick is not None:
        entries.append(_automatic(bench, pick, used))
    label = f"{point.seed}/{point.purpose}/{point.run}/{planned.key}/{attempt}"
    taken, baseline = timed(bench, (*entries, *peers), label, deadline, len(used.pairs))
    measurements = (*taken, *ended, *failed)
    return record(planned, point.purpose, point.run, point.regime, point.seed, attempt, measurements, baseline)


def _peers(bench: Bench, planned: Planned, used: Buffers) -> tuple[list[Entry], list[Measurement]]:
    """Return the peers to time, and those that could not be compiled."""
    entries: list[Entry] = []
    failed: list[Measurement] = []
    found = {} if bench.peers is None else bench.peers(bench.session, planned, used)
    for name, capture in found.items():
        kind = FLOOR if name in FLOORS else PEER
        if isinstance(capture, str):
            failed.append(Measurement(name, kind, "failed_compile", message=capture))
        else:
            entries.append(Entry(name, kind, capture))
    return entries, failed


def _recipes(
    bench: Bench, workload: Workload, used: Buffers, deadline: Deadline, only: frozenset[str] | None
) -> tuple[list[Entry], list[Measurement]]:
    """Check every proved recipe on the very buffers to be timed; return those to time and those that ended before.

    `only` names the recipes that are wanted besides the original; None is all.
    """
    entries: list[Entry] = []
    ended: list[Measurement] = []
    truth = _truth(bench, workload, used)
    for recipe, proof in candidates(workload):
        if not isinstance(proof, Proved) or not (only is None or recipe.role == ORIGINAL or recipe.id in only):
            continue
        key = (recipe.id, workload.dtype)
        source = identity(recipe, workload.dtype).source
        if key in bench.excluded:
            status, message = bench.excluded[key]
            ended.append(Measurement(recipe.id, RECIPE, status, message=message, source=source))
            continue
        if entries and deadline.passed():
            message = f"{deadline.message} before its check"
            ended.append(Measurement(recipe.id, RECIPE, TIMED_OUT, message=message, source=source))
            continue
        kernel = bench.kernels[key]
        prepared = _alone(bench, kernel, workload)
        try:
            check, bits = _check(bench, recipe, prepared, used, truth)
        except KernelError as error:
            ended.append(Measurement(recipe.id, RECIPE, "failed_launch", message=str(error), source=source))
            continue
        if recipe.role == ORIGINAL:
            truth = evolve(truth, original_bits=bits)
        if check["right"]:
            known = {"source": source, "check": check}
            entries.append(_entry(bench, recipe.id, RECIPE, prepared, used, known))
        else:
            message = f"worst share of the bound {check['worst_share']:.3g}"
            ended.append(Measurement(recipe.id, RECIPE, WRONG, message=message, source=source, check=check))
    if not entries or entries[0].name != candidates(workload)[0][0].id:
        raise CalibrationError(f"the original failed on {workload.rows} x {workload.width} {workload.dtype}: {ended}")
    return entries, ended


def _alone(bench: Bench, kernel: Kernel, workload: Workload) -> Prepared:
    """Return a launch of one kernel by name, through the same guard and fallback as the automatic path."""
    original = bench.kernels[original_of(kernel.recipe.form).id, workload.dtype]
    return prepare(original, kernel, workload.rows, workload.width, bench.sm_count)


def _automatic(bench: Bench, pick: Pick, used: Buffers) -> Entry:
    known = {
        "picked": pick.selection.decision.recipe,
        "selection": pick.selection.id,
        "source": identity(pick.prepared.chosen.recipe, used.first[0].dtype).source,
    }
    return _entry(bench, POLICY, POLICY, pick.prepared, used, known)


def _entry(bench: Bench, name: str, kind: str, prepared: Prepared, used: Buffers, known: Mapping[str, Any]) -> Entry:
    launch = used.turns(lambda *call: _run(bench, prepared, *call))
    return Entry(name, kind, _capture(bench, prepared, used), known, launch)


@frozen(eq=False)
class Truth:
    """What the outputs of a point must be: the input as it was, its FP64 reference, and the original's bits.

    `weights` are as they were, too.
    """

    before: Any
    answer: Answer
    original_bits: Any = None
    weights: tuple[Any, ...] = ()


def _truth(bench: Bench, workload: Workload, used: Buffers) -> Truth:
    x, _, *weights = tensors(used.calls[0])
    operands = used.given[0].values() if used.given else ()
    known = answer(bench.session.cupy, form_of(workload.program), x.values(), operands)
    return Truth(x.body.copy(), known, weights=tuple(vector.body.copy() for vector in weights))


def _check(bench: Bench, recipe: Recipe, prepared: Prepared, used: Buffers, truth: Truth) -> tuple[dict[str, Any], Any]:
    """Check the output in every pair; return the worst check, and the bits in the first pair.

    The inputs are equal, so an output with the bits of the first pair's is as right; any other is compared itself.
    """
    _, y = used.first
    checks: list[dict[str, Any]] = []
    for call in used.calls:
        call[1].poison()
        bench.session.synchronize()
        _run(bench, prepared, *call)
        bench.session.synchronize()
        if not checks or not _equal(bench, call, used.calls[0]):
            checks.append(_judged(bench, recipe, call, truth))
    bits = y.body.copy() if recipe.role == ORIGINAL else y.body
    return max(checks, key=lambda check: (not check["right"], check["worst_share"])), bits


def _equal(bench: Bench, call: Call, other: Call) -> bool:
    """Return whether two calls hold the same, in inputs, output and guards."""
    equal = bench.session.cupy.array_equal
    return all(bool(equal(mine.raw, theirs.raw)) for mine, theirs in zip(tensors(call), tensors(other), strict=True))


def _judged(bench: Bench, recipe: Recipe, call: Call, truth: Truth) -> dict[str, Any]:
    """Compare the full output with the FP64 reference, look at the guards and at the inputs."""
    cupy = bench.session.cupy
    x, y, *weights = tensors(call)
    found = truth.answer.compare(cupy, recipe, x.dtype, y.values())
    equal_share = 1.0
    if truth.original_bits is not None:
        element = y.body.size // max(1, y.rows * y.width)
        kind = cupy.uint16 if element == 2 else cupy.uint32
        equal_share = float(cupy.mean(y.body.view(kind) == truth.original_bits.view(kind)))
    inputs = ((x, truth.before), *zip(weights, truth.weights, strict=True))
    intact = y.guards_survive() and all(
        tensor.guards_survive() and bool(cupy.array_equal(before, tensor.body)) for tensor, before in inputs
    )
    return {
        "right": bool(found.right and intact),
        "worst_share": found.worst_share,
        "bad_finite": found.bad_finite,
        "bad_special": found.bad_special,
        "bit_equal_share": equal_share,
        "guards_and_input_intact": intact,
    }


def _run(bench: Bench, prepared: Prepared, x: Guarded, y: Guarded, *given: Given) -> None:
    spans = [span(t.address, t.rows, t.width, t.width, t.dtype, t.inner) for t in (x, y)]
    verdict = prepared.run(spans[0], spans[1], bench.session.pointer, *(held.operands for held in given))
    if verdict is not Verdict.RECIPE:
        raise CalibrationError(f"a fallback ({verdict.value}) ran where {prepared.chosen.recipe.id} was to be timed")


def _capture(bench: Bench, prepared: Prepared, used: Buffers) -> Callable[[int], Graph]:
    """Return how to capture launches, each graph read back and compared with the recipe and the pointers.

    The driver promises no order of the nodes it gives back; one stream makes them a chain in the order of capture. So
    it is counted: every pair as often as its turn comes, and nothing else.
    """

    def capture(launches: int) -> Graph:
        # A session replays its graphs one after the other, so they may share a workspace; and they must, to compare:
        # where it lies in L2 moves a split scan by up to 6 %.
        workspaces(prepared.chosen.device).release_captures()
        prepared.expect_captures()
        graph = bench.session.capture(used.turns(lambda *call: _run(bench, prepared, *call)), launches)
        shape, function = prepared.chosen_shape, int(prepared.chosen.function.ptr)
        turns = [(x.address, y.address) for x, y in islice(cycle(used.pairs), launches)]
        expected = Counter(Node(function, shape.ctas, shape.threads, addresses) for addresses in turns)
        held = Counter(kernel_nodes(graph))
        if held != expected:
            strange = next(iter(held - expected or expected - held))
            raise CalibrationError(
                f"the graph of {prepared.chosen.recipe.id} holds {held.total()} nodes of {launches} launches on "
                f"{len(used.pairs)} buffer pairs, and {strange} not as often as it should"
            )
        return graph

    return capture
