"""Cold launches take buffer pairs in turn, so that none finds its data in L2; graph and outputs are checked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from attrs import define, evolve, field
from hypothesis import given
from hypothesis import strategies as st

from calibration import measure as measuring
from calibration.buffers import Buffers, buffers
from calibration.errors import CalibrationError
from calibration.gpu import MAX_LAUNCHES, REPLAY_US, Graph, Node, Session
from calibration.peers import rotating
from calibration.plan import Planned
from calibration.rotation import COLD_FOOTPRINT_BYTES, ROTATED_L2, pairs_needed, whole_turns
from calibration.rounds import Bench
from calibration.traffic import footprint_bytes
from calibration.verify import verify
from kernels.guard import Span, Verdict
from kernels.recipes import recipe
from kernels.reference import answer
from tests.calibration.hosted import bench, floats_at
from tests.calibration.swept import Gpu, calibrated
from tests.made import H200

PLANNED = Planned("scan", "float32", 3, 4096, {})
ORIGINAL = "scan.original"


# How far apart two uses of a pair are.


@given(st.integers(COLD_FOOTPRINT_BYTES, 2**34), st.sampled_from([2**22, 40 * 2**20, H200.l2_bytes]))
def test_between_two_uses_of_a_pair_twice_l2_and_more_is_moved(footprint: int, l2_bytes: int) -> None:
    pairs = pairs_needed("cold", footprint, l2_bytes)
    launches = whole_turns(37, pairs)
    used = [launch % pairs for _ in range(3) for launch in range(launches)]  # three replays, one after the other
    last: dict[int, int] = {}
    for place, pair in enumerate(used):
        if pair in last:
            assert (place - last[pair] - 1) * footprint >= ROTATED_L2 * l2_bytes
        last[pair] = place
    assert pairs_needed("hot", footprint, l2_bytes) == 1


def test_the_smallest_cold_footprint_has_a_graph_with_a_whole_turn() -> None:
    assert pairs_needed("cold", COLD_FOOTPRINT_BYTES, H200.l2_bytes) == 121 <= MAX_LAUNCHES
    assert footprint_bytes(PLANNED.program, 3, 4096) == 2 * 3 * 4096 * 4


class Clockwork(Session):
    """A session whose replays take what `launch_us` says of a launch."""

    def __init__(self, launch_us: float) -> None:
        self.launch_us = launch_us
        self.captured: list[int] = []

    def taken(self, launches: int) -> Graph:
        self.captured.append(launches)
        return Graph(launches, lambda: None, None)

    def replay_ns(self, graph: Graph) -> int:
        return round((8 + graph.launches * self.launch_us) * 1000)


@given(st.floats(0.1, 3000), st.integers(1, 250))
def test_every_graph_holds_whole_turns_and_is_long_enough_where_it_may_be(launch_us: float, pairs: int) -> None:
    session = Clockwork(launch_us)
    graph = session.long_graph(session.taken, pairs)
    assert all(launches % pairs == 0 for launches in session.captured)
    assert graph.launches <= max(MAX_LAUNCHES, pairs)
    most = MAX_LAUNCHES // pairs * pairs
    assert session.replay_ns(graph) >= min(REPLAY_US, 8 + most * launch_us) * 1000 - 1


# Launches on the host: a kernel that sums rows where the pointers say, so that buffers, checks and capture are real.


@define
class HostKernel:
    """Stands in for `Prepared`: sums rows on the host; `harm` may spoil what it wrote. Launches are listed."""

    recipe_id: str
    harm: Callable[[int, Span, Span], None] | None = None
    launched: list[tuple[int, int]] = field(factory=list)

    @property
    def chosen_shape(self) -> Any:
        return SimpleNamespace(ctas=3, threads=256)

    @property
    def chosen(self) -> Any:
        return SimpleNamespace(recipe=recipe(self.recipe_id), function=SimpleNamespace(ptr=7), device=0)

    def expect_captures(self) -> None:
        """Its CTAs talk to nobody."""

    def run(self, x: Span, y: Span, stream: int) -> Verdict:
        source, target = (floats_at(s.address, s.rows * s.width).reshape(s.rows, s.width) for s in (x, y))
        target[...] = np.cumsum(source, axis=1, dtype=np.float32)
        self.launched.append((x.address, y.address))
        if self.harm is not None:
            self.harm(len(self.launched), x, y)
        return Verdict.RECIPE


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return bench(monkeypatch)


def used_by(bench: Bench, regime: str = "cold") -> Buffers:
    return buffers(PLANNED, regime, bench.l2_bytes, seed=3)


def test_pairs_hold_equal_inputs_in_places_of_their_own(host: Bench) -> None:
    used = used_by(host)
    assert len(used.pairs) == 1 + -(-ROTATED_L2 * host.l2_bytes // (2 * 3 * 4096 * 4)) == 4
    assert len({t.address for pair in used.pairs for t in pair}) == 8
    assert all(np.array_equal(x.body, used.first[0].body) for x, _ in used.pairs)
    assert len(used_by(host, "hot").pairs) == 1


def judged(bench: Bench, used: Buffers, kernel: HostKernel) -> dict[str, Any]:
    x, _ = used.first
    truth = measuring.Truth(x.body.copy(), answer(np, "prefix.sum", x.values()))
    check, _ = measuring._check(bench, recipe(ORIGINAL), cast(Any, kernel), used, truth)
    return check


def test_the_output_in_every_pair_is_checked(host: Bench) -> None:
    used = used_by(host)
    kernel = HostKernel(ORIGINAL)
    assert judged(host, used, kernel)["right"]
    assert kernel.launched == [(x.address, y.address) for x, y in used.pairs]


def spoil(offset: int, of: str) -> Callable[[int, Span, Span], None]:
    """Change one float of the third pair's launch: of its output, its input, or past the end of the output."""

    def harm(launch: int, x: Span, y: Span) -> None:
        if launch == 3:
            span = x if of == "x" else y
            floats_at(span.address + 4 * offset, 1)[0] = 1e6

    return harm


