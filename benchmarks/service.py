"""Over HTTP, load generator on the same cores: known and new selections, one and many at a time, and growth."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import wrk
from benchmarks.figure import Figure, Skipped

ROOT = Path(__file__).parents[1]
CLIENTS = 32


def figures(seconds: int) -> Iterator[Figure | Skipped]:
    """Yield the service's figures; each load lasts so many seconds."""
    if not wrk.available():
        yield Skipped("the service over HTTP", wrk.INSTALL)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _service(folder) as address:
            yield from _measured(address, folder, seconds)


def _measured(address: str, folder: Path, seconds: int) -> Iterator[Figure]:
    known = wrk.load(address, folder, CLIENTS, seconds, first=1, step=0)
    yield Figure(f"known selections, {CLIENTS} clients", known.per_second, "a second", 4_000)
    yield Figure("  99th percentile", known.p99_ms, "ms")
    new = wrk.load(address, folder, CLIENTS, seconds, first=1_000, step=1)
    yield Figure(f"new selections, durably stored, {CLIENTS} clients", new.per_second, "a second", 2_000)
    yield Figure("  99th percentile", new.p99_ms, "ms", 80, at_least=False)
    one_known = wrk.load(address, folder, 1, seconds, first=1, step=0)
    yield Figure("one known selection at a time, median", one_known.p50_ms, "ms", 1, at_least=False)
    one = wrk.load(address, folder, 1, seconds, first=20_000_000, step=1)
    yield Figure("one new selection at a time, median", one.p50_ms, "ms", 1, at_least=False)
    failures = known.failures + new.failures + one_known.failures + one.failures
    later = new
    for turn in range(3):
        later = wrk.load(address, folder, CLIENTS, seconds, first=30_000_000 + turn * 1_000_000, step=1)
        failures += later.failures
    rows = _stored(address)
    yield Figure(
        f"new selections with {rows:,} rows stored, over those at first", later.per_second / new.per_second, "x"
    )
    yield Figure("requests that failed", failures, "", 0, at_least=False)


def _stored(address: str) -> int:
    with urllib.request.urlopen(f"{address}/v1/chain") as answer:  # noqa: S310 - our own address
        return int(json.load(answer)["count"])


@contextmanager
def _service(folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "benchmarks.served", str(folder / "rowsmith.db"), str(port)]
    child = subprocess.Popen(command, cwd=ROOT)
    try:
        _wait(address)
        yield address
    finally:
        child.terminate()
        child.wait()


def _wait(address: str) -> None:
    for _ in range(200):
        try:
            urllib.request.urlopen(f"{address}/livez").close()  # noqa: S310 - our own address
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise RuntimeError(f"no service answers at {address}; its output above says why")
