"""What this machine has, what is missing, and what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from typing import Any

from attrs import asdict, frozen

OK, MISSING, BROKEN = "ok", "missing", "broken"


@frozen
class Check:
    """One finding. `missing` is something one can do without; `broken` is not."""

    what: str
    state: str
    found: str
    remedy: str = ""

    def facts(self) -> dict[str, Any]:
        """Return the finding as JSON-ready facts."""
        return asdict(self)


def checks() -> tuple[Check, ...]:
    """Return every finding, in the order in which one thing builds on another."""
    return tuple(check for group in (_python, _rooms, _service, _profiles, _toolchain, _gpu) for check in group())


def _install(extra: str) -> str:
    """Return the command that brings an optional part; the project is in no package index."""
    return f"pip install '.[{extra}]' in the source folder"


def worst(found: tuple[Check, ...]) -> int:
    """Return 1 where something is broken, else 0."""
    return int(any(check.state == BROKEN for check in found))


def _python() -> Iterator[Check]:
    version = ".".join(map(str, sys.version_info[:3]))
    state = OK if sys.version_info >= (3, 11) else BROKEN
    yield Check("Python", state, version, "" if state == OK else "use Python 3.11 or newer")


def _rooms() -> Iterator[Check]:
    """Another distribution called `kernels` exists; installed beside ours, one of the two hides the other."""
    owners = packages_distributions().get("kernels", [])
    others = sorted({owner for owner in owners if owner != "rowsmith"})
    if others:
        yield Check(
            "package kernels", BROKEN, f"also from {', '.join(others)}", f"pip uninstall {others[0]}, or use a venv"
        )
    else:
        yield Check("package kernels", OK, "ours")


def _service() -> Iterator[Check]:
    lacking = [name for name in ("fastapi", "sqlalchemy", "pydantic_settings", "uvicorn") if find_spec(name) is None]
    if lacking:
        yield Check("service", MISSING, f"no {', '.join(lacking)}", _install("server"))
        return
    try:
        from pysqlite3.dbapi2 import sqlite_version
    except ImportError:
        remedy = f"{_install('server')}: the system's SQLite may lose data"
        yield Check("SQLite", MISSING, "no pysqlite3", remedy)
    else:
        yield Check("SQLite", OK, sqlite_version)


def _profiles() -> Iterator[Check]:
    from policy.errors import ProfileError
    from policy.profile import bundled_profiles

    try:
        found = bundled_profiles()
    except ProfileError as error:
        yield Check("profiles", BROKEN, str(error), "reinstall rowsmith")
        return
    named = ", ".join(f"{profile.name} ({profile.regime})" for profile in found)
    state = OK if found else MISSING
    yield Check("profiles", state, named or "none", "" if found else "rowsmith calibrate on a GPU")


def _toolchain() -> Iterator[Check]:
    if find_spec("cupy") is None:
        yield Check("CuPy", MISSING, "not installed", f"{_install('cuda13')}; launching and calibrating need it")
        return
    from kernels.errors import ToolchainError
    from kernels.toolchain import toolchain

    try:
        tools = toolchain()
    except ToolchainError as error:
        yield Check("NVRTC and headers", BROKEN, str(error), _install("cuda13"))
        return
    yield Check("NVRTC", OK, tools.nvrtc)
    yield Check("CCCL", OK, tools.cccl)
    if find_spec("cuda") is None or find_spec("cuda.bindings") is None:
        remedy = f"{_install('cuda13')}; split rows and calibrating need it"
        yield Check("cuda-bindings", MISSING, "not installed", remedy)


def _gpu() -> Iterator[Check]:
    if find_spec("cupy") is None:
        return
    from kernels import driver
    from kernels.errors import KernelError

    if driver.device_count() == 0:
        yield Check("GPU", MISSING, "no CUDA device or driver", "nothing: only launching and calibrating need one")
        return
    try:
        target = driver.live_target()
    except KernelError as error:
        yield Check("GPU", BROKEN, str(error), "check the driver with nvidia-smi")
        return
    yield Check("GPU", OK, f"{target.label}, cc {target.compute_capability}, {target.sm_count} SMs")
    yield from _match(target)
    yield from _receipts()


def _match(target: Any) -> Iterator[Check]:
    from policy.profile import bundled_profiles

    found = bundled_profiles()
    made_for_it = [f"{profile.name} ({profile.regime})" for profile in found if profile.target == target]
    if made_for_it:
        yield Check("profile for this GPU", OK, ", ".join(made_for_it))
        return
    for profile in found:
        differing = profile.target.differences(target)
        listed = ", ".join(f"{name} {theirs} is not {ours}" for name, ours, theirs in differing)
        yield Check(f"profile {profile.name}", MISSING, listed, "rowsmith calibrate --out packet.zip")


def _receipts() -> Iterator[Check]:
    """Compile, load and query every recipe: the receipts that a service on this machine would use."""
    from kernels import driver
    from kernels.errors import CompileError
    from kernels.recipes import RECIPES

    device = driver.current_device()
    architecture = driver.architecture(device)
    for recipe in (row for row in RECIPES if row.runs_on(architecture)):
        parts = []
        state, remedy = OK, ""
        for dtype in recipe.dtypes:
            try:
                parts.append(f"{dtype}: {_brief(driver.load(recipe, dtype, device).receipt)}")
            except CompileError as error:
                parts.append(f"{dtype}: {str(error).splitlines()[0]}")
                state, remedy = BROKEN, "read the compiler's log with rowsmith doctor --json"
        yield Check(f"receipts {recipe.id}", state, "; ".join(parts), remedy)


def _brief(receipt: Any) -> str:
    return (
        f"{receipt.registers} registers, {receipt.local_bytes} local bytes, "
        f"{receipt.resident_ctas_per_sm} resident CTAs an SM"
    )
