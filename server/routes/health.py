"""Is it alive, is it ready, which versions are these, and the figures."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import APIRouter, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import PlainTextResponse

from kernels.source import catalogue_digest
from policy.selection import SELECTION_SCHEMA
from server import database
from server.errors import Problem
from server.paging import json_bytes
from server.state import Running, State

router = APIRouter(tags=["health"])


@router.get("/livez", summary="The process answers")
def livez() -> dict[str, str]:
    """Answer while the process runs."""
    return {"status": "alive"}


@router.get("/readyz", summary="Database, schema, writer, disk and active profiles")
def readyz(state: Running) -> Response:
    """Answer 200 where a question can be answered and stored now, else 503 with what is missing."""
    try:
        found, head = database.facts(state.engine, state.settings), state.store.head()
    except (SQLAlchemyError, OSError) as error:
        raise Problem("not_ready", f"the database cannot be read ({error}); see its file and disk") from error
    failures = _failures(state, found)
    document: dict[str, Any] = {
        "status": "not ready" if failures else "ready",
        "database": {
            "path": found.path,
            "sqlite": found.sqlite_version,
            "journal_mode": found.journal_mode,
            "revision": found.revision,
            "needed_revision": database.head_revision(),
        },
        "disk": {"free_bytes": found.free_bytes, "needed_bytes": state.settings.disk_free_min_bytes},
        "writer": {"alive": state.store.writer.alive, "waiting": state.store.writer.waiting},
        "chain": {"count": head.count, "head": head.head},
        "active_profiles": [_profile(e.profile.name, e.profile.digest) for e in state.profiles if e.active],
        "live_target": None if state.live is None else state.live.target.digest(),
    }
    if failures:
        del document["status"]
        raise Problem("not_ready", "; ".join(failures), headers=None, **document)
    return Response(json_bytes(document), media_type="application/json", headers={"cache-control": "no-store"})


def _profile(name: str, digest: str) -> dict[str, str]:
    return {"name": name, "digest": digest, "self": f"/v1/profiles/{digest}"}


def _failures(state: State, found: database.DatabaseFacts) -> list[str]:
    checks = (
        (
            found.revision == database.head_revision(),
            f"schema {found.revision} is not this release's; {database.UPGRADE}",
        ),
        (state.store.writer.alive, "the writer has stopped; restart the service"),
        (
            found.free_bytes >= state.settings.disk_free_min_bytes,
            f"{found.free_bytes} bytes are free beside {found.path}; free space",
        ),
        (
            any(entry.active for entry in state.profiles),
            "no profile is active; import a packet with `rowsmith packet import`",
        ),
    )
    return [message for holds, message in checks if not holds]


@router.get("/version", summary="Versions of everything an answer depends on")
def versions(state: Running) -> dict[str, str]:
    """Return the release, the interpreter, SQLite, and the schemas and catalogue of decisions."""
    try:
        release = version("rowsmith")
    except PackageNotFoundError:  # run from a tree that was not installed
        release = "unknown"
    return {
        "rowsmith": release,
        "python": platform.python_version(),
        "sqlite": database.SQLITE_VERSION,
        "selection_schema": SELECTION_SCHEMA,
        "catalogue": catalogue_digest(),
        "database_revision": database.head_revision(),
    }


@router.get("/metrics", summary="Prometheus figures", response_class=PlainTextResponse)
def metrics(state: Running) -> Response:
    """Return the figures in Prometheus' text form."""
    state.metrics.rows.set(state.store.head().count)
    state.metrics.waiting.set(state.store.writer.waiting)
    return Response(state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
