"""One writer, many submitters: groups are atomic a submission, and no failure ends the thread."""

from typing import Any

import pytest

from server import writer
from server.errors import Problem
from server.node import Node, node_of
from server.settings import Settings
from tests.server.service import opened


def plan(number: int, **facets: Any) -> Node:
    """Return a node of its own."""
    return node_of("plan", {"number": number}, **facets)


BAD = {
    "a digest that is too short": Node("plan", "abc", "{}"),
    "a facet that no column holds": plan(99, rows=object()),
    "a number that SQLite cannot hold": plan(98, rows=2**70),
    "a body that cannot be encoded": Node("plan", "2" * 64, '"\ud800"'),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_one_bad_row_hurts_no_other(settings: Settings, bad: Node) -> None:
    """Its own submission fails, whole; those in the same transaction are stored."""
    with opened(settings) as store:
        waiting = [store.writer.submit_from_thread((plan(number),)) for number in range(5)]
        refused = store.writer.submit_from_thread((plan(50), bad))
        waiting += [store.writer.submit_from_thread((plan(number),)) for number in range(5, 10)]
        assert all(future.result(10)[0].new for future in waiting)
        with pytest.raises(Problem):
            refused.result(10)
        assert store.get("plan", plan(50).digest) is None
        assert store.add([plan(50)])[0].new
        assert store.first_break() is None
        assert store.head().count == 11


def test_the_same_new_row_twice_in_a_group_is_stored_once(settings: Settings) -> None:
    """A unique constraint would fail the whole group and could end the writer."""
    with opened(settings) as store:
        futures = [store.writer.submit_from_thread((plan(1), plan(2))) for _ in range(100)]
        stored = [future.result(10) for future in futures]
        assert sum(node.new for batch in stored for node in batch) == 2
        assert {batch[0].seq for batch in stored} == {1}
        assert store.head().count == 2


def test_a_failing_statement_is_told_and_survived(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the driver says."""
    with opened(settings) as store:
        with monkeypatch.context() as patch:
            patch.setattr(writer, "_KNOWN", "SELECT nonsense")
            with pytest.raises(Problem, match="nonsense"):
                store.add([plan(1)])
        assert store.writer.alive
        assert store.add([plan(1)])[0].new


def test_two_processes_share_a_database(settings: Settings) -> None:
    """Each begins immediately and reads the head within its transaction, so the chain has no fork."""
    with opened(settings) as one, opened(settings) as other:
        futures = [
            store.writer.submit_from_thread((plan(number), plan(number + 1)))
            for number in range(200)
            for store in (one, other)
        ]
        for future in futures:
            future.result(30)
        assert one.first_break() is None
        assert one.head() == other.head()
        assert one.head().count == 201


def test_what_waits_is_stored_before_the_end(settings: Settings) -> None:
    """Stopping is not losing."""
    with opened(settings) as store:
        futures = [store.writer.submit_from_thread((plan(number),)) for number in range(500)]
    assert all(future.done() for future in futures)
    with opened(settings) as store:
        assert store.head().count == 500
        store.writer.stop()
        with pytest.raises(Problem, match="restart"):
            store.writer.submit_from_thread((plan(1),))
