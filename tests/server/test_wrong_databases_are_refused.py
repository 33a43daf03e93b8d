"""A database that is absent, foreign, old, newer, damaged or cannot be written keeps the service from starting."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pysqlite3.dbapi2 as sqlite
import pytest

from server import database
from server.errors import ServerError
from server.settings import Settings
from server.tables import APPLICATION_ID, TRIGGERS
from tests.server.service import fresh, serving, settings_for


def refusal(settings: Settings) -> str:
    """Return why the service does not start."""
    with pytest.raises(ServerError) as caught, serving(settings):
        pass
    return str(caught.value)


def execute(settings: Settings, *statements: str) -> None:
    """Change the file behind the service's back."""
    connection = sqlite.connect(settings.database_path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_an_absent_database_names_the_command_and_is_not_created(tmp_path: Path) -> None:
    """Starting never makes or migrates anything."""
    settings = settings_for(tmp_path)
    assert "rowsmith db upgrade" in refusal(settings)
    assert not settings.database_path.exists()


def test_an_empty_database_names_the_command(tmp_path: Path) -> None:
    """An empty file may become ours."""
    settings = settings_for(tmp_path)
    settings.database_path.touch()
    assert "rowsmith db upgrade" in refusal(settings)
    database.upgrade(settings)
    with serving(settings) as client:
        assert client.get("/readyz").status_code == 200


def test_an_older_schema_names_the_command(settings: Settings) -> None:
    """mlflow#1948: a database is never migrated by itself."""
    execute(settings, "DELETE FROM alembic_version")
    assert "rowsmith db upgrade" in refusal(settings)


def test_a_newer_schema_is_left_alone(settings: Settings) -> None:
    """Neither served nor upgraded by an older release."""
    execute(settings, "UPDATE alembic_version SET version_num = '9999'")
    assert "9999" in refusal(settings)
    with pytest.raises(ServerError, match="9999"):
        database.upgrade(settings)


FOREIGN = ["CREATE TABLE accounts (id INTEGER)", "PRAGMA application_id = 7"]


@pytest.mark.parametrize("statement", FOREIGN)
def test_a_foreign_database_is_refused_and_not_touched(tmp_path: Path, statement: str) -> None:
    """Not one byte of somebody else's file changes, its journal mode included."""
    settings = settings_for(tmp_path)
    execute(settings, statement, "VACUUM")
    before = settings.database_path.read_bytes()
    assert "not a rowsmith database" in refusal(settings)
    with pytest.raises(ServerError, match="not a rowsmith database"):
        database.upgrade(settings)
    assert settings.database_path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["rowsmith.db"]


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """Nor is it overwritten."""
    settings = settings_for(tmp_path)
    settings.database_path.write_bytes(b"not a database at all" * 500)
    assert "not a usable SQLite file" in refusal(settings)
    with pytest.raises(ServerError, match="not a usable SQLite file"):
        database.upgrade(settings)


@pytest.mark.parametrize("name", TRIGGERS)
def test_a_database_without_its_triggers_is_refused(settings: Settings, name: str) -> None:
    """Append-only is enforced by the file or the file is not served."""
    execute(settings, f"DROP TRIGGER {name}")
    assert name in refusal(settings)


def test_a_changed_trigger_is_refused(settings: Settings) -> None:
    """A trigger of the right name that does nothing is not one."""
    execute(
        settings,
        "DROP TRIGGER nodes_no_delete",
        "CREATE TRIGGER nodes_no_delete BEFORE DELETE ON nodes WHEN 0 BEGIN SELECT 1; END",
    )
    assert "nodes_no_delete" in refusal(settings)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Take away the right to write: by mode for a user, by a mount that is read-only for root, who ignores modes."""
    if os.getuid() == 0:
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield
        return
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_that_cannot_be_written_is_a_clear_error(small_disk: Path, exists: bool) -> None:
    """Both the upgrade and the service say which folder, and what to do."""
    settings = fresh(small_disk) if exists else settings_for(small_disk)
    with read_only(small_disk):
        with pytest.raises(ServerError) as caught:
            database.upgrade(settings)
        messages = [str(caught.value), refusal(settings)]
    for message in messages:
        assert str(small_disk) in message
        assert "ROWSMITH_DATABASE_URL" in message or "rowsmith db upgrade" in message


def test_wal_is_for_a_sqlite_without_the_race() -> None:
    """Older than 3.51.3, two connections that reset the WAL at once can corrupt the file."""
    assert database.journal_mode((3, 40, 1)) == "DELETE"
    assert database.journal_mode((3, 51, 2)) == "DELETE"
    assert database.journal_mode((3, 51, 3)) == "WAL"
    assert sqlite.sqlite_version_info >= database.WAL_SAFE


def test_without_wal_the_service_works(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slower, and durable all the same; /readyz shows version and mode."""
    monkeypatch.setattr(database, "journal_mode", lambda version: "DELETE")
    with serving(settings) as client:
        assert (
            client.post("/v1/selections", json={"op": "scan", "shape": [3, 4], "dtype": "float32"}).status_code == 201
        )
        found = client.get("/readyz").json()["database"]
    assert (found["journal_mode"], found["sqlite"]) == ("delete", sqlite.sqlite_version)


def test_our_files_say_that_they_are_ours(settings: Settings) -> None:
    """`file` and other tools read the application id."""
    execute(settings, "PRAGMA wal_checkpoint(TRUNCATE)")
    assert settings.database_path.read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big")
