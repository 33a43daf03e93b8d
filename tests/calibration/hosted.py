"""A bench whose device is the host: NumPy in CuPy's place, so that buffers, checks and capture are the real ones."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from attrs import frozen

from calibration.gpu import Graph
from calibration.inputs import GUARD_BYTES, Guarded
from calibration.rounds import Bench


@frozen(eq=False)
class OnHost(Guarded):
    """A tensor in host memory, 256-byte aligned as the device's allocations are."""

    @property
    def address(self) -> int:
        return int(self.raw.ctypes.data) + GUARD_BYTES


def on_host(dtype: str, rows: int, width: int) -> OnHost:
    count = rows * width * 4 + 2 * GUARD_BYTES
    whole = np.empty(count + 256, np.uint8)
    begin = -whole.ctypes.data % 256
    tensor = OnHost(whole[begin : begin + count], dtype, rows, width)
    tensor.poison()
    return tensor


def uniform(dtype: str, rows: int, width: int, seed: int) -> OnHost:
    made = on_host(dtype, rows, width)
    made.body.view(np.float32)[...] = np.random.default_rng(seed).uniform(-1, 1, rows * width)
    return made


def floats_at(address: int, count: int) -> np.ndarray[Any, Any]:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))


def captured(enqueue: Callable[[], None], launches: int) -> Graph:
    for _ in range(launches):
        enqueue()
    return Graph(launches, lambda: None, None)


def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setitem(sys.modules, "cupy", np)
    monkeypatch.setattr("calibration.buffers.uniform", uniform)
    monkeypatch.setattr("calibration.buffers.guarded", on_host)
    session = SimpleNamespace(cupy=np, pointer=0, synchronize=lambda: None, capture=captured)
    return Bench(cast(Any, session), {}, {}, cast(Any, None), 132, lambda: False, l2_bytes=2**17)
