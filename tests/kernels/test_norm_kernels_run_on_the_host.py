"""The normalization kernels' own source, run thread by thread on the host: right, and inside their tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shutil import which
from typing import Any

import numpy as np
import pytest

from features.program import program_of
from features.proof import Proved, prove
from features.workload import Workload
from kernels.dtypes import storage
from kernels.launch import launch_shape
from kernels.norm_references import ALGEBRAS as REFERENCES
from kernels.norms import NORMS, RMSNORM, SOFTMAX, Norm
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import recipe, recipes_of
from kernels.reference import Comparison, compare
from tests.kernels.emulated import PAGE, bits_of, run, values_of

pytestmark = [
    pytest.mark.skipif(which("g++") is None, reason="needs a host C++ compiler"),
    pytest.mark.filterwarnings("ignore:(invalid value|overflow|divide by zero) encountered:RuntimeWarning"),
]
WIDTHS = (
    *(
        1,
        3,
        7,
        8,
        9,
        17,
        24,
        28,
        32,
        33,
        40,
        57,
        64,
        100,
        128,
        129,
        249,
        256,
        300,
        505,
        512,
        777,
        1000,
        1017,
        1024,
        1025,
    ),
    *(2041, 2048, 2049, 4000, 4089, 4096, 5001, 8185, 8192, 9001, 16377, 16384, 20001, 32761, 32768),
)
# (gap between rows, offset of the first element), in elements; None ends the tensor at a fence.
LAYOUTS = ((0, 0), (0, None), (1, 1), (3, 7), (8, 8))
MOST_THREADS = 3072  # of a launch: each is a fiber
RNG = np.random.default_rng(29)
# Every way of each algebra with its most weights; of the forms between, ways of each template and number of warps. A
# way meets two dtypes where there are most operands, else one; they take turns, so each form meets every dtype.
FEW = (ORIGINAL, "held8x8", "held128x16", "cover32x16", "cover256x32", "streamed256")


def cases() -> Iterator[tuple[Recipe, str]]:
    for norm in NORMS.values():
        ways = [row for row in recipes_of(norm.form) if row.cluster == 1]
        for turn, row in enumerate(ways):
            if norm.fitted or row.id.removeprefix(f"{norm.op}.") in FEW:
                yield row, row.dtypes[turn % len(row.dtypes)]
            if norm.weights == 2:
                yield row, row.dtypes[(turn + 1) % len(row.dtypes)]


def is_legal(row: Recipe, dtype: str, rows: int, width: int, gap: int, offset: int | None) -> bool:
    size = storage(dtype).bytes
    first = (-((rows - 1) * (width + gap) + width) if offset is None else offset) * size % PAGE
    work = Workload(program_of(NORMS[row.form].op, dtype), rows, width, width + gap, first & -first or 256)
    return isinstance(prove(work, row), Proved)


def weights_for(row: Recipe, width: int) -> list[Any]:
    return [RNG.normal(1 - place, 0.5, width) for place in range(row.weights)]


def operands(row: Recipe, dtype: str, weights: Sequence[Any], eps: float) -> list[Any]:
    """What the reference takes: weights as they are stored, and eps where there is one."""
    return [*(values_of(bits_of(weight, dtype), dtype) for weight in weights), *(eps for _ in row.parameters)]


def checked(row: Recipe, dtype: str, values: Any, eps: float = 1e-6, **layout: Any) -> tuple[Comparison, Any]:
    """Run on values with fresh weights, and compare."""
    weights = weights_for(row, values.shape[1])
    given, got = run(row, dtype, values, weights=weights, parameters=(eps,) * len(row.parameters), **layout)
    out = values_of(got, dtype)
    return compare(np, row.form, row, dtype, values_of(given, dtype), out, operands(row, dtype, weights, eps)), out


@pytest.mark.parametrize(("row", "dtype"), [*cases()], ids=lambda part: getattr(part, "id", part))
def test_every_recipe_is_right_and_stays_inside(row: Recipe, dtype: str) -> None:
    """Weights end at a fence, or begin at one; where rows need no boundary they need none either."""
    met = list(geometries(row, dtype))
    assert len(met) > 2
    for turn, (rows, width, gap, offset) in enumerate(met):
        beside = 0 if row.alignment[0] == "rows" else turn % 5
        lies = {"gap": gap, "offset": offset, "spacing": width + gap, "weight_offset": (None, beside)[turn % 2]}
        found, _ = checked(row, dtype, RNG.normal(0, 3, (rows, width)), seed=turn, **lies)
        assert found.right, f"{row.id} {dtype} {rows} x {width}, gap {gap}, offset {offset}: {found}"


def geometries(row: Recipe, dtype: str) -> Iterator[tuple[int, int, int, int | None]]:
    """Yield rows, width, gap and offset: of the widths that a recipe takes the least, the most and some between."""
    for gap, offset in LAYOUTS:
        taken = []
        for width in WIDTHS:
            rows = 3 if width > 512 else 2 * row.threads // row.lanes + 1
            few = launch_shape(row, rows, width, 132).ctas * row.threads <= MOST_THREADS
            if few and is_legal(row, dtype, rows, width, gap, offset):
                taken.append((rows, width, gap, offset))
        yield from sorted({taken[len(taken) * part // 4 - (part > 0)] for part in (0, 2, 4)} if taken else ())


WIDE = ("held32x16", "held128x16", "cover32x16", "cover128x16", "streamed256", "cluster4x256x32c")
FITTED = [norm for norm in NORMS.values() if norm.fitted]


def named(norm: Norm, name: str) -> tuple[Recipe, int]:
    """Return a recipe and a width that it takes."""
    row = recipe(f"{norm.op}.{name}")
    return row, {"held32x16": 504, "held128x16": 1024, "cover32x16": 457, "cover128x16": 1017}.get(name, 2065)


@pytest.mark.parametrize("name", [ORIGINAL, *WIDE])
def test_rows_of_infinities_and_nan_are_as_the_softmax_says(name: str) -> None:
    row, width = named(NORMS[SOFTMAX], name)
    rows = RNG.normal(0, 1, (7, width))
    rows[1], rows[2, 5], rows[3, -1], rows[4, :-1] = -np.inf, np.inf, np.nan, -np.inf
    rows[5, : width // 2], rows[6] = -np.inf, 0.0
    found, out = checked(row, "float32", rows, offset=0)
    assert found.right, found
    assert np.isnan(out[1:4]).all()
    assert out[4].tolist() == [0.0] * (width - 1) + [1.0]
    assert np.allclose(out[6], 1 / width)


@pytest.mark.parametrize("name", [ORIGINAL, *WIDE])
def test_huge_and_tiny_rows_are_what_fp32_says_of_a_mean_square(name: str) -> None:
    """The square of 1e20 is inf and that of 1e-40 is 0; a NaN reaches its whole row and no other."""
    row, width = named(NORMS[RMSNORM], name) if name in FEW else named(NORMS[f"multiply({RMSNORM},w0)"], name)
    rows = np.stack([np.full(width, value) for value in (1e20, 1e-40, 0.0, np.inf, -np.inf, 1.0)])
    rows = np.concatenate([rows, RNG.normal(0, 1, (3, width))])
    rows[6, 3], rows[7, -2], rows[8, width // 2] = np.nan, np.inf, 1e20
    for eps in (0.0, 1e-10, 1e-3):
        weights = [np.ones(width) for _ in range(row.weights)]
        _, got = run(row, "float32", rows, offset=0, weights=weights, parameters=(eps,))
        out = values_of(got, "float32")
        assert (out[0] == 0).all()
        assert np.isnan(out[3:5]).all()
        assert np.allclose(out[5], 1 / np.sqrt(1 + eps))
        assert np.isnan(out[6]).all()
        assert np.isnan(out[7, -2])
        assert (np.delete(out[7:], [width - 2, width // 2], axis=1) == 0).all()
        if eps == 0:
            assert np.isposinf(out[1]).all()
            assert np.isnan(out[2]).all()
        else:
            assert np.allclose(out[1] / 1e-40, 1 / np.sqrt(eps), rtol=1e-4)
            assert (out[2] == 0).all()


@pytest.mark.parametrize("name", [ORIGINAL, *WIDE])
def test_a_constant_row_is_nothing_but_beta(name: str) -> None:
    """Whatever the constant, for its mean is exact: where lanes hold the row, in the end.

    Without eps it is NaN, but beyond 1e26 a last bit that such a mean is off by first has an infinite square.
    """
    row, width = named(FITTED[-1], name)
    constants = (3e38, -1e38, 1e20, -1e20, 1e-40, 0.0, 1 / 3, 1000.1, -7.7, 65504.0)
    rows = np.stack([np.full(width, value) for value in constants])
    gamma, beta = RNG.normal(1, 1, width), RNG.normal(0, 1, width)
    for eps in (1e-10, 1e-3):
        _, got = run(row, "float32", rows, offset=0, weights=[gamma, beta], parameters=(eps,))
        assert np.array_equal(values_of(got, "float32"), np.broadcast_to(np.float32(beta), rows.shape))
    _, got = run(row, "float32", rows[2:], offset=0, weights=[gamma, beta], parameters=(0.0,))
    assert np.isnan(values_of(got, "float32")).all()


@pytest.mark.parametrize("name", [ORIGINAL, *WIDE])
def test_rows_far_from_zero_keep_the_digits_that_they_have(name: str) -> None:
    """LayerNorm of 10,000 and a normal deviate is within two units of its mean's last place; NaN stay in a row."""
    row, width = named(FITTED[-1], name)
    rows = RNG.normal(0, 1, (6, width)) + 10_000
    rows[1] += 990_000
    rows[2], rows[3, 7], rows[4, -1] = RNG.choice([-1e20, 1e20], width), np.nan, -np.inf
    weights = [np.ones(width), np.zeros(width)]
    given, got = run(row, "float32", rows, offset=0, weights=weights, parameters=(0.0,))
    out, known = values_of(got, "float32"), values_of(given, "float32")
    wanted = (known - known.mean(-1, keepdims=True)) / known.std(-1, keepdims=True)
    assert np.allclose(out[[0, 5]], wanted[[0, 5]], atol=2 * 2**-10)
    assert np.allclose(out[1], wanted[1], atol=0.1)
    assert (out[2] == 0).all()
    assert np.isnan(out[3:5]).all()


