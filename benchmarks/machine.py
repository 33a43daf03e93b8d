"""The machine that figures belong to."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Return processor, cores, load, system and interpreter in one line."""
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{_processor()}, {cores} cores (load {load:.2f} before), {system}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
