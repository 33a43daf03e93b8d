"""Guarded launches: the same check for plain launches and for CUDA Graph capture."""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Any

from attrs import define, field

from kernels.driver import Kernel
from kernels.errors import LaunchError
from kernels.guard import Span, Verdict, judge
from kernels.launch import LaunchShape


@define(eq=False)
class Prepared:
    """Everything a workload needs to run: the original, the chosen kernel (perhaps the same), scratch and counters.

    Kernels held here stay loaded for the life of the process, so a captured graph never outlives its functions.
    """

    original: Kernel
    original_shape: LaunchShape
    chosen: Kernel
    chosen_shape: LaunchShape
    scratch: Any = None
    launches: Counter[str] = field(factory=Counter)

    def run(self, x: Span, y: Span, stream: int) -> Verdict:
        """Launch on `stream` what the buffers allow, and count it.

        Raises
        ------
        LaunchError : the buffers overlap in part and the stream is capturing without scratch prepared beforehand.
        """
        if x.bytes == 0:
            return Verdict.RECIPE
        verdict = judge(x, y)
        if self.chosen is self.original and verdict is not Verdict.OVERLAP:
            verdict = Verdict.RECIPE  # what was chosen takes any alignment and works in place
        if verdict is Verdict.RECIPE:
            _launch(self.chosen, self.chosen_shape, x, y, stream)
        elif verdict is Verdict.OVERLAP:
            _launch(self.original, self.original_shape, self._copied(x, stream), y, stream)
        else:
            _launch(self.original, self.original_shape, x, y, stream)
        self.launches[verdict.value] += 1
        return verdict

    def reserve(self, scratch_bytes: int) -> None:
        """Allocate scratch for overlapping buffers, so that a capture may meet them."""
        import cupy

        if self.scratch is None or self.scratch.size < scratch_bytes:
            with cupy.cuda.Device(self.original.device):
                self.scratch = cupy.empty(scratch_bytes, dtype=cupy.uint8)
                cupy.cuda.Device().synchronize()

    def _copied(self, x: Span, stream: int) -> Span:
        import cupy

        if self.scratch is None or self.scratch.size < x.bytes + x.address % 16:
            if capturing(stream):
                raise LaunchError(
                    "out overlaps x in part and no scratch is prepared; before the capture call "
                    "rowsmith.prepare(..., scratch=True), or capture with disjoint buffers"
                )
            self.reserve(x.bytes + 16)
        address = int(self.scratch.data.ptr) + x.address % 16
        copy_kind = cupy.cuda.runtime.memcpyDeviceToDevice
        cupy.cuda.runtime.memcpyAsync(address, x.address, x.bytes, copy_kind, stream)
        return Span(address, x.rows, x.width, x.pitch, x.element_bytes)


def capturing(stream: int) -> bool:
    """Tell whether a stream is being captured into a graph."""
    import cupy

    return bool(cupy.cuda.runtime.streamIsCapturing(stream))


def _launch(kernel: Kernel, shape: LaunchShape, x: Span, y: Span, stream: int) -> None:
    from cupy_backends.cuda.api import driver

    extents = (x.rows, x.width, x.pitch, y.pitch)
    values: list[Any] = [
        ctypes.c_void_p(x.address),
        ctypes.c_void_p(y.address),
        *map(ctypes.c_longlong, extents),
        *map(ctypes.c_int, shape.extra),
    ]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    driver.launchKernel(
        kernel.function.ptr, shape.ctas, 1, 1, shape.threads, 1, 1, 0, stream, ctypes.addressof(pointers), 0
    )
