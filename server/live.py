"""What this machine's own GPU says, asked once when the service starts; a request never compiles."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.util import find_spec

from attrs import frozen

from kernels.receipt import Receipt
from kernels.target import Target


@frozen
class Live:
    """The machine's target and the receipts of every recipe it compiled, by recipe and dtype."""

    target: Target
    receipts: Mapping[tuple[str, str], Receipt]
    at: str


LiveSource = Callable[[], Live | None]


def no_gpu() -> Live | None:
    """Return None: what a machine without a GPU answers."""
    return None


def this_machine() -> Live | None:
    """Return the live GPU's target and receipts, or None where there is no driver, device or CuPy.

    Raises
    ------
    ToolchainError : there is a device, and nothing can be compiled for it.
    """
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if find_spec("cupy") is None:
        return None
    from kernels import driver
    from kernels.errors import CompileError
    from kernels.recipes import RECIPES

    if not driver.device_count():
        return None
    device = driver.current_device()
    receipts = {}
    for recipe in RECIPES:
        for dtype in recipe.dtypes:
            try:
                receipts[recipe.id, dtype] = driver.load(recipe, dtype, device).receipt
            except CompileError as error:
                receipts[recipe.id, dtype] = driver.failed_receipt(recipe, dtype, device, error)
    return Live(driver.live_target(device), receipts, datetime.now(UTC).isoformat(timespec="seconds"))
