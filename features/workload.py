"""A workload: a program with its rows, width and memory layout, judged before anything else looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from features.errors import WorkloadError
from features.program import Program, program_of
from kernels.dtypes import storage

MAX_RANK = 64
# CUDA devices address 49 bits; 2^47 bytes leave room for input and output and keep every count exact in a double.
MAX_TENSOR_BYTES = 2**47
DEFAULT_ALIGNMENT_BYTES = 16
NUMERICS = ("any", "bit_equal")


@frozen
class Workload:
    """`rows` rows of `width` elements; consecutive rows start `row_pitch` elements apart.

    `alignment_bytes` is what is promised of the base addresses; `numerics` what the caller demands (`any` or
    `bit_equal` to the original).
    """

    program: Program
    rows: int
    width: int
    row_pitch: int
    alignment_bytes: int = DEFAULT_ALIGNMENT_BYTES
    numerics: str = "any"

    @property
    def dtype(self) -> str:
        """The storage dtype, of input and output alike."""
        return self.program.dtype

    def facts(self) -> dict[str, Any]:
        """Return the workload as JSON-ready facts."""
        return {
            "program": self.program.tree(),
            "program_digest": self.program.digest(),
            "rows": self.rows,
            "width": self.width,
            "dtype": self.dtype,
            "row_pitch": self.row_pitch,
            "alignment_bytes": self.alignment_bytes,
            "numerics": self.numerics,
        }


def workload(
    op: str,
    shape: Sequence[int],
    dtype: str,
    *,
    strides: Sequence[int] | None = None,
    alignment_bytes: int = DEFAULT_ALIGNMENT_BYTES,
    numerics: str = "any",
) -> Workload:
    """Return the workload of a named op along the last axis.

    Parameters
    ----------
    shape : extents; all but the last are rows.
    strides : in elements, one an extent; contiguous rows when omitted. The inner stride must be 1 and the leading
        extents must fold into rows one constant pitch apart.
    alignment_bytes : the power of two that divides every base address.

    Raises
    ------
    ProgramError : unknown op or dtype.
    WorkloadError : a shape, stride, alignment or numerics demand that no kernel takes.
    """
    program = program_of(op, dtype)
    extents = _extents(shape)
    width = extents[-1]
    rows = 1
    for extent in extents[:-1]:
        rows *= extent
    element_bytes = storage(dtype).bytes
    pitch = width if strides is None else _row_pitch(extents, strides)
    if max(rows, 1) * max(pitch, 1) * element_bytes > MAX_TENSOR_BYTES:
        message = f"shape {_show(extents)} spans more than {MAX_TENSOR_BYTES} bytes, past what a GPU can address"
        raise WorkloadError("index_overflow", "shape", message)
    if not _is_count(alignment_bytes) or not 1 <= alignment_bytes <= 4096 or alignment_bytes & (alignment_bytes - 1):
        raise WorkloadError(
            "misaligned", "alignment", f"alignment {_show(alignment_bytes)} is not a power of two from 1 to 4096 bytes"
        )
    if alignment_bytes % element_bytes:
        message = f"alignment {alignment_bytes} is less than one {dtype} element ({element_bytes} bytes)"
        raise WorkloadError("misaligned", "alignment", message)
    if numerics not in NUMERICS:
        message = f"numerics {_show(numerics)} is not known; use one of {', '.join(NUMERICS)}"
        raise WorkloadError("numerics_unknown", "numerics", message)
    return Workload(program, rows, width, pitch, alignment_bytes, numerics)


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise WorkloadError("shape_invalid", "shape", f"shape {_show(shape)} is not a list of extents")
    if not 1 <= len(shape) <= MAX_RANK:
        message = f"shape has {len(shape)} extents; a row collective needs 1 to {MAX_RANK}"
        raise WorkloadError("shape_invalid", "shape", message)
    for axis, extent in enumerate(shape):
        if not _is_count(extent):
            message = f"extent {_show(extent)} on axis {axis} is not a nonnegative whole number"
            raise WorkloadError("shape_invalid", "shape", message)
        if extent > MAX_TENSOR_BYTES:
            message = f"extent {_show(extent)} on axis {axis} is past the largest tensor, {MAX_TENSOR_BYTES} bytes"
            raise WorkloadError("index_overflow", "shape", message)
    return tuple(shape)


def _row_pitch(extents: tuple[int, ...], strides: Sequence[int]) -> int:
    """Return the distance between rows in elements, or refuse strides that are not one pitch of at least the width."""
    if isinstance(strides, str) or not isinstance(strides, Sequence) or len(strides) != len(extents):
        raise WorkloadError("layout_unsupported", "strides", f"strides {_show(strides)} must be one number an extent")
    for axis, stride in enumerate(strides):
        if isinstance(stride, bool) or not isinstance(stride, int):
            raise WorkloadError(
                "layout_unsupported", "strides", f"stride {_show(stride)} on axis {axis} is not a whole number of elements"
            )
        if stride < 0:
            message = f"stride {_show(stride)} on axis {axis} is negative; copy to contiguous rows first"
            raise WorkloadError("layout_unsupported", "strides", message)
    width = extents[-1]
    if width > 1 and strides[-1] != 1:
        message = f"inner stride {_show(strides[-1])} is not 1; kernels read rows of adjacent elements, so copy first"
        raise WorkloadError("layout_unsupported", "strides", message)
    if 0 in extents:
        return width
    leading = [(extent, stride) for extent, stride in zip(extents[:-1], strides[:-1], strict=True) if extent > 1]
    for (_, outer), (extent, inner) in zip(leading, leading[1:], strict=False):
        if outer != extent * inner:
            message = (
                f"strides {_show(tuple(strides))} do not fold into rows one pitch apart: "
                f"{_show(outer)} is not {extent} x {_show(inner)}; copy to contiguous rows first"
            )
            raise WorkloadError("layout_unsupported", "strides", message)
    pitch = leading[-1][1] if leading else width
    if pitch < width:
        message = f"row pitch {pitch} is less than the width {width}, so rows overlap; copy to contiguous rows first"
        raise WorkloadError("layout_unsupported", "strides", message)
    return pitch


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _show(value: object) -> str:
    """Return a short, safe rendering of an untrusted value. Integers of thousands of digits have no cheap text."""
    try:
        text = repr(value)
    except ValueError:
        return "with thousands of digits"
    return text if len(text) <= 80 else text[:77] + "..."
