"""Whoever has dropped the triggers and edited the file is found by the chain, or by an earlier head."""

from collections.abc import Sequence

import pysqlite3.dbapi2 as sqlite
import pytest

from server.chain import GENESIS, Head, covered, link
from server.node import Node, node_of
from server.settings import Settings
from tests.server.service import opened


def fill(settings: Settings, count: int = 5) -> Head:
    """Store some nodes and return the head."""
    with opened(settings) as store:
        store.add([node_of("plan", {"number": number}, rows=number) for number in range(count)])
        assert store.first_break() is None
        return store.head()


def tamper(settings: Settings, statements: Sequence[str]) -> None:
    """Edit the file as its owner can: without the triggers, which are put back afterwards."""
    connection = sqlite.connect(settings.database_path, isolation_level=None)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()


EDITS = [
    ("UPDATE nodes SET body = '{\"number\":9}' WHERE seq = 3", 3),
    ("UPDATE nodes SET rows = 9 WHERE seq = 2", 2),
    ("UPDATE nodes SET stored_at_ms = 1 WHERE seq = 4", 4),
    ("UPDATE nodes SET kind = 'fit' WHERE seq = 5", 5),
    ("UPDATE nodes SET observed = '{}' WHERE seq = 1", 1),
    ("UPDATE nodes SET recipe = '' WHERE seq = 1", 1),
    ("DELETE FROM nodes WHERE seq = 2", 2),
    ("DELETE FROM nodes WHERE seq = 1", 1),
    ("UPDATE nodes SET head = prev WHERE seq = 5", 5),
]


@pytest.mark.parametrize(("edit", "seq"), EDITS)
def test_an_edit_breaks_the_chain_at_its_row(settings: Settings, edit: str, seq: int) -> None:
    """Every column is covered, an absent value and an empty one included."""
    fill(settings)
    tamper(settings, [edit])
    with opened(settings) as store:
        broken = store.first_break()
    assert broken is not None
    assert broken.seq == seq


def test_a_deletion_at_the_end_is_found_with_an_earlier_head(settings: Settings) -> None:
    """A shorter chain is whole in itself; the kept count and head tell."""
    kept = fill(settings)
    tamper(settings, ["DELETE FROM nodes WHERE seq = 5"])
    with opened(settings) as store:
        assert store.first_break() is None
        broken = store.first_break(kept)
    assert broken is not None
    assert broken.seq == 5


def test_a_rewritten_chain_is_found_with_an_earlier_head(settings: Settings) -> None:
    """A chain computed again from an edited row is whole in itself; the kept head tells."""
    kept = fill(settings, 1)
    forged = Node("plan", node_of("plan", {"number": 7}).digest, '{"number":7}', rows=7)
    head = link(GENESIS, covered(forged, 1, 5))
    tamper(
        settings,
        [f"UPDATE nodes SET digest='{forged.digest}', body='{forged.body}', rows=7, stored_at_ms=5, head='{head}'"],
    )
    with opened(settings) as store:
        assert store.first_break() is None
        broken = store.first_break(kept)
    assert broken is not None
    assert (broken.seq, broken.what) == (1, "kept head")


def test_the_service_publishes_count_and_head(settings: Settings) -> None:
    """The chain's own values are what a reader can keep."""
    head = fill(settings)
    assert head.count == 5
    with opened(settings) as store:
        last = store.link_at(5)
    assert last is not None
    assert last["head"] == head.head
