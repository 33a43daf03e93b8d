"""The FP64 reference, half a unit in the last place and the comparison: right sums pass, one unit too many does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernels.dtypes import STORAGE, Storage
from kernels.errors import KernelError
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import RECIPES, recipe
from kernels.reference import BLOCK_ELEMENTS, answer, chain, compare, half_ulp, reference
from tests.kernels.orders import cub_order, fp32, original_order

# NumPy warns where an infinity meets its opposite; that it does is part of what is compared.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")

FORM = "prefix.sum"
CUB128 = recipe("scan.cub128")
NUMPY = {"float16": np.float16, "float32": np.float32}
Floats = NDArray[np.float64]


def stored(values: Floats, dtype: str) -> Floats:
    """Round to the storage dtype, to nearest even; the result is FP64 that holds storage values."""
    single = np.asarray(values, np.float32)
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return single.astype(NUMPY[dtype]).astype(np.float64)
    bits = single.view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
    return np.where(np.isnan(single), single, rounded.view(np.float32)).astype(np.float64)


def next_up(value: float, dtype: str) -> float:
    """The next larger storage value."""
    if dtype != "bfloat16":
        return float(np.nextafter(NUMPY[dtype](value), NUMPY[dtype](np.inf)))
    bits = int(np.float32(value).view(np.int32))
    step = 0x10000 if bits >= 0 else -0x10000
    return float(np.int32(bits + step).view(np.float32))


def powers(dtype: Storage) -> list[float]:
    """Values at and around every power of two that the dtype has, its subnormals among them."""
    least = dtype.exponent_min - dtype.bits + 1
    top = math.frexp(dtype.largest)[1]
    found = [2.0**e for e in range(least, top)]
    return found + [1.5 * p for p in found[1:]]


@pytest.mark.parametrize("dtype", STORAGE)
def test_half_a_unit_is_half_the_distance_to_the_next_value(dtype: str) -> None:
    kind = STORAGE[dtype]
    values = np.array([v for v in powers(kind) if v < kind.largest / 2])
    distances = np.array([next_up(float(v), dtype) - v for v in values])
    assert np.array_equal(half_ulp(np, values, kind), distances / 2)
    assert np.array_equal(half_ulp(np, -values, kind), distances / 2)
    if dtype in NUMPY:
        assert np.array_equal(distances, np.spacing(values.astype(NUMPY[dtype])).astype(np.float64))


@pytest.mark.parametrize("dtype", STORAGE)
def test_subnormals_and_zero_share_the_unit_of_the_least_normal(dtype: str) -> None:
    kind = STORAGE[dtype]
    half = 2.0 ** (kind.exponent_min - kind.bits)
    tiny = np.array([0.0, -0.0, 2.0**-140, 2.0**-1000, 2.0**kind.exponent_min])
    tiny = tiny[np.abs(tiny) <= 2.0**kind.exponent_min]
    assert np.array_equal(half_ulp(np, tiny, kind), np.full(tiny.size, half))


@pytest.mark.parametrize("dtype", STORAGE)
@given(data=st.data())
def test_rounding_is_never_further_than_half_a_unit(dtype: str, data: st.DataObject) -> None:
    kind = STORAGE[dtype]
    limit = float(np.float32(kind.largest / 2))
    value = np.array([data.draw(st.floats(-limit, limit, width=32))], np.float64)
    assert abs(stored(value, dtype)[0] - value[0]) <= half_ulp(np, value, kind)[0]


def test_the_reference_is_the_prefix_sum_and_its_scale_that_of_magnitudes() -> None:
    expected, scale = reference(FORM, np, np.array([[1.0, -2.0, 4.0], [0.0, 0.5, -0.5]]))
    assert expected.tolist() == [[1.0, -1.0, 3.0], [0.0, 0.5, 0.0]]
    assert scale.tolist() == [[1.0, 3.0, 7.0], [0.0, 0.5, 1.0]]
    with pytest.raises(KernelError, match=r"no FP64 reference for programs of form 'reduce\.xor'"):
        reference("reduce.xor", np, np.zeros((1, 1)))


def rows_of(kind: str, width: int, dtype: str) -> Floats:
    """One row of storage values of a kind that sums behave differently on."""
    rng = np.random.default_rng(width)
    made = {
        "uniform": lambda: rng.uniform(-1, 1, width),
        "positive": lambda: rng.uniform(0, 0.125, width),
        "cancelling": lambda: np.tile([1.0, -1.0], -(-width // 2))[:width] * rng.uniform(0.5, 2, width),
        "wide range": lambda: rng.choice([-1, 1], width) * 2.0 ** rng.integers(-20, 4, width),
    }
    return stored(made[kind](), dtype)


def in_order(row: Recipe, x: Floats, warps: int | None = None) -> Floats:
    """What the kernel gives, in FP32, in its documented order."""
    single = x.astype(np.float32)
    if row.role == ORIGINAL:
        return original_order(single, fp32, warps or 4, row.items, offset=3).astype(np.float64)
    return cub_order(single, fp32, row.threads // 32, row.items).astype(np.float64)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("kind", ["uniform", "positive", "cancelling", "wide range"])
@pytest.mark.parametrize("row", RECIPES, ids=lambda row: row.id)
def test_sums_in_the_documented_order_are_right(row: Recipe, kind: str, dtype: str) -> None:
    for width in (row.threads * row.items, 4 * row.threads * row.items):
        x = rows_of(kind, width, dtype)
        out = stored(in_order(row, x), dtype)
        found = compare(np, FORM, row, dtype, x[None], out[None])
        assert found.right
        assert (found.elements, found.bad_finite, found.bad_special) == (width, 0, 0)
        assert found.worst_share <= 1


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("width", [1, 2, 31, 513, 2304])
def test_sums_of_every_form_of_the_original_are_right(warps: int, width: int) -> None:
    original = recipe("scan.original")
    x = rows_of("positive", width, "float32")
    assert compare(np, FORM, original, "float32", x[None], in_order(original, x, warps)[None]).right


@pytest.mark.parametrize("dtype", STORAGE)
@given(data=st.data())
def test_the_last_value_within_the_bound_passes_and_the_next_does_not(dtype: str, data: st.DataObject) -> None:
    """The bound is exact: of neighbouring storage values, one at it or below is right and one past it is wrong."""
    kind = STORAGE[dtype]
    width = CUB128.threads * CUB128.items
    seed = data.draw(st.integers(0, 2**16))
    x = stored(np.random.default_rng(seed).uniform(0.25, 1, width), dtype)[None]
    expected, scale = reference(FORM, np, x)
    at = data.draw(st.integers(0, width - 1))
    limit = half_ulp(np, expected, kind)[0, at] + (chain(CUB128, width) + 2) * 2.0**-24 * scale[0, at]
    out = stored(expected, dtype)
    value = float(out[0, at])
    while next_up(value, dtype) - expected[0, at] <= limit:
        value = next_up(value, dtype)
    out[0, at] = value
    assert compare(np, FORM, CUB128, dtype, x, out).right
    out[0, at] = next_up(value, dtype)
    found = compare(np, FORM, CUB128, dtype, x, out)
    assert (found.bad_finite, found.bad_special, found.right) == (1, 0, False)
    assert found.worst_share > 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_one_unit_too_many_is_wrong_in_two_byte_storage(dtype: str) -> None:
    """There the FP32 sum is far finer than the storage, so the cast must round to the nearest value."""
    x = stored(np.full(1024, 0.3), dtype)[None]
    expected, _ = reference(FORM, np, x)
    out = stored(expected, dtype)
    assert compare(np, FORM, CUB128, dtype, x, out).right
    away = out.copy()
    above = out >= expected
    away[above] = [next_up(v, dtype) for v in out[above]]
    found = compare(np, FORM, CUB128, dtype, x, away)
    assert found.bad_finite == np.count_nonzero(above) > 0


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize(
    ("row", "out", "special", "finite"),
    [
        ([1, math.inf, 1], [1, math.inf, math.inf], 0, 0),
        ([1, math.inf, 1], [1, math.inf, 2], 1, 0),
        ([1, math.inf, 1], [1, -math.inf, math.inf], 1, 0),
        ([1, math.nan, 1], [1, math.nan, math.nan], 0, 0),
        ([1, math.nan, 1], [1, math.nan, 2], 1, 0),
        ([1, 1, 1], [1, math.nan, 3], 1, 0),
        ([1, 1, 1], [1, math.inf, 3], 1, 0),
        ([math.inf, -math.inf, 1], [math.inf, math.nan, math.nan], 0, 0),
        ([math.inf, -math.inf, 1], [math.inf, math.inf, math.nan], 1, 0),
        ([1, 1, 1], [1, 2, 4], 0, 1),
        ([0, -0.0, 0], [0, 0, -0.0], 0, 0),
    ],
)
def test_specials_are_compared_as_specials(
    dtype: str, row: list[float], out: list[float], special: int, finite: int
) -> None:
    found = compare(np, FORM, CUB128, dtype, np.array([row]), np.array([out], np.float64))
    assert (found.bad_special, found.bad_finite) == (special, finite)
    assert found.right == (special == finite == 0)


def test_past_the_storages_range_the_cast_gives_infinity() -> None:
    x = np.array([[65504.0, 65504.0, -65504.0]])
    good = np.array([[65504.0, np.inf, 65504.0]])
    assert compare(np, FORM, CUB128, "float16", x, good).right
    for wrong in (-np.inf, 65504.0, np.nan):
        assert not compare(np, FORM, CUB128, "float16", x, np.array([[65504.0, wrong, 65504.0]])).right
    edge = np.array([[65504.0, 8.0, 0.0]])  # 65512 is nearer to 65504 than to what would be 65536
    assert compare(np, FORM, CUB128, "float16", edge, np.array([[65504.0, 65504.0, 65504.0]])).right


def test_rows_are_compared_in_blocks_without_losing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert BLOCK_ELEMENTS == 2**24
    monkeypatch.setattr("kernels.reference.BLOCK_ELEMENTS", 64)
    x = np.ones((37, 16))
    out = np.cumsum(x, axis=-1)
    assert compare(np, FORM, CUB128, "float32", x, out).right
    for row in (0, 3, 4, 35, 36):
        wrong = out.copy()
        wrong[row, -1] += 1
        found = compare(np, FORM, CUB128, "float32", x, wrong)
        assert (found.elements, found.bad_finite) == (37 * 16, 1)
        assert answer(np, FORM, x).compare(np, CUB128, "float32", wrong) == found, "a reference made once says the same"


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0)])
def test_nothing_compares_right_with_nothing(shape: tuple[int, int]) -> None:
    found = compare(np, FORM, CUB128, "float32", np.zeros(shape), np.zeros(shape))
    assert (found.elements, found.worst_share, found.right) == (0, 0.0, True)
