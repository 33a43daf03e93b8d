"""Driving the service with wrk, an HTTP load generator in C: a client in Python measures itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from attrs import frozen

INSTALL = "wrk is not on PATH; on Debian and Ubuntu: apt install wrk"

# %s: how a question is numbered. Known questions are all the same one, new ones have a row count nobody asked for.
_SCRIPT = """
local n = %d
function request()
  n = n + %d
  local body = '{"op":"scan","shape":[' .. n .. ',8192],"dtype":"float16"}'
  return wrk.format("POST", "/v1/selections", {["content-type"] = "application/json"}, body)
end
"""
_LATENCY = re.compile(r"^\s+(50|99)%\s+([\d.]+)(us|ms|s)$", re.MULTILINE)
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


@frozen
class Load:
    """What wrk saw."""

    per_second: float
    p50_ms: float
    p99_ms: float
    failures: int


def available() -> bool:
    """Return whether wrk can be run."""
    return shutil.which("wrk") is not None


def load(address: str, folder: Path, clients: int, seconds: int, *, first: int, step: int) -> Load:
    """Ask for so many seconds from so many connections; row counts go from `first` on in steps."""
    script = folder / "ask.lua"
    script.write_text(_SCRIPT % (first, step))
    command = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--latency", "-s", str(script), address]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    latency = {share: float(value) * _MS[unit] for share, value, unit in _LATENCY.findall(text)}
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    failures = int(failed[1]) if failed else 0
    failures += sum(map(int, errors.groups())) if errors else 0
    assert rate is not None, text
    return Load(float(rate[1]), latency["50"], latency["99"], failures)
