"""Measuring one geometry: right before fast, verified graphs, interleaved rounds, the original's recheck."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from calibration.assemble import record
from calibration.errors import CalibrationError, RecordError
from calibration.gpu import Graph, Node, Session, kernel_nodes
from calibration.inputs import Guarded, guarded, uniform
from calibration.plan import Planned
from calibration.records import (
    DRIFTED,
    FLOOR,
    PEER,
    POLICY,
    RECIPE,
    Geometry,
    Measurement,
    timed_status,
)
from features.proof import Proved, candidates
from features.workload import Workload
from kernels.driver import Kernel
from kernels.errors import KernelError
from kernels.execute import Prepared
from kernels.guard import Verdict, span
from kernels.launch import launch_shape
from kernels.recipes import ORIGINAL, Recipe, original_of
from kernels.reference import compare
from kernels.source import identity

WARMUP_REPLAYS = 8
ROUNDS = 25
RECHECK_REPLAYS = 15


class Pick(Protocol):
    """What the real dispatch path prepared for a workload: the selection, and what runs."""

    @property
    def selection(self) -> Any: ...

    @property
    def prepared(self) -> Prepared: ...


# Answers with the callables that a peer library runs on the same buffers, or with why there is none.
Peers = Callable[[Session, Planned, Guarded], Mapping[str, Callable[[int], Graph] | str]]


@frozen(eq=False)
class Bench:
    """What a sweep measures with. `kernels` holds what was loaded, `excluded` why the others were not."""

    session: Session
    kernels: Mapping[tuple[str, str], Kernel]
    excluded: Mapping[tuple[str, str], tuple[str, str]]
    empty: Kernel
    sm_count: int
    throttled: Callable[[], bool]
    pick: Callable[[Workload], Pick] | None = None
    peers: Peers | None = None


@frozen(eq=False)
class _Entry:
    """One candidate that will be timed: how it is captured, and the fields of its measurement known already."""

    name: str
    kind: str
    capture: Callable[[int], Graph]
    known: Mapping[str, Any] = field(factory=dict)


def measure(bench: Bench, planned: Planned, purpose: str, run: int, seed: int) -> Geometry:
    """Measure one geometry, and once more where its original drifted."""
    measured = _measure(bench, planned, purpose, run, seed, attempt=1)
    if measured.status == DRIFTED:
        measured = _measure(bench, planned, purpose, run, seed, attempt=2)
    return measured


def _measure(bench: Bench, planned: Planned, purpose: str, run: int, seed: int, attempt: int) -> Geometry:
    workload = Workload(planned.program, planned.rows, planned.width, planned.width)
    x = uniform(planned.dtype, planned.rows, planned.width, seed)
    y = guarded(planned.dtype, planned.rows, planned.width)
    entries, ended = _recipes(bench, workload, x, y)
    if bench.pick is not None:
        entries.append(_automatic(bench, bench.pick(workload), x, y))
    if bench.peers is not None:
        for name, capture in bench.peers(bench.session, planned, x).items():
            kind = FLOOR if name == "copy" else PEER
            if isinstance(capture, str):
                ended.append(Measurement(name, kind, "failed_compile", message=capture))
            else:
                entries.append(_Entry(name, kind, capture))
    original = entries[0].name
    timed, baseline = _rounds(bench, entries, original, f"{seed}/{purpose}/{run}/{planned.key}/{attempt}")
    return record(planned, purpose, run, "hot", seed, attempt, (*timed, *ended), baseline)


def _recipes(bench: Bench, workload: Workload, x: Guarded, y: Guarded) -> tuple[list[_Entry], list[Measurement]]:
    """Check every proved recipe on the very buffers to be timed; return those to time and those that ended before."""
    entries: list[_Entry] = []
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
            entries.append(_Entry(recipe.id, RECIPE, _capture(bench, prepared, x, y), known))
        else:
            message = f"worst share of the bound {check['worst_share']:.3g}"
            ended.append(Measurement(recipe.id, RECIPE, "wrong", message=message, source=source, check=check))
    if not entries or entries[0].name != candidates(workload)[0][0].id:
        raise CalibrationError(f"the original failed on {workload.rows} x {workload.width} {workload.dtype}: {ended}")
    return entries, ended


def _alone(bench: Bench, kernel: Kernel, workload: Workload) -> Prepared:
    """Return a launch of one kernel by name, through the same guard and fallback as the automatic path."""
    original = bench.kernels[original_of(kernel.recipe.form).id, workload.dtype]
    shapes = [launch_shape(k.recipe, workload.rows, workload.width, bench.sm_count) for k in (original, kernel)]
    return Prepared(original, shapes[0], kernel, shapes[1])


def _automatic(bench: Bench, pick: Pick, x: Guarded, y: Guarded) -> _Entry:
    known = {
        "picked": pick.selection.decision.recipe,
        "selection": pick.selection.id,
        "source": identity(pick.prepared.chosen.recipe, x.dtype).source,
    }
    return _Entry(POLICY, POLICY, _capture(bench, pick.prepared, x, y), known)


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
        graph = bench.session.capture(lambda: _run(bench, prepared, x, y), launches)
        shape, function = prepared.chosen_shape, prepared.chosen.function.ptr
        expected = Node(int(function), shape.ctas, shape.threads, (x.address, y.address))
        nodes = kernel_nodes(graph)
        if len(nodes) != launches or any(node != expected for node in nodes):
            raise CalibrationError(f"the graph of {prepared.chosen.recipe.id} holds {nodes[:1]}, not {expected}")
        return graph

    return capture


def _rounds(
    bench: Bench, entries: Sequence[_Entry], original: str, label: str
) -> tuple[list[Measurement], dict[str, Any]]:
    """Time every entry once a round in seeded random order, then the original again."""
    session = bench.session
    graphs = {e.name: e.capture(session.launches_for(e.capture)) for e in entries}
    length = graphs[original].launches
    graphs["baseline"] = session.capture(lambda: _launch_empty(bench), length)
    samples: dict[str, list[int]] = {name: [] for name in graphs}
    throttled: list[int] = []
    for graph in graphs.values():
        for _ in range(WARMUP_REPLAYS):
            graph.replay()
    session.synchronize()
    order, rng = list(graphs), random.Random(label)  # noqa: S311 - an order that anyone can draw again, nothing secret
    for number in range(ROUNDS):
        rng.shuffle(order)
        for name in order:
            samples[name].append(session.replay_ns(graphs[name]))
        if bench.throttled():
            throttled.append(number)
    recheck = tuple(session.replay_ns(graphs[original]) for _ in range(RECHECK_REPLAYS))
    timed = []
    for entry in entries:
        again = recheck if entry.name == original else None
        timed.append(_timed(entry, graphs[entry.name].launches, tuple(samples[entry.name]), tuple(throttled), again))
    return timed, {"launches": length, "samples_ns": samples["baseline"]}


def _timed(
    entry: _Entry, launches: int, taken: tuple[int, ...], throttled: tuple[int, ...], recheck: tuple[int, ...] | None
) -> Measurement:
    try:
        status = timed_status(taken, launches, throttled)
    except RecordError as error:
        return Measurement(entry.name, entry.kind, "failed_launch", message=str(error), **entry.known)
    return Measurement(
        entry.name,
        entry.kind,
        status,
        launches=launches,
        samples_ns=taken,
        throttled=throttled,
        recheck_ns=recheck,
        **entry.known,
    )


def _launch_empty(bench: Bench) -> None:
    from cupy_backends.cuda.api import driver

    driver.launchKernel(bench.empty.function.ptr, 1, 1, 1, 1, 1, 1, 0, bench.session.pointer, 0, 0)
