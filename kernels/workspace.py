"""Workspaces: what the CTAs of one launch talk through. Zero once; launches that share one follow one another.

Launches on one stream follow one another, and so do those that one capture puts on one stream. So a stream has a
workspace for each use (a template, which says what it leaves there) and size, and so has each stream of each capture.
A workspace is never freed, since work in flight and graphs may use it; when `LIMIT_BYTES` are taken, launches that need
another one do without.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Hashable
from typing import Any

from attrs import define, field

from kernels import driver
from kernels.errors import LaunchError, ToolchainError

# How many are kept ready for captures, in which nothing can be allocated: after a plain launch, and where captures are
# announced. A workspace of the largest grid takes 64 KiB, most take one or two.
SPARE, SPARE_ANNOUNCED = 2, 16
# A process that asks for every size there is would take 4 GiB.
LIMIT_BYTES = 2**28
_ALIGNMENT = 256

Kind = tuple[str, int]  # use and bytes


@define(eq=False)
class Workspaces:
    """The workspaces of one device."""

    device: int
    _spare: dict[Kind, list[int]] = field(factory=lambda: defaultdict(list), init=False)
    _used: dict[tuple[Hashable, Kind], int] = field(factory=dict, init=False)
    _slabs: list[Any] = field(factory=list, init=False, repr=False)
    _taken_bytes: int = field(default=0, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False, repr=False)

    def reserve(self, use: str, workspace_bytes: int) -> None:
        """Keep `SPARE_ANNOUNCED` workspaces of a use and size ready. Allocates and synchronises: not for captures."""
        with self._lock:
            self._fill((use, workspace_bytes), SPARE_ANNOUNCED)

    def of(self, stream: int, use: str, workspace_bytes: int) -> int | None:
        """Return the address of the stream's workspace, or None where none is ready in a capture, or there is no room.

        A launch outside of captures sees to it that captures to come find some.
        """
        (user, captured), kind = _user(stream), (use, workspace_bytes)
        with self._lock:
            known = (user, kind) in self._used
            if not captured:
                self._fill(kind, SPARE + (not known))
            spare = self._spare[kind]
            if not known and spare:
                self._used[user, kind] = spare.pop()
            return self._used.get((user, kind))

    def release_captures(self) -> None:
        """Take back what captures use. The caller knows that their graphs are gone and their work is done."""
        with self._lock:
            for (user, kind), address in list(self._used.items()):
                if isinstance(user, _Capture):
                    self._spare[kind].append(address)
                    del self._used[user, kind]

    def _fill(self, kind: Kind, wanted: int) -> None:
        spare = self._spare[kind]
        step = -(-kind[1] // _ALIGNMENT) * _ALIGNMENT
        missing = min(wanted - len(spare), (LIMIT_BYTES - self._taken_bytes) // step)
        if missing <= 0:
            return
        slab, address = _zeros(self.device, missing * step)
        self._slabs.append(slab)
        self._taken_bytes += missing * step
        spare += [address + i * step for i in range(missing)]


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

    A stream's number is never given twice in a process, unlike its pointer. Asking for it ends a capture with an error,
    so within one a stream goes by its pointer.
    """
    try:
        from cuda.bindings import driver as cuda
    except ImportError as missing:
        raise ToolchainError(f"a split row needs cuda-bindings ({missing}); run rowsmith doctor") from missing

    handle = cuda.CUstream(stream)
    error, status, capture, *_ = cuda.cuStreamGetCaptureInfo(handle)
    if int(error) == 0 and status == cuda.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE:
        return _Capture((int(capture), stream)), True
    if int(error) == 0:
        error, number = cuda.cuStreamGetId(handle)
    if int(error) != 0:
        raise LaunchError(f"the stream cannot be asked what it is ({error.name}); launch on another one")
    return int(number), False


_made: dict[int, Workspaces] = {}
_making = threading.Lock()


def workspaces(device: int) -> Workspaces:
    """Return the workspaces of a device, the same for all threads."""
    with _making:
        return _made.setdefault(device, Workspaces(device))
