"""Where a sweep ran: silicon, driver, toolchain, clocks, temperature, other processes. Read only, never set."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from calibration.sources import catalogue_facts
from features.usual_libraries import LIBRARIES
from kernels.identity import digest_bytes
from kernels.target import Target

ENVIRONMENT_SCHEMA = "rowsmith.environment/1"
_LIBRARIES = (
    *("cupy-cuda13x", "cupy-cuda12x", "numpy", "scipy", "scikit-learn", "torch", "triton", "cuda-bindings"),
    *(name for library in LIBRARIES.values() for name in library.distributions),
)


def environment(target: Target, seed: int, device: int = 0) -> dict[str, Any]:
    """Return the environment document of a sweep on a device."""
    import cupy

    return {
        "schema": ENVIRONMENT_SCHEMA,
        "target": {**target.facts(), "label": target.label},
        "driver_cuda": cupy.cuda.runtime.driverGetVersion(),
        "runtime_cuda": cupy.cuda.runtime.runtimeGetVersion(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu_count": os.cpu_count(),
        "libraries": {name: found for name in _LIBRARIES if (found := _version(name)) is not None},
        "nvml": nvml_facts(device),
        "commit": source_commit(),
        "catalogue": catalogue_facts(),
        "seed": seed,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def source_commit() -> str:
    """Return the commit of the working tree, `+changes` where it differs from it, or `unknown` outside one."""
    root = Path(__file__).resolve().parent.parent
    if explicit := os.environ.get("ROWSMITH_SOURCE_COMMIT"):
        return explicit
    try:
        head = _git(root, "rev-parse", "HEAD")
        return head + ("+changes" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def nvml_facts(device: int) -> dict[str, Any]:
    """Return driver, clocks, power, temperature and processes as NVML tells them, or why it does not."""
    try:
        import pynvml
    except ImportError as error:
        return {"unavailable": f"nvidia-ml-py cannot be imported ({error})"}
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(device)
        return {
            # Another GPU of the same model is another cohort: which one it was, without its serial number.
            "board": digest_bytes(_text(pynvml.nvmlDeviceGetUUID(handle)).encode()),
            "driver": _text(pynvml.nvmlSystemGetDriverVersion()),
            "sm_clock_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
            "memory_clock_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
            "temperature_c": pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
            "power_mw": pynvml.nvmlDeviceGetPowerUsage(handle),
            "processes": len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)),
        }
    except pynvml.NVMLError as error:
        return {"unavailable": str(error)}


def throttle_probe(device: int) -> Callable[[], bool]:
    """Return a question that says whether the device slows down right now; always no where NVML cannot tell."""
    try:
        import pynvml
    except ImportError:  # the environment document says so
        return lambda: False
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(device)
        slowed = (
            pynvml.nvmlClocksThrottleReasonHwSlowdown
            | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
            | pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
            | pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
        )
        pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    except pynvml.NVMLError:  # no driver or no permission: the environment document says which
        return lambda: False
    return lambda: bool(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle) & slowed)


def _git(root: Path, *arguments: str) -> str:
    answer = subprocess.run(("git", *arguments), cwd=root, check=True, capture_output=True, text=True)
    return answer.stdout.strip()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
