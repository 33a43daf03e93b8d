"""Candidates take turns round by round, a point ends at its limit, and plain launches are timed beside graphs."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import evolve

from calibration.assemble import record
from calibration.errors import PlanError
from calibration.gpu import Graph, Session
from calibration.measure import Point, measure
from calibration.records import Geometry, Measurement, geometry_from_json, inconsistencies
from calibration.rounds import PLAIN_ROUNDS, POINT_LIMIT_S, RECHECK_REPLAYS, ROUNDS, Bench, Deadline, Entry, timed
from tests.calibration.planted import CHECK, planted_plan

PLANNED = planted_plan().validation[0]
PICKED = "scan.cub128"


class Clockwork(Session):
    """A session without a GPU: a launch takes 2 us, a replay or a batch moves the clock by `second_s` seconds."""

    def __init__(self, second_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.second_s = second_s
        self.turns: list[str] = []

    def synchronize(self) -> None:
        pass

    def capture(self, enqueue: Callable[[], None], launches: int) -> Graph:
        return self.graph("baseline", launches)

    def graph(self, name: str, launches: int) -> Graph:
        return Graph(launches, lambda: None, name)

    def replay_ns(self, graph: Graph) -> int:
        self.turns.append(graph.handle)
        self.now_s += self.second_s
        return 2000 * graph.launches + random.Random(len(self.turns)).randrange(20)

    def lead_replays(self, enqueue: Callable[[], None], launches: int) -> int:
        return 1

    def plain_ns(self, enqueue: Callable[[], None], launches: int, lead: Graph, replays: int) -> int:
        enqueue()
        self.now_s += self.second_s
        return 2100 * launches + random.Random(len(self.turns)).randrange(20)


def entries(session: Clockwork, picked: str = PICKED) -> list[Entry]:
    def entry(name: str, kind: str, **known: Any) -> Entry:
        launch = lambda: session.turns.append(f"{name} plainly")  # noqa: E731
        return Entry(name, kind, lambda launches: session.graph(name, launches), {"source": "0" * 64, **known}, launch)

    return [
        entry("scan.original", "recipe", check=CHECK),
        entry(PICKED, "recipe", check=CHECK),
        entry("policy", "policy", picked=picked, selection="1" * 64),
        Entry("copy", "floor", lambda launches: session.graph("copy", launches)),
    ]


def bench(session: Clockwork) -> Bench:
    empty = cast(Any, SimpleNamespace())
    return Bench(session, {}, {}, empty, 132, throttled=lambda: False, clock=lambda: session.now_s)


def rounds(session: Clockwork, *, picked: str = PICKED) -> Geometry:
    """Return the record of the candidates, read back as a reader of the packet does."""
    at = bench(session)
    taken, baseline = timed(at, entries(session, picked), "seed", Deadline(at.clock))
    return geometry_from_json(record(PLANNED, "validation", 1, "hot", 7, 1, taken, baseline).to_json())


def test_every_candidate_has_one_turn_a_round_and_the_original_is_timed_again() -> None:
    session = Clockwork()
    made = rounds(session)
    assert made.status == "measured"
    assert inconsistencies(made) == ()
    graphs = [turn for turn in session.turns if not turn.endswith("plainly")][-ROUNDS * 5 - RECHECK_REPLAYS :]
    for number in range(ROUNDS):
        turn = graphs[5 * number : 5 * number + 5]
        assert sorted(turn) == ["baseline", "copy", "policy", PICKED, "scan.original"]
    assert len({tuple(graphs[5 * n : 5 * n + 5]) for n in range(ROUNDS)}) > ROUNDS // 2
    assert graphs[-RECHECK_REPLAYS:] == ["scan.original"] * RECHECK_REPLAYS
    assert [m.name for m in made.measurements if m.recheck_ns] == ["scan.original"]


def test_pick_and_the_same_recipe_are_launched_plainly_and_are_no_recipes() -> None:
    session = Clockwork()
    made = rounds(session)
    plain = [m for m in made.measurements if m.kind == "plain"]
    assert {m.name for m in plain} == {"policy.plain", f"{PICKED}.plain"}
    assert {len(m.samples_ns) for m in plain} == {PLAIN_ROUNDS}
    assert {m.launches for m in plain} == {made.by_name[PICKED].launches}
    assert {m.name for m in made.recipes()} == {"scan.original", PICKED}
    plainly = [turn for turn in session.turns if turn.endswith("plainly")]
    for number in range(PLAIN_ROUNDS):
        assert sorted(plainly[2 * number : 2 * number + 2]) == ["policy plainly", f"{PICKED} plainly"]


def test_a_pick_that_was_not_timed_by_name_has_nothing_to_agree_with() -> None:
    assert not [m for m in rounds(Clockwork(), picked="scan.cub256").measurements if m.kind == "plain"]


@pytest.mark.parametrize(("second_s", "whole"), [(1.0, 3), (0.45, 23), (100.0, 0)])
def test_a_point_that_passes_its_limit_ends_as_timed_out_and_keeps_its_samples(second_s: float, whole: int) -> None:
    """Looked at between candidates and rounds: 16 to 20 replays go to finding the lengths, 5 a round follow."""
    made = rounds(Clockwork(second_s))
    assert made.status == "timed_out"
    assert made.drift is None
    assert {m.status for m in made.measurements} == {"timed_out"}
    (count,) = {len(m.samples_ns) for m in made.measurements if m.kind != "plain"}
    assert abs(count - whole) <= 6
    assert (count > 0) == (whole > 0) == (made.baseline is not None)
    for m in made.measurements:
        assert m.message == f"the point's limit of {POINT_LIMIT_S:.0f} s passed after {len(m.samples_ns)} rounds"
    assert made.recipes() == ()
    assert inconsistencies(made) == ()


def test_plain_launches_that_pass_the_limit_leave_the_graphs_as_they_were_measured() -> None:
    session = Clockwork()
    at = bench(session)
    plainly = 0

    def slowly() -> None:
        nonlocal plainly
        plainly += 1
        session.now_s += 10.0

    slow = [evolve(entry, launch=slowly) for entry in entries(session)]
    found = {m.name: m for m in timed(at, slow, "seed", Deadline(at.clock))[0]}
    assert found["policy"].status == found[PICKED].status == "measured"
    assert found["policy.plain"].status == found[f"{PICKED}.plain"].status == "timed_out"
    assert len(found["policy.plain"].samples_ns) == plainly // 2 == 4


def test_a_regime_that_nobody_knows_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(PlanError, match="regime 'warm' is not measured; use hot or cold"):
        measure(bench(Clockwork()), Point(PLANNED, "warm", "training", 0, 7))


def test_a_measurement_knows_what_it_is() -> None:
    """What was cut short before its first round has no samples and says why."""
    assert Measurement("copy", "floor", "timed_out", message="late").samples_ns == ()