@pytest.mark.parametrize("name", [ORIGINAL, "held1024x32", "cover1024x32", "streamed256", "streamed1024"])
@pytest.mark.parametrize("norm", FITTED, ids=lambda norm: norm.op)
def test_no_element_of_a_wide_row_is_lost(norm: Norm, name: str) -> None:
    """The bound alone would let a lost pack pass. Sums of ones are exact, so that one changes the rest by 3e-5; and in
    some rows one element makes up nearly all of the state.
    """
    row = recipe(f"{norm.op}.{name}")
    none_is_lost(norm, row, 32_000 if name.startswith(("held", "cover")) else 2**17 + 5)


def none_is_lost(norm: Norm, row: Recipe, width: int) -> None:
    places = [0, 7, width // 2, width - 1]
    rows = np.zeros((1 + len(places), width))
    rows[range(1, len(rows)), places] = 20.0
    rows[0] = 1 if norm.algebra == "softmax" else RNG.choice([-1.0, 1.0], width)
    weights = [np.ones(width), np.zeros(width)][: row.weights]
    given, got = run(row, "float32", rows, offset=0, weights=weights, parameters=(1e-12,) * len(row.parameters))
    wanted, _ = REFERENCES[norm.algebra](np, values_of(given, "float32"), *weights, *(1e-12 for _ in row.parameters))
    assert np.allclose(values_of(got, "float32")[0], wanted[0], rtol=1e-5, atol=0)
    assert np.allclose(values_of(got, "float32"), wanted, rtol=1e-4, atol=0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("name", [ORIGINAL, *WIDE])
def test_layer_norms_of_huge_elements_are_nothing_but_beta(name: str, dtype: str) -> None:
    """Their squares overflow, and no sum of elements or of differences does, up to half of FP32's largest number."""
    row, width = named(FITTED[-1], name)
    if dtype == "bfloat16":
        width = width // 8 * 8 if row.alignment[0] == "rows" else width
    signs, one_huge = RNG.choice([-1.0, 1.0], width), RNG.normal(0, 1, width)
    one_huge[width // 3] = 1.6e38
    halves = np.where(np.arange(width) < width // 2, -1.0, 1.0)
    rows = np.stack([*(size * signs for size in (1e28, 1e30, 5e37, 1.6e38)), 1e34 * halves, 1.6e38 * halves, one_huge])
    gamma, beta = RNG.normal(1, 1, width), RNG.normal(0, 1, width)
    for eps in (0.0, 1e-3):
        _, got = run(row, dtype, rows, offset=0, weights=[gamma, beta], parameters=(eps,))
        stored = values_of(bits_of(beta, dtype), dtype)
        assert np.array_equal(values_of(got, dtype), np.broadcast_to(stored, rows.shape))


@pytest.mark.parametrize("norm", FITTED, ids=lambda norm: norm.op)
def test_the_original_is_right_in_place_and_at_any_offset_of_weights(norm: Norm) -> None:
    row = recipe(f"{norm.op}.original")
    for dtype, rows, width, offset in (("float16", 9, 77, 3), ("float32", 3, 1030, 1), ("bfloat16", 3, 2049, 5)):
        values = RNG.normal(0, 2, (rows, width))
        weights = weights_for(row, width)
        lies = {"gap": 3, "spacing": width + 3, "offset": offset, "weights": weights, "weight_offset": offset + 1}
        lies["parameters"] = (1e-6,) * len(row.parameters)
        given, apart = run(row, dtype, values, y_offset=offset, **lies)
        _, inside = run(row, dtype, values, in_place=True, **lies)
        assert np.array_equal(apart, inside)
        known = operands(row, dtype, weights, 1e-6)
        assert compare(np, row.form, row, dtype, values_of(given, dtype), values_of(inside, dtype), known).right
