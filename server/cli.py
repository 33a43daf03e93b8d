"""The server's commands, as plain functions for the command `rowsmith`; each prints and exits as a command does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from server import database
from server.errors import Problem, ServerError
from server.settings import Settings
from server.store import open_store

Host = Annotated[str | None, typer.Option(help="Loopback address to listen on; ROWSMITH_HOST otherwise.")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="TCP port; ROWSMITH_PORT otherwise.")]
File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="A packet.")]


def serve(host: Host = None, port: Port = None) -> None:
    """Serve the API on loopback until interrupted."""
    from server.serving import serve as run

    given: dict[str, Any] = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    _guarded(lambda: run(_settings(**given)))


def db_upgrade() -> None:
    """Create the database, or bring it to this release's schema."""

    def upgrade() -> None:
        settings = _settings()
        revision = database.upgrade(settings)
        typer.echo(f"{settings.database_path} has schema {revision}")

    _guarded(upgrade)


def db_verify(
    count: Annotated[int | None, typer.Option(min=0, help="The count of a head kept earlier.")] = None,
    head: Annotated[str | None, typer.Option(help="That head.")] = None,
) -> None:
    """Walk the hash chain over all stored rows; with an earlier head, find what was cut off or rewritten since."""
    from server.chain import Head

    def verify() -> None:
        if (count is None) != (head is None):
            raise ServerError("--count and --head belong together; both are in /v1/chain and /readyz")
        kept = None if count is None or head is None else Head(count, head)
        with closing(open_store(_settings())) as store:
            broken, now = store.first_break(kept), store.head()
        if broken is not None:
            facts = f"expected {broken.expected}, found {broken.found}"
            raise ServerError(f"row {broken.seq}: {broken.what} does not follow: {facts}; restore a backup")
        typer.echo(f"verified: {now.count} rows, head {now.head}")

    _guarded(verify)


def packet_import(file: File) -> None:
    """Verify a packet and store its evidence and profile; a running service sees it when restarted."""
    from calibration import packet
    from server.importing import import_packet

    def run() -> None:
        held = packet.read(file)
        _refuse_differences(held)
        with closing(open_store(_settings())) as store:
            done = import_packet(store, held)
        typer.echo(f"packet {done.packet}: {done.nodes} records, {done.new} new")

    _guarded(run)


def _refuse_differences(held: Any) -> None:
    from calibration.verify import verify

    if found := verify(held):
        listed = "\n".join(f"  {finding}" for finding in found[:10])
        message = f"the packet does not verify ({len(found)} differences), and nothing was stored:\n{listed}"
        raise ServerError(message)


def _settings(**given: Any) -> Settings:
    try:
        return Settings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name = "_".join(str(part) for part in first["loc"]).upper()
        what = first["msg"].removeprefix("Value error, ")
        raise ServerError(f"ROWSMITH_{name}: {what}; see docs/settings.md") from error


def _guarded(command: Callable[[], None]) -> None:
    """Run a command; print what is wrong and what to do, and exit with 1, where it fails in a foreseen way."""
    from calibration.errors import CalibrationError
    from features.errors import FeatureError
    from kernels.errors import KernelError
    from policy.errors import PolicyError

    foreseen = (ServerError, Problem, CalibrationError, PolicyError, FeatureError, KernelError)
    try:
        command()
    except foreseen as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
