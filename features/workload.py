"""A workload: a program with its rows, width and memory layout, judged before anything else looks at it."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import pairwise
from typing import SupportsIndex

from attrs import frozen

from features.errors import WorkloadError, show
from features.expression import CHANNELS
from features.program import Program, axis_of, program_of, takes_empty_rows
from kernels.dtypes import storage

MAX_RANK = 64
# CUDA devices address 49 bits; 2^47 bytes leave room for input and output and keep every count exact in a double.
MAX_TENSOR_BYTES = 2**47
DEFAULT_ALIGNMENT_BYTES = 16
NUMERICS = ("any", "bit_equal")


@frozen
class Workload:
    """`rows` rows of `width` elements; consecutive rows start `row_pitch` elements apart.

    Where `inner` is not 1, so many consecutive rows are an image and interleave: element c of row r lies at
    (r // inner) row_pitch inner + c inner + r % inner. `alignment_bytes` is what is promised of the base addresses;
    `numerics` what the caller demands (`any` or `bit_equal` to the original).
    """

    program: Program
    rows: int
    width: int
    row_pitch: int
    alignment_bytes: int = DEFAULT_ALIGNMENT_BYTES
    numerics: str = "any"
    inner: int = 1

    @property
    def dtype(self) -> str:
        """The storage dtype, of input and output alike."""
        return self.program.dtype


def workload(
    op: str,
    shape: Sequence[int],
    dtype: str,
    *,
    strides: Sequence[int] | None = None,
    alignment_bytes: int = DEFAULT_ALIGNMENT_BYTES,
    numerics: str = "any",
) -> Workload:
    """Return the workload of a named op along the last axis, or along the channels of images.

    Parameters
    ----------
    shape : extents; all but the last are rows. Along channels: images, channels and any number of further extents, of
        which each position is a row of its image.
    strides : in elements, one an extent; contiguous rows when omitted. The inner stride must be 1 and the leading
        extents must fold into rows one constant pitch apart. Along channels those of a contiguous array.
    alignment_bytes : the power of two that divides every base address.

    Raises
    ------
    ProgramError : unknown op or dtype.
    WorkloadError : a shape, stride, alignment or numerics demand that no kernel takes.
    """
    program = program_of(op, dtype)
    extents, by_channel = _extents(shape), axis_of(program) == CHANNELS
    rows, width, inner = _of_channels(op, extents, strides) if by_channel else _of_rows(extents)
    if width == 0 and not takes_empty_rows(program):
        message = f"shape {show(extents)} has rows of no element, of which {op} has no result; give each row one"
        raise WorkloadError("empty_row", "shape", message)
    pitch = width if strides is None or by_channel else _row_pitch(extents, strides)
    if max(rows, 1) * max(pitch, 1) * storage(dtype).bytes > MAX_TENSOR_BYTES:
        layout = f"shape {show(extents)}" + ("" if strides is None else f" with strides {show(tuple(strides))}")
        message = f"{layout} spans more than {MAX_TENSOR_BYTES} bytes, past what a GPU can address; split the tensor"
        raise WorkloadError("index_overflow", "shape" if strides is None else "strides", message)
    aligned = judge_demands(dtype, alignment_bytes, numerics)
    return Workload(program, rows, width, pitch, aligned, numerics, inner)


def judge_demands(dtype: str, alignment_bytes: int, numerics: str) -> int:
    """Return the alignment, a power of two of whole elements, or raise `WorkloadError` for it or for the numerics."""
    element_bytes = storage(dtype).bytes
    aligned = whole(alignment_bytes)
    if aligned is None or not 1 <= aligned <= MAX_TENSOR_BYTES or aligned & (aligned - 1):
        message = (
            f"alignment {show(alignment_bytes)} is not a power of two of bytes; use 16, or what divides every base"
        )
        raise WorkloadError("alignment_invalid", "alignment", message)
    if aligned < element_bytes:
        message = (
            f"alignment {aligned} is less than one {dtype} element ({element_bytes} bytes); copy to aligned memory"
        )
        raise WorkloadError("misaligned", "alignment", message)
    if numerics not in NUMERICS:
        message = f"numerics {show(numerics)} is not known; use one of {', '.join(NUMERICS)}"
        raise WorkloadError("numerics_unknown", "numerics", message)
    return aligned


def whole(value: object) -> int | None:
    """Return a whole number, NumPy's included, as an int; None for a bool, a fraction, a NaN or anything else."""
    if type(value) is int:  # nearly always, and a protocol check costs a microsecond
        return value
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several numbers has the method, too
        return None


def _sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    if not _sequence(shape):
        raise WorkloadError("shape_invalid", "shape", f"shape {show(shape)} is not a list of extents")
    if not 1 <= len(shape) <= MAX_RANK:
        message = f"shape has {len(shape)} extents; a row collective needs 1 to {MAX_RANK}"
        raise WorkloadError("shape_invalid", "shape", message)
    extents = tuple(whole(extent) for extent in shape)
    for axis, (given, extent) in enumerate(zip(shape, extents, strict=True)):
        if extent is None or extent < 0:
            message = f"extent {show(given)} on axis {axis} is not a nonnegative whole number"
            raise WorkloadError("shape_invalid", "shape", message)
        if extent > MAX_TENSOR_BYTES:
            message = f"extent {show(given)} on axis {axis} is past the largest tensor, {MAX_TENSOR_BYTES} bytes"
            raise WorkloadError("index_overflow", "shape", message)
    return tuple(extent for extent in extents if extent is not None)


def _of_rows(extents: tuple[int, ...]) -> tuple[int, int, int]:
    return math.prod(extents[:-1]), extents[-1], 1


def _of_channels(op: str, extents: tuple[int, ...], strides: Sequence[int] | None) -> tuple[int, int, int]:
    """Return positions of all images, channels, and positions of an image; refuse all but contiguous arrays."""
    if len(extents) < 2:
        message = f"shape {show(extents)} has no channels; {op} needs images, channels and any further extents"
        raise WorkloadError("shape_invalid", "shape", message)
    if strides is not None:
        _judge_contiguous(extents, strides)
    positions = math.prod(extents[2:])
    rows = extents[0] * positions
    return rows, extents[1], positions if rows else 1


def _judge_contiguous(extents: tuple[int, ...], strides: Sequence[int]) -> None:
    """Raise `WorkloadError` for strides that are not those of an array without gaps, the last extent innermost."""
    steps = _steps(extents, strides)
    expected = 1
    for axis in reversed(range(len(extents))):
        # The stride of an extent of one is never used; array libraries put anything there.
        if extents[axis] > 1 and 0 not in extents and steps[axis] != expected:
            raise _unsupported(
                f"stride {show(steps[axis])} on axis {axis} is not {expected}; images, channels and positions are read "
                "without gaps, so copy to a contiguous array first"
            )
        expected *= extents[axis]


def _steps(extents: tuple[int, ...], strides: Sequence[int]) -> list[int]:
    """Return strides as whole numbers, one an extent, or refuse them."""
    if not _sequence(strides) or len(strides) != len(extents):
        raise _unsupported(f"strides {show(strides)} must be a list of one number for each of {len(extents)} extents")
    steps = [whole(stride) for stride in strides]
    if None in steps:
        axis = steps.index(None)
        raise _unsupported(f"stride {show(strides[axis])} on axis {axis} is not a whole number of elements")
    return [step for step in steps if step is not None]


def _row_pitch(extents: tuple[int, ...], strides: Sequence[int]) -> int:
    """Return the distance between rows in elements, or refuse strides that are not one pitch of at least the width."""
    steps = _steps(extents, strides)
    width = extents[-1]
    if 0 in extents:
        return width
    # The stride of an extent of one is never used; array libraries put anything there.
    moves = [(axis, extent, step) for axis, (extent, step) in enumerate(zip(extents, steps, strict=True)) if extent > 1]
    for axis, _, step in moves:
        if step < 0:
            raise _unsupported(f"stride {show(step)} on axis {axis} is negative; copy to contiguous rows first")
    if width > 1 and steps[-1] != 1:
        raise _unsupported(f"inner stride {show(steps[-1])} is not 1; kernels read adjacent elements, so copy first")
    return _fold([(extent, step) for axis, extent, step in moves if axis < len(extents) - 1], width)


def _fold(leading: list[tuple[int, int]], width: int) -> int:
    """Return the one pitch that (extent, stride) of the leading axes amount to, or refuse them."""
    for (_, outer), (extent, inner) in pairwise(leading):
        if outer != extent * inner:
            raise _unsupported(
                f"strides do not fold into rows one pitch apart: {show(outer)} is not {extent} x {show(inner)}; "
                "copy to contiguous rows first"
            )
    pitch = leading[-1][1] if leading else width
    if pitch < width:
        message = f"row pitch {pitch} is less than the width {width}, so rows overlap; copy to contiguous rows first"
        raise _unsupported(message)
    return pitch


def _unsupported(message: str) -> WorkloadError:
    return WorkloadError("layout_unsupported", "strides", message)
