"""NaN, infinities, zeros of either sign, subnormals, 1e20 and 1e-40, rows of nothing: every recipe says what FP32 says.

Sums are of numbers whose FP32 sum is exact in any order, so that every recipe's result is known to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.guard import Verdict
from kernels.recipes import original_of, recipe
from kernels.reductions import REDUCTIONS
from tests.gpu.geometries import Shape, shapes_of_form
from tests.gpu.reductions import FORMS, legal
from tests.gpu.tensors import DTYPES, Kernels, blank, holding, host_bits, host_values, prepared, results, run

ANY_FORM = pytest.mark.parametrize("form", FORMS)
ANY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)
LEAST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149}
WIDTHS = (1, 2, 5, 8, 31, 64, 127, 256, 1000, 2048, 4100, 16_384, 20_001)
ROWS = 14
RNG = np.random.default_rng(20250102)
NAN, INF = np.nan, np.inf


def fp32(form: str, values: Any) -> Any:
    """Return what NumPy says in FP32, in an order of its own; extremes tell zeros apart."""
    reduction = REDUCTIONS[form]
    values = values.astype(np.float32)
    entering = ~np.isnan(values) if reduction.suppress else np.ones(values.shape, bool)
    with np.errstate(all="ignore"):
        if reduction.exact:
            sign = np.float32(1 if reduction.algebra == "max" else -1)
            signed = np.where(entering, sign * values, np.float32(-INF))
            found = signed.max(-1)
            positive = ((signed == 0) & ~np.signbit(signed)).any(-1)
            return sign * np.where(found == 0, np.where(positive, np.float32(0.0), np.float32(-0.0)), found)
        total = np.where(entering, values, np.float32(0)).sum(-1, dtype=np.float32) + np.float32(0)
        return total / entering.sum(-1).astype(np.float32) if reduction.mean else total


def same(form: str, dtype: str, got: Any, wanted: Any) -> Any:
    """Equal bits and any NaN for any NaN; of sums either zero for either."""
    one, other = host_values(got, dtype), host_values(wanted, dtype)
    zeros = (one == 0) & (other == 0) & (not REDUCTIONS[form].exact)
    return (got == wanted) | (np.isnan(one) & np.isnan(other)) | zeros


def shapes_of(form: str, dtype: str) -> tuple[Shape, ...]:
    """Return shapes of which each recipe takes some, of at least as many rows as any test has of its own."""
    return shapes_of_form(form, dtype, [(ROWS, width) for width in WIDTHS])


def again(rows: Any, count: int) -> Any:
    """Return the rows, and again from the first on, so that there are at least so many."""
    return rows[np.arange(max(count, len(rows))) % len(rows)]


def exact(kernels: Kernels, sm_count: int, form: str, dtype: str, values: Any) -> Any:
    """Run every legal recipe, compare with the exact answer, and return it as FP32 values."""
    x = holding(dtype, values)
    with np.errstate(all="ignore"):
        wanted = host_bits(fp32(form, host_values(x.bits.get(), dtype))[:, None], dtype)
    for row in legal(form, x):
        y = results(row, x)
        run(prepared(kernels, row, dtype, x.rows, x.width, sm_count), x, y)
        wrong = np.argwhere(~same(form, dtype, y.bits.get(), wanted))
        assert wrong.size == 0, f"{row.id} {dtype} {x.rows} x {x.width}: {len(wrong)} wrong, the first at {wrong[0]}"
    return host_values(wanted, dtype)[:, 0]


def row_with(width: int, *places: tuple[float, float]) -> Any:
    """Make a row of small whole numbers with these (share of the row, value) put in."""
    row = RNG.integers(-4, 5, width).astype(np.float64)
    for share, value in places:
        row[min(width - 1, int(share * width))] = value
    return row


SPECIALS = (
    *(((0.0, NAN),), ((0.5, NAN),), ((1.0, NAN),), ((0.3, INF),), ((0.3, -INF),), ((0.2, INF), (0.7, INF))),
    *(((0.2, INF), (0.7, -INF)), ((0.2, NAN), (0.7, INF)), ((0.2, -INF), (0.9, NAN)), ((0.999, -INF),)),
    ((0.1, INF), (0.4, NAN), (0.8, -INF)),
)


@ANY_DTYPE
@ANY_FORM
def test_nan_and_infinity_follow_the_policy(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    for rows, width in shapes_of(form, dtype):
        made = [row_with(width, *places) for places in SPECIALS]
        made += [np.full(width, value) for value in (NAN, INF, -INF)]
        found = exact(kernels, sm_count, form, dtype, again(np.stack(made), rows))
        if not REDUCTIONS[form].suppress:
            assert np.isnan(found[:3]).all()


@ANY_DTYPE
@pytest.mark.parametrize(
    ("form", "identity"),
    [
        ("reduce.max.suppress", -INF),
        ("reduce.min.suppress", INF),
        ("reduce.sum.suppress", 0.0),
        ("map.divide_by_count.reduce.sum.suppress", NAN),
    ],
)
def test_a_row_of_nan_alone_gives_the_identity(
    kernels: Kernels, sm_count: int, form: str, identity: float, dtype: str
) -> None:
    """Of a mean, nothing over nothing: NaN."""
    for rows, width in shapes_of(form, dtype):
        found = exact(kernels, sm_count, form, dtype, np.full((rows, width), NAN))
        assert np.array_equal(found, [identity] * rows, equal_nan=True)


@ANY_DTYPE
@ANY_FORM
def test_zeros_of_either_sign(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    for rows, width in shapes_of(form, dtype):
        signs = RNG.integers(0, 2, (6, width))
        zeros = np.where(signs == 1, -0.0, 0.0)
        zeros[0], zeros[1] = 0.0, -0.0
        zeros[2], zeros[2, width // 2] = -0.0, 0.0
        zeros[3], zeros[3, width // 3] = 0.0, -0.0
        made = np.concatenate([zeros, -np.abs(row_with(width))[None]])
        exact(kernels, sm_count, form, dtype, again(made, rows))


@ANY_DTYPE
@ANY_FORM
def test_rows_of_negative_numbers_and_of_one_element(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    """The largest of one negative number is that number."""
    for rows, width in shapes_of(form, dtype):
        exact(kernels, sm_count, form, dtype, -RNG.integers(1, 9, (rows, width)))
    least = LEAST[dtype]
    ones = np.array([[1.5], [-2.0], [65504.0], [least], [-least], [INF], [-INF], [NAN], [-1.0]])
    exact(kernels, sm_count, form, dtype, ones)


@ANY_DTYPE
@ANY_FORM
def test_subnormals_and_the_controls(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    """Nothing is flushed; 1e20 and 1e-40 are what FP32 makes of them. Means of them round, and are left out."""
    if REDUCTIONS[form].mean:
        return
    for rows, width in shapes_of(form, dtype):
        exact(kernels, sm_count, form, dtype, RNG.integers(-20, 20, (rows, width)) * LEAST[dtype])
        values = np.zeros((4, width))
        values[0, width // 2], values[1, 0], values[1, -1] = 1e20, 1e20, -1e20 if width > 1 else 1e20
        values[2, :200], values[3, :200] = 1e-40, -1e-40
        exact(kernels, sm_count, form, dtype, again(values if dtype != "float16" else values / 1e18, rows))


@ANY_DTYPE
def test_the_cast_rounds_once_and_overflows_to_infinity(kernels: Kernels, sm_count: int, dtype: str) -> None:
    for rows, width in shapes_of("reduce.sum", dtype):
        exact(kernels, sm_count, "reduce.sum", dtype, RNG.integers(-8, 9, (rows, width)))
        found = exact(kernels, sm_count, "reduce.sum", dtype, np.full((rows, width), 8.0))
        assert np.isinf(found).all() == (dtype == "float16" and 8 * width >= 65520)


@ANY_DTYPE
@ANY_FORM
def test_no_row_leaks_into_another(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    """Rows share a warp, a CTA, a vector or a stage: a NaN or an infinity in one leaves its neighbours alone."""
    for rows, width in shapes_of_form(form, dtype, [(300, width) for width in (1, 3, 7, 8, 31, 100, 256, 1025)]):
        values = RNG.integers(-4, 5, (rows, width)).astype(np.float64)
        values[::7, width // 2] = NAN
        values[3::7, width // 3] = INF
        exact(kernels, sm_count, form, dtype, values)


@ANY_DTYPE
@pytest.mark.parametrize("form", ["reduce.sum", "reduce.sum.suppress"])
def test_rows_of_no_element_sum_to_zero(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    original = original_of(form)
    x, y = blank(dtype, 300, 0), blank(dtype, 300, 1, pitch=2)
    assert run(prepared(kernels, original, dtype, 300, 1, sm_count), x, y) is Verdict.RECIPE
    assert (y.bits.get() == 0).all()
    assert y.outside_equals(0xFF)
    none, out = blank(dtype, 0, 8), blank(dtype, 0, 1)
    assert run(prepared(kernels, recipe("max.original"), dtype, 1, 8, sm_count), none, out) is Verdict.RECIPE
