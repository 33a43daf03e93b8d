"""The database itself refuses to change or remove a row, for every connection and every form of the statement."""

import sqlite3
from pathlib import Path

import pysqlite3.dbapi2 as sqlite
import pytest

from server.settings import Settings
from tests.server.service import QUESTION, TestClient, opened, serving

INTO = "INTO nodes (seq, kind, digest, body, stored_at_ms, prev, head)"
LAST_HEAD = "(SELECT head FROM nodes ORDER BY seq DESC LIMIT 1)"
UPSERT = "ON CONFLICT (kind, digest) DO UPDATE SET body = '{}'"
STATEMENTS = [
    "UPDATE nodes SET body = '{}'",
    "UPDATE nodes SET stored_at_ms = 0 WHERE seq = 1",
    "UPDATE OR REPLACE nodes SET seq = 2 WHERE seq = 1",
    "DELETE FROM nodes",
    "DELETE FROM nodes WHERE seq = (SELECT max(seq) FROM nodes)",
    "INSERT OR REPLACE INTO nodes SELECT * FROM nodes WHERE seq = 1",
    f"REPLACE {INTO} SELECT 1 + max(seq), kind, digest, '{{}}', 0, {LAST_HEAD}, head FROM nodes",
    f"INSERT {INTO} SELECT 7, 'x', digest, '{{}}', 0, prev, head FROM nodes WHERE seq = 1",
    f"INSERT {INTO} SELECT 0, kind, digest, '{{}}', 0, prev, head FROM nodes WHERE seq = 1 {UPSERT}",
]


def dump(path: Path) -> list[object]:
    """Return every row."""
    connection = sqlite.connect(path)
    try:
        return list(connection.execute("SELECT * FROM nodes ORDER BY seq").fetchall())
    finally:
        connection.close()


@pytest.mark.parametrize("recursive", ["ON", "OFF"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_changes_a_row(settings: Settings, client: TestClient, statement: str, recursive: str) -> None:
    """INSERT OR REPLACE deletes without a DELETE trigger unless recursive triggers are on; it is refused both ways."""
    client.post("/v1/selections", json=QUESTION)
    before = dump(settings.database_path)
    connection = sqlite.connect(settings.database_path, isolation_level=None)
    connection.execute(f"PRAGMA recursive_triggers = {recursive}")
    with pytest.raises(sqlite.Error, match="append-only"):
        connection.execute(statement)
    connection.close()
    assert dump(settings.database_path) == before


def test_our_own_connections_refuse_too(settings: Settings) -> None:
    """The engine's connections have recursive triggers on, foreign keys on and full synchronisation."""
    with serving(settings) as client:
        client.post("/v1/selections", json=QUESTION)
    with opened(settings) as store, store.engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("recursive_triggers", "foreign_keys", "synchronous", "journal_mode")
        }
    assert pragmas == {"recursive_triggers": 1, "foreign_keys": 1, "synchronous": 2, "journal_mode": "wal"}


def test_another_sqlite_is_refused_too(settings: Settings, client: TestClient) -> None:
    """The triggers are in the file: the system's own SQLite obeys them."""
    client.post("/v1/selections", json=QUESTION)
    connection = sqlite3.connect(settings.database_path, isolation_level=None)
    with pytest.raises(sqlite3.Error, match="append-only"):
        connection.execute("DELETE FROM nodes")
    connection.close()
