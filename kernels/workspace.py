"""Workspaces: what the CTAs of one launch talk through. Zero once; launches that share one follow one another.

Launches on one stream follow one another, and so do those that one capture puts on one stream. So a stream has a
workspace for each use (a template, which says what it leaves there) and size, and so has each stream of each capture.
A workspace is never freed, since work in flight and graphs may use it; the sizes that a process meets are few.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Hashable
from functools import cache
from typing import Any

from attrs import define, field

from kernels import driver
from kernels.errors import LaunchError

# How many are kept ready for captures, in which nothing can be allocated. Each is some kilobytes.
SPARE = 16
_ALIGNMENT = 256


@define(eq=False)
class Workspaces:
    """The workspaces of one device."""

    device: int
    _spare: dict[tuple[str, int], list[int]] = field(factory=lambda: defaultdict(list), init=False)
    _used: dict[tuple[Hashable, tuple[str, int]], int] = field(factory=dict, init=False)
    _slabs: list[Any] = field(factory=list, init=False, repr=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False, repr=False)

    def reserve(self, use: str, workspace_bytes: int) -> None:
        """Keep `SPARE` workspaces of a use and size ready. Allocates and synchronises: not for captures."""
        with self._lock:
            self._fill((use, workspace_bytes))

    def of(self, stream: int, use: str, workspace_bytes: int) -> int | None:
        """Return the address of the stream's workspace, or None in a capture where none is ready."""
        (user, captured), kind = _user(stream), (use, workspace_bytes)
        with self._lock:
            if (user, kind) not in self._used:
                if not captured:
                    self._fill(kind)
                spare = self._spare[kind]
                if not spare:
                    return None
                self._used[user, kind] = spare.pop()
            return self._used[user, kind]

    def release_captures(self) -> None:
        """Take back what captures use. The caller knows that their graphs are gone and their work is done."""
        with self._lock:
            for (user, kind), address in list(self._used.items()):
                if isinstance(user, _Capture):
                    self._spare[kind].append(address)
                    del self._used[user, kind]

    def _fill(self, kind: tuple[str, int]) -> None:
        spare = self._spare[kind]
        if len(spare) >= SPARE:
            return
        step = -(-kind[1] // _ALIGNMENT) * _ALIGNMENT
        slab, address = _zeros(self.device, SPARE * step)
        self._slabs.append(slab)
        spare += [address + i * step for i in range(SPARE)]


class _Capture(tuple[int, int]):
    """A capture's number and one of its streams."""

    __slots__ = ()


def _zeros(device: int, count: int) -> tuple[Any, int]:
    """Return zeroed bytes of a device, as whatever owns them, and their address."""
    import cupy

    with driver.on(device):
        slab = cupy.zeros(count, dtype=cupy.uint8)
        cupy.cuda.Device().synchronize()
    return slab, int(slab.data.ptr)


def _user(stream: int) -> tuple[Hashable, bool]:
    """Return whose workspace a launch on a stream uses, and whether that is a capture's.

    A stream's number is never given twice in a process, unlike its pointer.
    """
    from cuda.bindings import driver as cuda

    error, status, capture, *_ = cuda.cuStreamGetCaptureInfo(cuda.CUstream(stream))
    if int(error) == 0 and status == cuda.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE:
        return _Capture((int(capture), stream)), True
    if int(error) == 0:
        error, number = cuda.cuStreamGetId(cuda.CUstream(stream))
    if int(error) != 0:
        raise LaunchError(f"the stream cannot be asked what it is ({error.name}); launch on another one")
    return int(number), False


@cache
def workspaces(device: int) -> Workspaces:
    """Return the workspaces of a device."""
    return Workspaces(device)
