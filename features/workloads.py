"""Many workloads of one program: the same quantities as `Workload`, with an array where that has a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import Factory, frozen
from numpy.typing import NDArray

from features.errors import WorkloadError, show
from features.expression import CHANNELS
from features.program import Program, axis_of, takes_empty_rows
from features.workload import DEFAULT_ALIGNMENT_BYTES, MAX_TENSOR_BYTES, Workload, judge_demands
from kernels.dtypes import storage

Counts = NDArray[np.int64]


@frozen(eq=False)
class Workloads:
    """`rows`, `width`, `row_pitch` and `inner` are int64 arrays of one length; what else there is holds for all."""

    program: Program
    rows: Counts
    width: Counts
    row_pitch: Counts
    alignment_bytes: int = DEFAULT_ALIGNMENT_BYTES
    numerics: str = "any"
    inner: Counts = Factory(lambda self: np.ones_like(self.rows), takes_self=True)

    @property
    def dtype(self) -> str:
        """The storage dtype, of input and output alike."""
        return self.program.dtype

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, index: int) -> Workload:
        """Return one of them."""
        columns = (self.rows, self.width, self.row_pitch, self.inner)
        rows, width, pitch, inner = (int(column[index]) for column in columns)
        return Workload(self.program, rows, width, pitch, self.alignment_bytes, self.numerics, inner)


def workloads(
    program: Program,
    rows: Sequence[int] | Counts,
    widths: Sequence[int] | Counts,
    *,
    row_pitches: Sequence[int] | Counts | None = None,
    inners: Sequence[int] | Counts | None = None,
    alignment_bytes: int = DEFAULT_ALIGNMENT_BYTES,
    numerics: str = "any",
) -> Workloads:
    """Return workloads of `rows[i]` rows of `widths[i]` elements, contiguous where no pitches are given.

    Along channels `inners[i]` consecutive rows are the positions of an image; 1 where none are given.

    Raises
    ------
    WorkloadError : naming the first index whose value no kernel takes.
    """
    counted = _counts("rows", rows)
    width = _counts("widths", widths)
    pitch = width if row_pitches is None else _counts("row_pitches", row_pitches)
    inner = np.ones_like(counted) if inners is None else _counts("inners", inners)
    if not counted.shape == width.shape == pitch.shape == inner.shape:
        lengths = f"{len(counted)} rows, {len(width)} widths, {len(pitch)} row pitches and {len(inner)} inner extents"
        raise WorkloadError("shape_invalid", "shape", f"{lengths} are not of one length")
    _judge_images(program, counted, inner)
    narrow = (pitch < width) & (counted > 1)
    if narrow.any():
        at = int(narrow.argmax())
        message = f"row pitch {pitch[at]} at index {at} is less than the width {width[at]}, so rows overlap"
        raise WorkloadError("layout_unsupported", "strides", message)
    if not takes_empty_rows(program) and (width == 0).any():
        at = int((width == 0).argmax())
        message = f"{counted[at]} x 0 at index {at} has rows of no element, of which this program has no result"
        raise WorkloadError("empty_row", "shape", message)
    row_bytes = np.maximum(pitch, 1) * storage(program.dtype).bytes
    huge = np.maximum(counted, 1) > MAX_TENSOR_BYTES // row_bytes
    if huge.any():
        at = int(huge.argmax())
        message = (
            f"{counted[at]} x {width[at]} at index {at} spans more than {MAX_TENSOR_BYTES} bytes; split the tensor"
        )
        raise WorkloadError("index_overflow", "shape", message)
    aligned = judge_demands(program.dtype, alignment_bytes, numerics)
    return Workloads(program, counted, width, pitch, aligned, numerics, inner)


def _judge_images(program: Program, rows: Counts, inner: Counts) -> None:
    """Raise `WorkloadError` where rows interleave that must not, or are not whole images."""
    whole = (inner > 0) & (rows % np.maximum(inner, 1) == 0)
    wrong = ~(whole if axis_of(program) == CHANNELS else inner == 1)
    if wrong.any():
        at = int(wrong.argmax())
        message = f"{rows[at]} rows at index {at} are no whole images of {inner[at]} rows that this program interleaves"
        raise WorkloadError("shape_invalid", "shape", message)


def _counts(name: str, values: Any) -> Counts:
    """Return whole numbers from 0 to the largest tensor as int64; a fraction is refused, not rounded."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise WorkloadError(
            "shape_invalid", "shape", f"{name} {show(values)} are not whole numbers ({error})"
        ) from error
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise WorkloadError("shape_invalid", "shape", f"{name} {show(values)} are not a list of 64-bit whole numbers")
    outside = (array < 0) | (array > MAX_TENSOR_BYTES)
    if outside.any():
        at = int(outside.argmax())
        message = f"{name} holds {array[at]} at index {at}, which is not from 0 to {MAX_TENSOR_BYTES}"
        raise WorkloadError("shape_invalid" if array[at] < 0 else "index_overflow", "shape", message)
    return array.astype(np.int64)
