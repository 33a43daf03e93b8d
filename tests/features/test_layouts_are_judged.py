"""What a shape, stride, dtype, alignment or demand must be; what is refused is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from features.errors import FeatureError, WorkloadError
from features.program import OPS
from features.workload import MAX_TENSOR_BYTES, Workload, workload

HUGE = 10**5000  # more digits than Python turns into text
HUGE_CASE = pytest.param(HUGE, id="huge")

REFUSED_SHAPES: dict[str, tuple[Any, str, str]] = {
    "rank 0": ((), "shape_invalid", "0 extents"),
    "more than 64 extents": ((1,) * 65, "shape_invalid", "65 extents"),
    "negative": ((-1, 8), "shape_invalid", "-1 on axis 0"),
    "fractional": ((8, 2.5), "shape_invalid", "2.5 on axis 1"),
    "whole, but a float": ((8, 1024.0), "shape_invalid", "1024.0 on axis 1"),
    "NaN": ((float("nan"), 8), "shape_invalid", "nan on axis 0"),
    "infinite": ((8, float("inf")), "shape_invalid", "inf on axis 1"),
    "a bool": ((True, 8), "shape_invalid", "True on axis 0"),
    "text": (("8", 8), "shape_invalid", "'8' on axis 0"),
    "null": ((None, 8), "shape_invalid", "None on axis 0"),
    "a list in it": (([1, 2], 8), "shape_invalid", "[1, 2] on axis 0"),
    "an array in it": ((np.arange(3), 8), "shape_invalid", "on axis 0"),
    "thousands of digits": ((HUGE, 8), "index_overflow", "thousands of digits"),
    "thousands of digits below zero": ((-HUGE, 8), "shape_invalid", "thousands of digits"),
    "past the largest tensor": ((2**48,), "index_overflow", "281474976710656 on axis 0"),
    "a product past it": ((2**40, 2**40), "index_overflow", "spans more than"),
    "64 wide extents": ((2**47,) * 64, "index_overflow", "spans more than"),
    "text for a shape": ("128x8192", "shape_invalid", "not a list"),
    "bytes for a shape": (b"ab", "shape_invalid", "not a list"),
    "a number for a shape": (128, "shape_invalid", "not a list"),
    "an object for a shape": ({"rows": 1}, "shape_invalid", "not a list"),
}


@pytest.mark.parametrize(("shape", "code", "said"), REFUSED_SHAPES.values(), ids=REFUSED_SHAPES)
def test_a_shape_that_is_none_is_refused_with_its_value(shape: Any, code: str, said: str) -> None:
    """The error carries a code, the field, and the value or count that is wrong."""
    with pytest.raises(WorkloadError) as caught:
        workload("scan", shape, "float16")
    assert (caught.value.code, caught.value.field) == (code, "shape")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("shape", "rows", "width"),
    [
        ((8192,), 1, 8192),
        ((2, 3, 5), 6, 5),
        ((0, 7), 0, 7),
        ((7, 0), 7, 0),
        ((0, 0), 0, 0),
        ((1,) * 64, 1, 1),
        ((2, 0, 5), 0, 5),
    ],
)
def test_rows_are_the_product_of_all_extents_but_the_last(shape: tuple[int, ...], rows: int, width: int) -> None:
    """Zero-sized inputs of every kind are legal."""
    work = workload("scan", shape, "float16")
    assert (work.rows, work.width, work.row_pitch) == (rows, width, width)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    """A shape computed with NumPy needs no conversion, and the workload holds plain ints."""
    work = workload("scan", (np.int64(3), np.uint8(8)), "float32", strides=(np.int32(16), np.int64(1)))
    assert work == workload("scan", (3, 8), "float32", strides=(16, 1))
    assert type(work.rows) is type(work.width) is type(work.row_pitch) is int


def strided(array: np.ndarray[Any, Any]) -> Workload:
    """Return the workload of an array as it lies in memory."""
    steps = tuple(step // array.itemsize for step in array.strides)
    return workload("scan", array.shape, str(array.dtype), strides=steps)


X = np.zeros((6, 8), dtype=np.float32)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (X[:, ::2], "inner stride 2 is not 1"),
        (X.T, "inner stride 8 is not 1"),
        (np.broadcast_to(X[0], (6, 8)), "row pitch 0 is less than the width 8"),
        (X[:, ::-1], "stride -1 on axis 1 is negative"),
        (X[::-1], "stride -8 on axis 0 is negative"),
        (X.reshape(2, 3, 8)[:, :2], "do not fold into rows one pitch apart"),
        (X.reshape(2, 3, 8).transpose(1, 0, 2), "do not fold into rows one pitch apart"),
        (np.lib.stride_tricks.sliding_window_view(X.ravel(), 8), "row pitch 1 is less than the width 8"),
    ],
)
def test_a_layout_that_no_kernel_reads_is_refused(array: np.ndarray[Any, Any], said: str) -> None:
    """Every other step, transposed, broadcast, reversed, unfoldable and overlapping rows: each by its stride."""
    with pytest.raises(WorkloadError, match=said) as caught:
        strided(array)
    assert (caught.value.code, caught.value.field) == ("layout_unsupported", "strides")


@pytest.mark.parametrize(
    ("array", "pitch"),
    [
        (X, 8),
        (X[:, :5], 8),
        (X[::2], 16),
        (X.reshape(2, 3, 8), 8),
        (X[:1, :5], 5),
        (X[:, :1], 8),
        (X[:, ::9], 8),
        (X[:0], 8),
        (X[:1][::-1], 8),
    ],
    ids=[
        "whole",
        "left part",
        "every other row",
        "folded",
        "one row",
        "one column",
        "a column by steps",
        "none",
        "a row",
    ],
)
def test_rows_one_pitch_apart_are_taken(array: np.ndarray[Any, Any], pitch: int) -> None:
    """Views whose rows are whole and evenly spaced need no copy; the stride of a single element does not matter."""
    assert strided(array).row_pitch == pitch


@pytest.mark.parametrize(
    "strides", [(8,), (8, 1, 1), "81", 8, {"0": 8}, (8, 1.0), (8, True), (None, 1), (8, float("nan"))]
)
def test_strides_that_are_no_list_of_whole_numbers_are_refused(strides: Any) -> None:
    """Wrong length, wrong type and fractions name the strides."""
    with pytest.raises(WorkloadError) as caught:
        workload("scan", (6, 8), "float32", strides=strides)
    assert (caught.value.code, caught.value.field) == ("layout_unsupported", "strides")


@pytest.mark.parametrize("pitch", [2**60, HUGE_CASE])
def test_a_pitch_past_the_largest_tensor_is_refused(pitch: int) -> None:
    """The strides are named, since the shape alone would fit."""
    with pytest.raises(WorkloadError) as caught:
        workload("scan", (6, 8), "float32", strides=(pitch, 1))
    assert (caught.value.code, caught.value.field) == ("index_overflow", "strides")


@pytest.mark.parametrize("alignment", [0, 3, -16, 16.0, True, None, "16", float("nan"), HUGE_CASE])
def test_an_alignment_is_a_power_of_two(alignment: Any) -> None:
    """And a whole number of bytes."""
    with pytest.raises(WorkloadError) as caught:
        workload("scan", (6, 8), "float32", alignment_bytes=alignment)
    assert (caught.value.code, caught.value.field) == ("alignment_invalid", "alignment")


def test_an_alignment_is_of_whole_elements() -> None:
    """Two bytes are one float16 and less than one float32."""
    assert workload("scan", (6, 8), "float16", alignment_bytes=2).alignment_bytes == 2
    with pytest.raises(WorkloadError, match="less than one float32 element") as caught:
        workload("scan", (6, 8), "float32", alignment_bytes=2)
    assert (caught.value.code, caught.value.field) == ("misaligned", "alignment")


def test_an_alignment_that_is_not_given_is_16() -> None:
    """And larger ones are taken as they are."""
    assert workload("scan", (1, 8), "float16").alignment_bytes == 16
    assert workload("scan", (1, 8), "float16", alignment_bytes=2**21).alignment_bytes == 2**21


@pytest.mark.parametrize("numerics", ["exact", "", None, 1, ["any"]])
def test_numerics_that_are_not_known_are_refused(numerics: Any) -> None:
    """With those that are."""
    with pytest.raises(WorkloadError, match="use one of any, bit_equal"):
        workload("scan", (1, 8), "float16", numerics=numerics)


@pytest.mark.parametrize("dtype", ["float64", "Float16", "", None, 16, HUGE_CASE, ["float16"]])
def test_a_dtype_that_is_not_known_is_refused_with_those_that_are(dtype: Any) -> None:
    """Names are exact, and wrong types do not crash."""
    with pytest.raises(FeatureError, match="use one of float16, bfloat16, float32"):
        workload("scan", (1, 8), dtype)


@pytest.mark.parametrize("op", ["scam", "", None, 1, HUGE_CASE, ["scan"], "prefix.sum", "x" * 10_000])
def test_an_op_that_is_not_known_is_refused_with_those_that_are(op: Any) -> None:
    """The value is shown, shortened."""
    with pytest.raises(FeatureError, match="use one of scan") as caught:
        workload(op, (1, 8), "float16")
    assert len(str(caught.value)) < 120 + len(", ".join(OPS))


def test_the_largest_tensor_is_taken() -> None:
    """The bound is a bound on bytes, reached exactly."""
    assert workload("scan", (1, MAX_TENSOR_BYTES // 2), "float16").width == MAX_TENSOR_BYTES // 2
    with pytest.raises(WorkloadError, match="spans more"):
        workload("scan", (1, MAX_TENSOR_BYTES // 2 + 1), "float16")
