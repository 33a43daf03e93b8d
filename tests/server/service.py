"""The real application on a real SQLite file, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from policy.profile import STANDARD, Profile
from server import database
from server.app import create_app
from server.front import Front
from server.live import LiveSource, no_gpu
from server.node import Node, node_of
from server.profiles import profile_nodes
from server.settings import Settings
from server.state import State
from server.store import Store, open_store
from tests.made import made_profile

with warnings.catch_warnings():  # Starlette prefers httpx2, a fork that nothing else here needs
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

ROOT = Path(__file__).parents[2]
QUESTION: dict[str, Any] = {"op": "scan", "shape": [128, 8192], "dtype": "float16"}


def settings_for(folder: Path, **changes: Any) -> Settings:
    """Return settings whose database lies in a folder and has no bundled evidence."""
    given = {"database_url": f"sqlite:///{folder / 'rowsmith.db'}", "import_bundled": False, **changes}
    return Settings(**given)


def fresh(folder: Path, **changes: Any) -> Settings:
    """Return the settings of a database that was just made."""
    settings = settings_for(folder, **changes)
    database.upgrade(settings)
    return settings


def only_made() -> Sequence[Node]:
    """Return the made-up profile and a validation that finds no fault with it."""
    return [*profile_nodes(made_profile()), validation_of(made_profile(), STANDARD)]


def validation_of(profile: Profile, standing: str) -> Node:
    """Return as much of a validation as the service reads."""
    return node_of("validation", {"profile": profile.digest, "standing": standing}, parent=profile.digest)


@contextmanager
def serving(
    settings: Settings, *, live: LiveSource = no_gpu, shipped: Callable[[], Sequence[Node]] = only_made
) -> Iterator[TestClient]:
    """Serve within this process."""
    app = create_app(settings, live=live, shipped=shipped)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def inner(client: TestClient) -> FastAPI:
    """Return the FastAPI application behind the front layer."""
    assert isinstance(client.app, Front)
    assert isinstance(client.app.app, FastAPI)
    return client.app.app


def state(client: TestClient) -> State:
    """Return the parts of the application that a client talks to."""
    found: State = inner(client).state.rowsmith
    return found


def opened(settings: Settings) -> closing[Store]:
    """Open the store without a service, until the end of the block."""
    return closing(open_store(settings))


@contextmanager
def process(folder: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve in a process of its own on a free port; yield it and its address."""
    command = [sys.executable, "-m", "tests.server.serve_made", str(folder / "rowsmith.db")]
    child = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}, bufsize=1
    )
    try:
        assert child.stdout is not None
        address = child.stdout.readline().strip()
        assert address.startswith("http://"), address
        for _ in range(200):
            try:
                httpx.get(f"{address}/livez")
                break
            except httpx.TransportError:
                time.sleep(0.05)
        yield child, address
    finally:
        child.kill()
        child.wait()
