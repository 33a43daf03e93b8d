"""Measuring one geometry: right before fast, verified graphs, interleaved rounds, the original's recheck."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibration.assemble import record
from calibration.errors import CalibrationError, PlanError
from calibration.gpu import Graph, Node, kernel_nodes
from calibration.inputs import Guarded, guarded, uniform
from calibration.plan import Planned
from calibration.records import (
    COPY,
    DRIFTED,
    FLOOR,
    PEER,
    POLICY,
    RECIPE,
    TIMED_OUT,
    WRONG,
    Geometry,
    Measurement,
)
from calibration.rounds import Bench, Deadline, Entry, Pick, timed
from features.proof import Proved, candidates
from features.workload import Workload
from kernels.driver import Kernel
from kernels.errors import KernelError
from kernels.execute import Prepared, prepare
from kernels.guard import Verdict, span
from kernels.recipes import ORIGINAL, Recipe, original_of
from kernels.reference import compare
from kernels.source import identity
from kernels.workspace import workspaces

# Buffers are never rotated here: cold timing is a plan that can be drawn, and not yet one that can be measured.
MEASURED_REGIMES = ("hot",)


def judge_regime(regime: str) -> None:
    """Raise `PlanError` for a plan of a regime that nothing here measures."""
    if regime not in MEASURED_REGIMES:
        raise PlanError(f"a plan is {regime}, and only {', '.join(MEASURED_REGIMES)} is measured; draw a plan of that")


def measure(bench: Bench, planned: Planned, regime: str, purpose: str, run: int, seed: int) -> Geometry:
    """Measure one geometry, and once more where its original drifted.

    Raises
    ------
    PlanError : a regime that is not measured.
    CalibrationError : the original fails, or something else ran than what was to be timed.
    """
    judge_regime(regime)
    measured = _measure(bench, planned, regime, purpose, run, seed, attempt=1)
    if measured.status == DRIFTED:
        measured = _measure(bench, planned, regime, purpose, run, seed, attempt=2)
    return measured


def _measure(bench: Bench, planned: Planned, regime: str, purpose: str, run: int, seed: int, attempt: int) -> Geometry:
    workload = Workload(planned.program, planned.rows, planned.width, planned.width)
    x = uniform(planned.dtype, planned.rows, planned.width, seed)
    y = guarded(planned.dtype, planned.rows, planned.width)
    peers, failed = _peers(bench, planned, x)  # before the clock starts: what compiles here may take minutes
    deadline = Deadline(bench.clock)
    entries, ended = _recipes(bench, workload, x, y, deadline)
    if bench.pick is not None:
        entries.append(_automatic(bench, bench.pick(workload), x, y))
    label = f"{seed}/{purpose}/{run}/{planned.key}/{attempt}"
    taken, baseline = timed(bench, (*entries, *peers), label, deadline)
    return record(planned, purpose, run, regime, seed, attempt, (*taken, *ended, *failed), baseline)


def _peers(bench: Bench, planned: Planned, x: Guarded) -> tuple[list[Entry], list[Measurement]]:
    """Return the peers to time, and those that could not be compiled."""
    entries: list[Entry] = []
    failed: list[Measurement] = []
    found = {} if bench.peers is None else bench.peers(bench.session, planned, x)
    for name, capture in found.items():
        kind = FLOOR if name == COPY else PEER
        if isinstance(capture, str):
            failed.append(Measurement(name, kind, "failed_compile", message=capture))
        else:
            entries.append(Entry(name, kind, capture))
    return entries, failed


def _recipes(
    bench: Bench, workload: Workload, x: Guarded, y: Guarded, deadline: Deadline
) -> tuple[list[Entry], list[Measurement]]:
    """Check every proved recipe on the very buffers to be timed; return those to time and those that ended before."""
    entries: list[Entry] = []
    ended: list[Measurement] = []
    reference_bits: Any = None
    for recipe, proof in candidates(workload):
        if not isinstance(proof, Proved):
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
            check, bits = _check(bench, recipe, prepared, x, y, reference_bits)
        except KernelError as error:
            ended.append(Measurement(recipe.id, RECIPE, "failed_launch", message=str(error), source=source))
            continue
        if recipe.role == ORIGINAL:
            reference_bits = bits
        if check["right"]:
            known = {"source": source, "check": check}
            entries.append(_entry(bench, recipe.id, RECIPE, prepared, x, y, known))
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


def _automatic(bench: Bench, pick: Pick, x: Guarded, y: Guarded) -> Entry:
    known = {
        "picked": pick.selection.decision.recipe,
        "selection": pick.selection.id,
        "source": identity(pick.prepared.chosen.recipe, x.dtype).source,
    }
    return _entry(bench, POLICY, POLICY, pick.prepared, x, y, known)


def _entry(
    bench: Bench, name: str, kind: str, prepared: Prepared, x: Guarded, y: Guarded, known: Mapping[str, Any]
) -> Entry:
    return Entry(name, kind, _capture(bench, prepared, x, y), known, lambda: _run(bench, prepared, x, y))


def _check(
    bench: Bench, recipe: Recipe, prepared: Prepared, x: Guarded, y: Guarded, original_bits: Any
) -> tuple[dict[str, Any], Any]:
    """Compare the full output with the FP64 reference, look at the guards and at the input."""
    cupy = bench.session.cupy
    before = x.body.copy()
    y.poison()
    bench.session.synchronize()
    _run(bench, prepared, x, y)
    bench.session.synchronize()
    bits = y.body.copy() if recipe.role == ORIGINAL else y.body
    form = recipe.form
    found = compare(cupy, form, recipe, x.dtype, x.values(), y.values())
    equal_share = 1.0
    if original_bits is not None:
        element = y.body.size // max(1, x.rows * x.width)
        kind = cupy.uint16 if element == 2 else cupy.uint32
        equal_share = float(cupy.mean(bits.view(kind) == original_bits.view(kind)))
    intact = y.guards_survive() and x.guards_survive() and bool(cupy.array_equal(before, x.body))
    check = {
        "right": bool(found.right and intact),
        "worst_share": found.worst_share,
        "bad_finite": found.bad_finite,
        "bad_special": found.bad_special,
        "bit_equal_share": equal_share,
        "guards_and_input_intact": intact,
    }
    return check, bits


def _run(bench: Bench, prepared: Prepared, x: Guarded, y: Guarded) -> None:
    spans = [span(t.address, t.rows, t.width, t.width, t.dtype) for t in (x, y)]
    verdict = prepared.run(spans[0], spans[1], bench.session.pointer)
    if verdict is not Verdict.RECIPE:
        raise CalibrationError(f"a fallback ({verdict.value}) ran where {prepared.chosen.recipe.id} was to be timed")


def _capture(bench: Bench, prepared: Prepared, x: Guarded, y: Guarded) -> Callable[[int], Graph]:
    """Return how to capture launches, each graph read back and compared with the recipe and the pointers."""

    def capture(launches: int) -> Graph:
        # A session replays its graphs one after the other, so they may share a workspace; and they must, to compare:
        # where it lies in L2 moves a split scan by up to 6 %.
        workspaces(prepared.chosen.device).release_captures()
        prepared.expect_captures()
        graph = bench.session.capture(lambda: _run(bench, prepared, x, y), launches)
        shape, function = prepared.chosen_shape, prepared.chosen.function.ptr
        expected = Node(int(function), shape.ctas, shape.threads, (x.address, y.address))
        nodes = kernel_nodes(graph)
        if len(nodes) != launches or any(node != expected for node in nodes):
            raise CalibrationError(f"the graph of {prepared.chosen.recipe.id} holds {nodes[:1]}, not {expected}")
        return graph

    return capture
