"""The engine on SQLite, how each connection is set up, and what must hold of a database before it is served."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2 as sqlite
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from attrs import frozen
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from server.errors import ServerError
from server.settings import Settings
from server.tables import APPLICATION_ID, TRIGGERS

# Before this version two connections that reset the WAL at once can corrupt the file (sqlite.org/wal.html).
WAL_SAFE = (3, 51, 3)
UPGRADE = "run `rowsmith db upgrade`"


SQLITE_VERSION: str = sqlite.sqlite_version


@frozen
class DatabaseFacts:
    """What /readyz shows of the database."""

    path: str
    sqlite_version: str
    journal_mode: str
    revision: str
    free_bytes: int


def journal_mode(version: tuple[int, ...]) -> str:
    """Return WAL, or DELETE (slower, without the race) where SQLite is older than `WAL_SAFE`."""
    return "WAL" if version >= WAL_SAFE else "DELETE"


def make_engine(settings: Settings) -> Engine:
    """Return an engine whose connections are durable, enforce foreign keys and begin transactions when told to."""
    engine = create_engine(
        settings.database_url,
        module=sqlite,
        connect_args={"timeout": settings.busy_timeout_ms / 1000, "isolation_level": None},
    )
    mode = journal_mode(sqlite.sqlite_version_info)

    @event.listens_for(engine, "connect")
    def _set_up(connection: Any, _record: Any) -> None:
        for pragma in (
            f"journal_mode={mode}",
            "synchronous=FULL",
            "foreign_keys=ON",
            "recursive_triggers=ON",
            "trusted_schema=OFF",
            "journal_size_limit=67108864",
            "wal_autocheckpoint=4000",  # 16 MB: the usual 4 MB checkpoints every 500 selections, for 10 ms each
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def migrations() -> Config:
    """Return the Alembic configuration of the migrations that ship with this release."""
    import migrations as package

    config = Config()
    config.set_main_option("script_location", str(Path(package.__path__[0])).replace("%", "%%"))
    return config


def head_revision() -> str:
    """Return the revision this release works with."""
    head = ScriptDirectory.from_config(migrations()).get_current_head()
    assert head is not None
    return head


def upgrade(settings: Settings, revision: str = "head") -> str:
    """Create the database or bring it to `revision`; return the revision it then has.

    Raises
    ------
    ServerError : the file is foreign, newer, or cannot be written.
    """
    path = settings.database_path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ServerError(_cannot_write(path, error)) from error
    engine = make_engine(settings)
    try:
        _refuse_foreign(path)
        with engine.execution_options(writes=True).begin() as connection:
            _refuse_newer(connection, path)
            config = migrations()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
        with engine.connect() as connection:
            return str(MigrationContext.configure(connection).get_current_revision())
    except (SQLAlchemyError, sqlite.Error) as error:
        raise ServerError(_explain(path, error)) from error
    finally:
        engine.dispose()


def check(engine: Engine, settings: Settings) -> None:
    """Raise `ServerError` unless the database has exactly this release's schema and can be written."""
    path = settings.database_path
    if not path.exists():
        raise ServerError(f"there is no database at {path}; {UPGRADE}")
    try:
        _refuse_foreign(path)
        with engine.connect() as connection:
            _refuse_newer(connection, path)
            revision = MigrationContext.configure(connection).get_current_revision()
            if revision != head_revision():
                raise ServerError(f"{path} has schema {revision}, and this release needs {head_revision()}; {UPGRADE}")
            _refuse_without_triggers(connection, path)
        with engine.execution_options(writes=True).begin() as connection:
            # Writes the file header's page without changing it, so that a read-only file is found now.
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    except (SQLAlchemyError, sqlite.Error) as error:
        raise ServerError(_explain(path, error)) from error


def facts(engine: Engine, settings: Settings) -> DatabaseFacts:
    """Return what /readyz shows; raises SQLAlchemy's errors."""
    with engine.connect() as connection:
        mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
        version = connection.exec_driver_sql("SELECT sqlite_version()").scalar_one()
        revision = MigrationContext.configure(connection).get_current_revision()
    path = settings.database_path
    return DatabaseFacts(str(path), version, mode, str(revision), shutil.disk_usage(path.parent).free)


def _refuse_foreign(path: Path) -> None:
    """Refuse a file that is not ours, before a connection of ours could change its journal mode."""
    if not path.exists() or not path.stat().st_size:
        return
    try:
        connection = sqlite.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            tables = sorted(name for (name,) in rows)
        finally:
            connection.close()
    except sqlite.Error as error:
        raise ServerError(_explain(path, error)) from error
    if application_id != APPLICATION_ID and (tables or application_id):
        message = f"{path} is not a rowsmith database (its tables: {', '.join(tables[:5]) or 'none'})"
        raise ServerError(f"{message}; set ROWSMITH_DATABASE_URL to another file and {UPGRADE}")


def _refuse_newer(connection: Connection, path: Path) -> None:
    revision = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in ScriptDirectory.from_config(migrations()).walk_revisions()}
    if revision is not None and revision not in known:
        raise ServerError(f"{path} has schema {revision}, which this release does not know; use the newer release")


def _refuse_without_triggers(connection: Connection, path: Path) -> None:
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
    found = {name: _squeezed(sql) for name, sql in rows}
    for name, body in TRIGGERS.items():
        if found.get(name) != _squeezed(f"CREATE TRIGGER {name} {body}"):
            message = f"{path}: trigger {name}, which keeps rows append-only, is missing or changed"
            raise ServerError(f"{message}; restore the database from a backup")


def _squeezed(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).strip()


def _cannot_write(path: Path, error: object) -> str:
    return f"{path.parent} cannot be written ({error}); free space, change its permissions or set ROWSMITH_DATABASE_URL"


def _explain(path: Path, error: Exception) -> str:
    """Say what a failure of the database means for whoever starts the service."""
    cause = str(getattr(error, "orig", None) or error)
    if "not a database" in cause or "malformed" in cause:
        return f"{path} is not a usable SQLite file ({cause}); set ROWSMITH_DATABASE_URL to another or restore a backup"
    return _cannot_write(path, cause)
