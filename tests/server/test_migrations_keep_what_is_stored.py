"""A database of every earlier revision, with rows in it, is brought to the newest and used."""

import re
from pathlib import Path

import pysqlite3.dbapi2 as sqlite
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import create_mock_engine

from server import database
from server.chain import GENESIS, covered, link
from server.node import node_of
from server.settings import Settings
from server.tables import TRIGGERS, metadata
from tests.server.service import QUESTION, opened, serving, settings_for

BODY = '{"number":1}'
REVISIONS = [script.revision for script in ScriptDirectory.from_config(database.migrations()).walk_revisions()]


@pytest.fixture(params=REVISIONS)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """A database of one revision."""
    settings = settings_for(tmp_path)
    database.upgrade(settings, request.param)
    return settings


def test_a_database_of_each_revision_opens_and_is_used(old: Settings) -> None:
    """Upgrading twice is upgrading once."""
    assert database.upgrade(old) == database.upgrade(old) == database.head_revision()
    with serving(old) as client:
        assert client.post("/v1/selections", json=QUESTION).status_code == 201
    with opened(old) as store:
        assert store.first_break() is None


def test_rows_of_the_first_revision_stay_as_they_are(tmp_path: Path) -> None:
    """A row written by plain SQL into revision 0001 is read after every upgrade, and its chain holds."""
    settings = settings_for(tmp_path)
    database.upgrade(settings, "0001")
    node = node_of("plan", {"number": 1})
    head = link(GENESIS, covered(node, 1, 5))
    connection = sqlite.connect(settings.database_path, isolation_level=None)
    connection.execute(
        "INSERT INTO nodes (seq, kind, digest, body, stored_at_ms, prev, head) VALUES (1, 'plan', ?, ?, 5, ?, ?)",
        (node.digest, BODY, GENESIS, head),
    )
    connection.close()
    database.upgrade(settings)
    with opened(settings) as store:
        stored = store.get("plan", node.digest)
        assert stored is not None
        assert (stored.body, stored.stored_at_ms) == (BODY, 5)
        assert store.first_break() is None
        assert store.head().head == head


def test_the_migrated_schema_is_the_one_the_code_works_with(settings: Settings) -> None:
    """Compared by DDL: `alembic check` misses a changed CHECK on SQLite."""
    wanted: set[str] = {squeezed(f"CREATE TRIGGER {name} {body}") for name, body in TRIGGERS.items()}
    engine = create_mock_engine("sqlite://", lambda sql, *_, **__: wanted.add(squeezed(str(sql.compile(engine)))))
    metadata.create_all(engine, checkfirst=False)
    connection = sqlite.connect(settings.database_path)
    rows = connection.execute(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name != 'alembic_version'"
    ).fetchall()
    connection.close()
    assert {squeezed(sql) for (sql,) in rows} == wanted


def squeezed(sql: str) -> str:
    """Return SQL without differences of white space."""
    return re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", sql)).strip()
