"""Timing the candidates of one geometry: interleaved rounds of replays, the original's recheck, plain launches."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from calibration.buffers import Buffers
from calibration.errors import RecordError
from calibration.gpu import Graph, Session
from calibration.plan import Planned
from calibration.records import PLAIN, POLICY, TIMED_OUT, Measurement, plain_name, timed_status
from features.workload import Workload
from kernels.driver import Kernel
from kernels.execute import Prepared

WARMUP_REPLAYS = 8
ROUNDS = 25
RECHECK_REPLAYS = 15
PLAIN_ROUNDS = 15
# The rounds of the slowest geometry of the H200 cohort are 0.2 s of replays; what takes a minute does not end.
POINT_LIMIT_S = 60.0
_BASELINE = "baseline"


class Pick(Protocol):
    """What the real dispatch path prepared for a workload: the selection, and what runs."""

    @property
    def selection(self) -> Any: ...

    @property
    def prepared(self) -> Prepared: ...


# Answers with the callables that a peer library runs on the same buffers, or with why there is none.
Peers = Callable[[Session, Planned, Buffers], Mapping[str, Callable[[int], Graph] | str]]


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
    l2_bytes: int = 0
    clock: Callable[[], float] = time.monotonic


@frozen(eq=False)
class Entry:
    """One candidate to time: how it is captured and launched, and the fields of its measurement known already."""

    name: str
    kind: str
    capture: Callable[[int], Graph]
    known: Mapping[str, Any] = field(factory=dict)
    launch: Callable[[], None] | None = None


class Deadline:
    """The limit of one point, from now on. It is looked at between candidates and between rounds."""

    message = f"the point's limit of {POINT_LIMIT_S:.0f} s passed"

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._end_s = clock() + POINT_LIMIT_S

    def passed(self) -> bool:
        """Tell whether the limit is over."""
        return self._clock() > self._end_s


@frozen(eq=False)
class _Taken:
    """The samples of several candidates that took turns; `ended` tells whether all rounds were run."""

    samples_ns: Mapping[str, Sequence[int]]
    throttled: tuple[int, ...]
    ended: bool


def timed(
    bench: Bench, entries: Sequence[Entry], label: str, deadline: Deadline, pairs: int = 1
) -> tuple[list[Measurement], dict[str, Any] | None]:
    """Time every entry, the original first among them, and return the measurements and the empty-kernel baseline.

    A round replays each graph once, in an order that `label` seeds. Then the original is replayed again; where there is
    an automatic pick, it and the same recipe by name are launched plainly, in rounds of their own. What is not finished
    when the deadline passes ends as `timed_out`. Graphs hold whole turns of the buffer `pairs`.
    """
    session, original = bench.session, entries[0].name
    graphs = _graphs(bench, entries, deadline, pairs)
    if graphs is None:
        return [_measurement(entry, 0, (), (), deadline) for entry in entries], None
    for graph in graphs.values():
        for _ in range(WARMUP_REPLAYS):
            graph.replay()
    session.synchronize()
    rng = random.Random(label)  # noqa: S311 - an order that anyone can draw again, nothing secret
    turns = {name: (lambda graph=graph: session.replay_ns(graph)) for name, graph in graphs.items()}
    taken = _rounds(bench, turns, ROUNDS, rng, deadline)
    recheck = tuple(session.replay_ns(graphs[original]) for _ in range(RECHECK_REPLAYS)) if taken.ended else None
    found = []
    for entry in entries:
        again = {"recheck_ns": recheck} if entry.name == original and recheck is not None else {}
        of_entry = taken.samples_ns[entry.name]
        late = None if taken.ended else deadline
        found.append(_measurement(entry, graphs[entry.name].launches, of_entry, taken.throttled, late, **again))
    found += _plain(bench, entries, graphs, rng, deadline)
    baseline = {"launches": graphs[_BASELINE].launches, "samples_ns": list(taken.samples_ns[_BASELINE])}
    return found, baseline if baseline["samples_ns"] else None


def _graphs(bench: Bench, entries: Iterable[Entry], deadline: Deadline, pairs: int) -> dict[str, Graph] | None:
    """Capture every entry, and an empty kernel as often as the original; None where the deadline passes meanwhile."""
    graphs: dict[str, Graph] = {}
    for entry in entries:
        if deadline.passed():
            return None
        graphs[entry.name] = bench.session.long_graph(entry.capture, pairs)
    length = next(iter(graphs.values())).launches
    return {**graphs, _BASELINE: bench.session.capture(lambda: _launch_empty(bench), length)}


def _rounds(
    bench: Bench, turns: Mapping[str, Callable[[], int]], rounds: int, rng: random.Random, deadline: Deadline
) -> _Taken:
    """Give every candidate one turn a round, in random order, until all rounds are run or the deadline has passed."""
    samples: dict[str, list[int]] = {name: [] for name in turns}
    throttled: list[int] = []
    order = list(turns)
    for number in range(rounds):
        if deadline.passed():
            return _Taken(samples, tuple(throttled), ended=False)
        rng.shuffle(order)
        for name in order:
            samples[name].append(turns[name]())
        if bench.throttled():
            throttled.append(number)
    return _Taken(samples, tuple(throttled), ended=True)


def _plain(
    bench: Bench, entries: Iterable[Entry], graphs: Mapping[str, Graph], rng: random.Random, deadline: Deadline
) -> list[Measurement]:
    """Launch the automatic pick and the same recipe by name without a graph, as many times a turn as its graph does."""
    known = {entry.name: entry for entry in entries}
    automatic = known.get(POLICY)
    forced = None if automatic is None else known.get(automatic.known["picked"])
    if automatic is None or forced is None:
        return []
    lead, turns = graphs[forced.name], {}
    for entry in (automatic, forced):
        assert entry.launch is not None
        turns[entry.name] = _plain_turn(bench.session, entry.launch, lead)
    taken = _rounds(bench, turns, PLAIN_ROUNDS, rng, deadline)
    found = []
    for entry in (automatic, forced):
        plain = Entry(plain_name(entry.name), PLAIN, entry.capture, {"source": entry.known["source"]})
        late = None if taken.ended else deadline
        found.append(_measurement(plain, lead.launches, taken.samples_ns[entry.name], taken.throttled, late))
    return found


def _plain_turn(session: Session, launch: Callable[[], None], lead: Graph) -> Callable[[], int]:
    replays = session.lead_replays(launch, lead.launches)
    return lambda: session.plain_ns(launch, lead.launches, lead, replays)


def _measurement(
    entry: Entry,
    launches: int,
    samples_ns: Sequence[int],
    throttled: tuple[int, ...],
    late: Deadline | None,
    **further: Any,
) -> Measurement:
    """Return what was taken of an entry; `late` is the deadline that cut it short."""
    facts = {"launches": launches, "samples_ns": tuple(samples_ns), "throttled": throttled, **entry.known, **further}
    if late is not None:
        message = f"{late.message} after {len(samples_ns)} rounds"
        return Measurement(entry.name, entry.kind, TIMED_OUT, message=message, **facts)
    try:
        status = timed_status(tuple(samples_ns), launches, throttled)
    except RecordError as error:
        return Measurement(entry.name, entry.kind, "failed_launch", message=str(error), **entry.known)
    return Measurement(entry.name, entry.kind, status, **facts)


def _launch_empty(bench: Bench) -> None:
    from cupy_backends.cuda.api import driver

    driver.launchKernel(bench.empty.function.ptr, 1, 1, 1, 1, 1, 1, 0, bench.session.pointer, 0, 0)
