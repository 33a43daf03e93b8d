"""A graph is captured as long as a replay has to be, whatever a replay costs besides its launches."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.gpu import MAX_LAUNCHES, REPLAY_US, Graph, Session


class Clockwork(Session):
    """A session without a GPU: a replay takes what `cost_us` says of its launches, and captures are counted."""

    def __init__(self, cost_us: Callable[[int], float]) -> None:
        self.cost_us = cost_us
        self.captured: list[int] = []

    def taken(self, launches: int) -> Graph:
        self.captured.append(launches)
        return Graph(launches, lambda: None, None)

    def replay_ns(self, graph: Graph) -> int:
        return round(self.cost_us(graph.launches) * 1000)

    def length(self) -> int:
        return self.long_graph(self.taken).launches


@given(st.floats(0, 60), st.floats(REPLAY_US / MAX_LAUNCHES, 2000))
def test_a_replay_is_as_long_as_promised_whatever_its_fixed_cost(fixed_us: float, launch_us: float) -> None:
    session = Clockwork(lambda launches: fixed_us + launches * launch_us)
    length = session.length()
    assert session.cost_us(length) >= REPLAY_US
    assert length * launch_us <= 1.1 * REPLAY_US + 2 * max(launch_us, fixed_us), "not longer than it has to be"


def test_the_fixed_cost_is_not_taken_for_launches() -> None:
    """A copy of 1.1 us in graphs of 8 us besides: ten launches look like 1.9 us each, and 106 would be 125 us."""
    session = Clockwork(lambda launches: 8 + 1.1 * launches)
    assert session.length() == 182
    assert session.captured == [10, 40, 182]


def test_a_kernel_that_alone_takes_long_enough_is_launched_once_and_tried_once() -> None:
    session = Clockwork(lambda launches: 8 + 500 * launches)
    assert session.length() == 1
    assert session.captured == [10, 1]


def test_a_replay_that_turns_out_too_short_is_lengthened_once() -> None:
    """Launches that overlap in longer graphs only are dearer in the trial than in the graph that is timed."""
    session = Clockwork(lambda launches: 8 + (2.0 if launches <= 40 else 1.5) * launches)
    assert session.length() == 140
    assert session.captured == [10, 40, 100, 140]
    assert session.cost_us(140) >= REPLAY_US


@pytest.mark.parametrize("launch_us", [0.0, -0.5, 1e-9, 0.3])
def test_no_more_launches_than_a_graph_may_hold(launch_us: float) -> None:
    """Noise may make the longer trial the faster one."""
    session = Clockwork(lambda launches: max(0.001, 20 + launch_us * launches))
    assert session.length() == MAX_LAUNCHES