@pytest.mark.parametrize(("offset", "of"), [(5, "y"), (5, "x"), (3 * 4096, "y"), (-1, "y")])
def test_one_wrong_pair_is_found(host: Bench, offset: int, of: str) -> None:
    check = judged(host, used_by(host), HostKernel(ORIGINAL, spoil(offset, of)))
    assert not check["right"]


def test_another_order_of_sums_in_a_later_pair_is_no_fault(host: Bench) -> None:
    """Outputs need not repeat bit for bit; what differs is compared with the reference itself."""

    def nudge(launch: int, x: Span, y: Span) -> None:
        if launch == 2:
            value = floats_at(y.address + 4 * 4000, 1)
            value[0] = np.nextafter(value[0], np.float32(9))

    assert judged(host, used_by(host), HostKernel(ORIGINAL, nudge))["right"]


def nodes(kernel: HostKernel) -> tuple[Node, ...]:
    return tuple(Node(7, 3, 256, addresses) for addresses in reversed(kernel.launched))


def test_a_graph_is_read_back_pair_by_pair(host: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    used, kernel = used_by(host), HostKernel(ORIGINAL)
    monkeypatch.setattr(measuring, "kernel_nodes", lambda graph: nodes(kernel))
    graph = measuring._capture(host, cast(Any, kernel), used)(8)
    assert graph.launches == 8
    assert kernel.launched == [(x.address, y.address) for x, y in used.pairs] * 2


FAULTS: dict[str, Callable[[tuple[Node, ...]], tuple[Node, ...]]] = {
    "one pair twice and another not at all": lambda held: (held[1], *held[1:]),
    "an output that is another pair's": lambda held: (
        evolve(held[0], arguments=(held[0].arguments[0], held[1].arguments[1])),
        *held[1:],
    ),
    "a launch too few": lambda held: held[1:],
    "a launch too many": lambda held: (held[0], *held),
    "another kernel": lambda held: (evolve(held[0], function=8), *held[1:]),
    "another grid": lambda held: (evolve(held[0], ctas=4), *held[1:]),
    "no rotation": lambda held: (held[0],) * len(held),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_graph_that_holds_anything_else_is_refused(host: Bench, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    used, kernel = used_by(host), HostKernel(ORIGINAL)
    monkeypatch.setattr(measuring, "kernel_nodes", lambda graph: FAULTS[fault](nodes(kernel)))
    with pytest.raises(CalibrationError, match=r"the graph of scan\.original holds .* on 4 buffer pairs"):
        measuring._capture(host, cast(Any, kernel), used)(8)


def test_plain_launches_go_on_with_the_next_pair(host: Bench) -> None:
    """A turn of plain launches is as many as the graph's, so each begins with the first pair again."""
    used, kernel = used_by(host), HostKernel(ORIGINAL)
    entry = measuring._entry(host, ORIGINAL, "recipe", cast(Any, kernel), used, {})
    assert entry.launch is not None
    for _ in range(6):
        entry.launch()
    pairs = [(x.address, y.address) for x, y in used.pairs]
    assert kernel.launched == [*pairs, *pairs[:2]]


def test_a_peer_takes_the_inputs_in_turn_and_holds_as_many_results() -> None:
    """What it returned for an input is alive until that input's turn comes again: no result reuses its memory."""
    seen: deque[str] = deque()

    class Result:
        def __init__(self, source: str) -> None:
            self.source = source
            seen.append(source)

        def __del__(self) -> None:
            seen.append(f"{self.source} dropped")

    call = rotating(Result, ["a", "b", "c"])
    for _ in range(4):
        call()
    assert list(seen) == ["a", "b", "c", "a dropped", "a", "b dropped"]
    seen.clear()
    alone = rotating(Result, ["a"])
    alone()
    assert list(seen) == ["a", "a dropped"], "one input is the hot regime: the result is dropped as a user would"


def test_a_cold_calibration_is_a_cold_profile_of_geometries_of_a_mib_and_more(tmp_path: Any) -> None:
    packet = calibrated(tmp_path, Gpu(), regime="cold", inventory="wide")
    assert verify(packet) == ()
    contents = packet.contents
    assert contents.profile is not None
    assert contents.profile["regime"] == "cold"
    for record in (*contents.cohort, *contents.validation_records):
        assert record.regime == "cold"
        assert footprint_bytes(record.workload.program, record.rows, record.width) >= COLD_FOOTPRINT_BYTES
