"""Guarded launches: the same check for plain launches and for CUDA Graph capture."""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from typing import Any

from attrs import define, evolve, field

from kernels import driver
from kernels.arrays import StreamPointer
from kernels.driver import Kernel
from kernels.errors import LaunchError
from kernels.guard import VECTOR_BYTES, Span, Verdict, judge
from kernels.launch import LaunchShape, launch_shape
from kernels.operands import NO_OPERANDS, Operands, arguments, judge_operands
from kernels.recipe import ORIGINAL
from kernels.templates import TEMPLATES
from kernels.workspace import workspaces


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
    _counting: threading.Lock = field(factory=threading.Lock, init=False, repr=False)

    def run(self, x: Span, y: Span, stream: int, given: Operands = NO_OPERANDS) -> Verdict:
        """Launch on `stream` what the buffers allow, and count it.

        Raises
        ------
        LaunchError : the operands are not the recipe's, or y overlaps a weight; x and y overlap in part and the stream
            is capturing without scratch prepared beforehand.
        """
        if y.bytes == 0:
            return Verdict.RECIPE
        judge_operands(self.chosen.recipe, x, y, given)
        verdict = self._judge(x, y, given)
        with driver.on(self.original.device):
            workspace = self._workspace(verdict, stream)
            if verdict is Verdict.RECIPE and workspace is None and self.chosen_shape.workspace_bytes:
                verdict = Verdict.NO_WORKSPACE
            if verdict is Verdict.RECIPE:
                _launch(self.chosen, self.chosen_shape, x, y, given, stream, workspace)
            elif verdict is Verdict.OVERLAP:
                scratch = self._scratch(x, stream)  # held until the launch that reads it is enqueued
                _launch(self.original, self.original_shape, _copied(x, scratch, stream), y, given, stream)
            else:
                _launch(self.original, self.original_shape, x, y, given, stream)
        with self._counting:
            self.launches[verdict.value] += 1
        return verdict

    def expect_captures(self) -> None:
        """Keep workspaces ready for the captures to come, if the chosen kernel needs one."""
        if self.chosen_shape.workspace_bytes:
            workspaces(self.chosen.device).reserve(self.chosen.recipe.template, self.chosen_shape.workspace_bytes)

    def reserve(self, scratch_bytes: int) -> None:
        """Allocate scratch for overlapping buffers, so that a capture may meet them.

        Every capture of this workload uses the same scratch: its graphs must not be replayed at the same time.
        """
        import cupy

        if self.scratch is None or self.scratch.size < scratch_bytes:
            with driver.on(self.original.device):
                self.scratch = cupy.empty(scratch_bytes, dtype=cupy.uint8)
                cupy.cuda.Device().synchronize()

    def _judge(self, x: Span, y: Span, given: Operands) -> Verdict:
        """Return what the buffers allow: an original runs wherever they do not overlap in part."""
        recipe = self.chosen.recipe
        verdict = judge(x, y, recipe.alignment, given.weights)
        if recipe.role == ORIGINAL and verdict is not Verdict.OVERLAP:
            return Verdict.RECIPE
        return verdict

    def _workspace(self, verdict: Verdict, stream: int) -> int | None:
        """Return what the CTAs of the chosen kernel talk through, or None where they do not, or none is ready."""
        if verdict is not Verdict.RECIPE or not self.chosen_shape.workspace_bytes:
            return None
        return workspaces(self.chosen.device).of(stream, self.chosen.recipe.template, self.chosen_shape.workspace_bytes)

    def _scratch(self, x: Span, stream: int) -> Any:
        """Return scratch for a copy of x: that of `reserve` in a capture, else some of the stream's own.

        CuPy's pool gives a block that was freed back to work of the same stream only, so launches on other streams
        never meet in it.
        """
        import cupy

        needed = x.bytes + VECTOR_BYTES
        if not capturing(stream):
            with cupy.cuda.Stream.from_external(StreamPointer(stream)):
                return cupy.empty(needed, dtype=cupy.uint8)
        if self.scratch is None or self.scratch.size < needed:
            raise LaunchError(
                "out overlaps x in part and no scratch is prepared; before the capture call "
                "rowsmith.prepare(..., scratch=True), or capture with disjoint buffers"
            )
        return self.scratch


def prepare(original: Kernel, chosen: Kernel, rows: int, width: int, sm_count: int) -> Prepared:
    """Return the launch of a chosen kernel for rows x width."""
    shapes = [launch_shape(kernel.recipe, rows, width, sm_count) for kernel in (original, chosen)]
    return Prepared(original, shapes[0], chosen, shapes[1])


def _copied(x: Span, scratch: Any, stream: int) -> Span:
    """Enqueue a copy of x to scratch, at the same offset from a vector boundary."""
    import cupy

    address = int(scratch.data.ptr) + x.address % VECTOR_BYTES
    kind = cupy.cuda.runtime.memcpyDeviceToDevice
    cupy.cuda.runtime.memcpyAsync(address, x.address, x.bytes, kind, stream)
    return evolve(x, address=address)


def capturing(stream: int) -> bool:
    """Tell whether a stream is being captured into a graph."""
    import cupy

    try:
        return bool(cupy.cuda.runtime.streamIsCapturing(stream))
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise LaunchError(f"the stream cannot be asked whether it captures ({error}); launch on another one") from error


def _launch(
    kernel: Kernel,
    shape: LaunchShape,
    x: Span,
    y: Span,
    given: Operands,
    stream: int,
    workspace: int | None = None,
) -> None:
    from cupy_backends.cuda.api import driver as cuda

    interleaved = TEMPLATES[kernel.recipe.template].interleaved
    values = arguments(x, y, given, shape, workspace, interleaved=interleaved)
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    cuda.launchKernel(
        kernel.function.ptr, shape.ctas, 1, 1, shape.threads, 1, 1, 0, stream, ctypes.addressof(pointers), 0
    )
