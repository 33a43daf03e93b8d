"""Zeros, subnormals, huge values, infinities and NaN: every recipe says what FP32 addition says, to the bit.

Rows are made so that FP32 sums are exact in any order of additions; NumPy's sequential FP32 sum is then the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernels.recipe import Recipe
from tests.gpu.geometries import Shape, shapes_at
from tests.gpu.tensors import (
    DTYPES,
    ORIGINAL,
    SCANS,
    Kernels,
    blank,
    holding,
    host_bits,
    host_values,
    prepared,
    run,
)

ANY_RECIPE = pytest.mark.parametrize("recipe", SCANS, ids=lambda row: row.id)
ANY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)
LEAST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}
WIDTHS = (1, 2, 4, 24, 33, 64, 120, 200, 256, 300, 512, 513, 1000, 1024, 2305, 8192, 50257)
ROWS = 11  # more than any test has of its own
RNG = np.random.default_rng(20250101)


def expected_bits(stored: Any, dtype: str) -> Any:
    """NumPy's FP32 sums of the stored values, cast once to the storage dtype."""
    with np.errstate(all="ignore"):
        return host_bits(np.cumsum(host_values(stored, dtype), axis=-1, dtype=np.float32), dtype)


def same(dtype: str, got: Any, wanted: Any) -> Any:
    """Equal bits, any NaN for any NaN, either zero for either zero."""
    one, other = host_values(got, dtype), host_values(wanted, dtype)
    return (got == wanted) | (np.isnan(one) & np.isnan(other)) | ((one == 0) & (other == 0))


def exact(kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str, values: Any) -> Any:
    """Run and compare with the exact answer; return the output as FP32 values."""
    rows, width = values.shape
    x, y = holding(dtype, values), blank(dtype, rows, width)
    stored = x.bits.get()
    run(prepared(kernels, recipe, dtype, rows, width, sm_count), x, y)
    got = y.bits.get()
    wrong = np.argwhere(~same(dtype, got, expected_bits(stored, dtype)))
    assert wrong.size == 0, f"{recipe.id} {dtype} {rows} x {width}: {len(wrong)} wrong, the first at {wrong[0]}"
    return host_values(got, dtype)


def shapes_of(recipe: Recipe, dtype: str) -> tuple[Shape, ...]:
    """Return shapes that a recipe takes; `again` fills their rows."""
    return shapes_at(recipe, dtype, WIDTHS, ROWS)


def again(values: Any, rows: int) -> Any:
    """Return so many rows: the values, and again from their first row on."""
    return values[np.arange(rows) % len(values)]


@ANY_DTYPE
@ANY_RECIPE
def test_sums_of_whole_numbers_are_exact(kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str) -> None:
    """The cast rounds to nearest even, and past 65504 FP16 is infinite."""
    for rows, width in shapes_of(recipe, dtype):
        exact(kernels, sm_count, recipe, dtype, RNG.integers(-8, 9, (rows, width)))
        exact(kernels, sm_count, recipe, dtype, -RNG.integers(1, 9, (rows, width)))
        out = exact(kernels, sm_count, recipe, dtype, np.full((rows, width), 8.0))
        assert np.isinf(out[:, -1]).all() == (dtype == "float16" and 8 * width >= 65520)


@ANY_DTYPE
@ANY_RECIPE
def test_subnormals_are_neither_flushed_nor_rounded(
    kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str
) -> None:
    for rows, width in shapes_of(recipe, dtype):
        out = exact(kernels, sm_count, recipe, dtype, RNG.integers(1, 20, (rows, width)) * LEAST[dtype])
        assert (out > 0).all()
        exact(kernels, sm_count, recipe, dtype, RNG.integers(-20, 20, (rows, width)) * LEAST[dtype])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@ANY_RECIPE
def test_the_controls_1e20_and_1e_40(kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str) -> None:
    for rows, width in shapes_of(recipe, dtype):
        values = np.zeros((4, width))
        values[0, width // 2] = 1e20
        values[1, 0], values[1, -1] = (1e20, -1e20) if width > 1 else (1e20, 1e20)
        values[2, :200] = 1e-40
        values[3, :200] = -1e-40
        out = exact(kernels, sm_count, recipe, dtype, again(values, rows))
        assert out[0, -1] == np.float32(host_values(host_bits(np.float32([1e20]), dtype), dtype)[0])
        assert out[2, -1] > 0 > out[3, -1]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@ANY_RECIPE
def test_past_fp32_the_sum_is_infinite(kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str) -> None:
    for rows, width in shapes_of(recipe, dtype):
        out = exact(kernels, sm_count, recipe, dtype, again(np.array([[3e38], [-3e38]]) * np.ones(width), rows))
        assert np.isposinf(out[0, 1:]).all()
        assert np.isneginf(out[1, 1:]).all()


def special(*places: tuple[float, float]) -> Callable[[int], Any]:
    """Make a row of small whole numbers with these (share of the row, value) put in."""

    def make(width: int) -> Any:
        row = RNG.integers(-4, 5, width).astype(np.float64)
        for share, value in places:
            row[min(width - 1, int(share * width))] = value
        return row

    return make


SPECIALS = (
    special((0.0, np.nan)),
    special((0.5, np.nan)),
    special((1.0, np.nan)),
    special((0.3, np.inf)),
    special((0.3, -np.inf)),
    special((0.2, np.inf), (0.7, np.inf)),
    special((0.2, np.inf), (0.7, -np.inf)),
    special((0.7, np.inf), (0.2, -np.inf)),
    special((0.2, np.nan), (0.7, np.inf)),
    special((0.999, -np.inf)),
)


@ANY_DTYPE
@ANY_RECIPE
def test_nan_and_infinity_reach_what_follows_them_and_nothing_else(
    kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str
) -> None:
    for rows, width in shapes_of(recipe, dtype):
        exact(kernels, sm_count, recipe, dtype, again(np.stack([make(width) for make in SPECIALS]), rows))
        values = RNG.integers(-4, 5, (rows, width)).astype(np.float64)
        values[np.arange(rows), RNG.integers(0, width, rows)] = np.nan
        exact(kernels, sm_count, recipe, dtype, values)


@ANY_DTYPE
@ANY_RECIPE
def test_zeros_of_either_sign_sum_to_zero(kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str) -> None:
    for rows, width in shapes_of(recipe, dtype):
        out = exact(kernels, sm_count, recipe, dtype, again(np.array([[0.0], [-0.0]]) * np.ones(width), rows))
        assert (out == 0).all()
        assert not np.signbit(out[0]).any()


@ANY_DTYPE
def test_rows_of_one_element_are_themselves(kernels: Kernels, sm_count: int, dtype: str) -> None:
    least = LEAST[dtype]
    values = np.array([[1.5], [-2.0], [65504.0], [least], [-least], [np.inf], [-np.inf], [np.nan], [-1.0]])
    out = exact(kernels, sm_count, ORIGINAL, dtype, values)
    assert np.array_equal(out, host_values(host_bits(values, dtype), dtype), equal_nan=True)


@ANY_DTYPE
@ANY_RECIPE
def test_no_row_leaks_into_another(kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str) -> None:
    """Several short rows share a CTA: a NaN or an infinity in one leaves its neighbours alone."""
    for rows, width in shapes_at(recipe, dtype, (1, 3, 8, 24, 31, 64, 100, 128, 256, 300, 513, 1000, 1024), 60):
        values = RNG.integers(-4, 5, (rows, width)).astype(np.float64)
        values[::7, width // 2] = np.nan
        values[3::7, width // 3] = np.inf
        exact(kernels, sm_count, recipe, dtype, values)
