"""Every recipe of every normalization on what is legal for it: within its bound, and in special cases as FP32 says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
import pytest
from attrs import evolve

from kernels.dtypes import storage
from kernels.errors import LaunchError
from kernels.guard import Verdict
from kernels.norm_references import ALGEBRAS
from kernels.norms import NORMS
from kernels.recipe import Recipe
from kernels.recipes import original_of, recipes_of
from kernels.reference import Comparison, compare
from tests.gpu.geometries import cases, geometry_of, shapes_of_form
from tests.gpu.normalizations import EPS, EVERY, FORMS, Figures, check_every_recipe, launched, legal, with_weights_at
from tests.gpu.tensors import (
    DTYPES,
    Given,
    Kernels,
    given_for,
    holding,
    host_values,
    prepared,
    random,
    refill,
    results,
    run,
)

if TYPE_CHECKING:
    from calibration.gpu import Session

ANY_FORM = pytest.mark.parametrize("form", FORMS, ids=lambda form: NORMS[form].op)
ANY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)
ANY_RECIPE = pytest.mark.parametrize("row", EVERY, ids=lambda row: row.id)
KERNELS = [(row, dtype) for row in EVERY for dtype in row.dtypes]
ANY_KERNEL = pytest.mark.parametrize(("row", "dtype"), KERNELS, ids=lambda part: getattr(part, "id", part))
# Odd extents, widths narrower than a warp and than a CTA, both sides of a form of the original, and a few rows of each.
TRIED = (
    *((1, 1), (3, 2), (300, 3), (77, 7), (131, 8), (1000, 9), (133, 16), (65, 31), (64, 33), (19, 100), (133, 127)),
    *((17, 255), (9, 513), (33, 1000), (5, 1023), (7, 1024), (4, 1025), (132, 2048), (3, 3584), (64, 4097)),
    *((17, 8191), (5, 12_288), (2, 20_001), (3, 32_761), (2, 50_257), (1, 131_072)),
    *((128, 8192), (8, 32_768), (3, 100_003), (2, 262_145), (1, 524_287), (1, 1_048_576)),
)


@pytest.fixture(scope="module")
def figures() -> Iterator[Figures]:
    """What became of each recipe, written when all tests have run."""
    made = Figures()
    yield made
    made.write()


def epses(form: str) -> tuple[float, ...]:
    """Return the values of eps to try: one, whatever it is, where there is no eps."""
    return EPS if NORMS[form].parameters else EPS[-1:]


@ANY_DTYPE
@ANY_FORM
def test_every_recipe_is_right_at_every_geometry(
    kernels: Kernels, sm_count: int, figures: Figures, form: str, dtype: str
) -> None:
    met: set[str] = set()
    for turn, (rows, width) in enumerate(shapes_of_form(form, dtype, TRIED)):
        x = random(dtype, rows, width, seed=turn)
        eps = epses(form)[turn % len(epses(form))]
        given = given_for(original_of(form), dtype, width, seed=turn, eps=eps if width > 1 else 1e-3)
        met |= check_every_recipe(kernels, sm_count, figures, form, x, given, offset=0)
    on_boundaries = {row.id for row in recipes_of(form) if dtype in row.dtypes}
    assert met == on_boundaries


@ANY_DTYPE
@ANY_FORM
def test_every_eps_is_taken(kernels: Kernels, sm_count: int, figures: Figures, form: str, dtype: str) -> None:
    """Of rows that are no larger than their eps, too: there it decides."""
    original = original_of(form)
    for seed, (rows, width) in enumerate(((19, 64), (5, 1000), (3, 4097))):
        for size in (1.0, 2.0**-8):
            values = np.random.default_rng(seed).normal(0, size, (rows, width))
            for eps in epses(form):
                given = given_for(original, dtype, width, seed=seed, eps=eps)
                assert check_every_recipe(kernels, sm_count, figures, form, holding(dtype, values), given)


@ANY_FORM
def test_no_element_of_a_wide_row_is_lost(kernels: Kernels, sm_count: int, form: str) -> None:
    """The bound alone would let a lost pack pass. Sums of ones are exact, so that one changes the rest by 1.5e-5 and
    more; and in some rows one element makes up nearly all of the state.
    """
    norm = NORMS[form]
    for width in (4096, 32_768, 2**17 + 5, 2**18):
        places = [0, 7, width // 2, width - 1]
        values = np.zeros((1 + len(places), width))
        values[range(1, len(values)), places] = 20.0
        values[0] = 1 if norm.algebra == "softmax" else np.random.default_rng(width).choice([-1.0, 1.0], width)
        x = holding("float32", values)
        weights = tuple(holding("float32", np.full((1, width), 1.0 - place)) for place in range(norm.weights))
        given = Given(weights, (1e-12,) * len(norm.parameters), tuple(weight.raw.copy() for weight in weights))
        wanted, _ = ALGEBRAS[norm.algebra](cupy, x.values().astype(cupy.float64), *given.values)
        for row in legal(form, x):
            got = launched(kernels, sm_count, row, x, given).values()
            near = cupy.allclose(got[0], wanted[0], rtol=1e-5, atol=0), cupy.allclose(got, wanted, rtol=1e-4, atol=0)
            assert all(map(bool, near)), f"{row.id} {width}"


@ANY_RECIPE
def test_every_recipe_takes_the_bases_and_pitches_that_it_says(
    kernels: Kernels, sm_count: int, figures: Figures, row: Recipe
) -> None:
    """Weights lie where they like, too, where the recipe asks for no boundary."""
    for dtype in row.dtypes:
        for turn, case in enumerate(cases(row, dtype)):
            lies, width = case.layout, case.width
            x = random(dtype, case.rows, width, seed=turn, offset=lies.x_offset, pitch=width + lies.x_gap)
            given = given_for(row, dtype, width, seed=turn, offset=0 if row.alignment[0] == "rows" else turn % 9)
            y = launched(kernels, sm_count, row, x, given, offset=lies.y_offset, pitch=width + lies.y_gap)
            found = compare(cupy, row.form, row, dtype, x.values(), y.values(), given.values)
            figures.add(row, dtype, found)
            assert found.right, f"{row.id} {dtype} {case}: {found}"


@ANY_DTYPE
@ANY_FORM
@pytest.mark.parametrize("offset", range(1, 9))
def test_the_original_takes_any_base_of_all(
    kernels: Kernels, sm_count: int, figures: Figures, form: str, dtype: str, offset: int
) -> None:
    row = original_of(form)
    for turn, (rows, width) in enumerate(((33, 5), (19, 300), (9, 1024), (5, 1025), (3, 4099))):
        x = random(dtype, rows, width, seed=turn, offset=offset, pitch=width + turn % 3)
        given = given_for(row, dtype, width, seed=turn, offset=(offset + turn) % 9)
        y = launched(kernels, sm_count, row, x, given, offset=(3 * offset + turn) % 9, pitch=width + turn)
        found = compare(cupy, form, row, dtype, x.values(), y.values(), given.values)
        figures.add(row, dtype, found)
        assert found.right, f"{row.id} {dtype} {rows} x {width}, {offset} elements past a boundary: {found}"


def special_rows(width: int) -> Any:
    """Rows of NaN, infinities, one finite value, zeros, constants whose squares FP32 has not, and mixes of them."""
    rng = np.random.default_rng(width)
    constants = [np.full(width, value) for value in (np.nan, -np.inf, np.inf, 0.0, -0.0, 1e20, -1e20, 1e-40, 1.0, -3.3)]
    one_finite, one_nan, one_infinite, one_huge = np.full(width, -np.inf), *rng.normal(0, 1, (3, width))
    one_finite[width // 3], one_nan[width // 2], one_infinite[-1], one_huge[width // 5] = 1.5, np.nan, np.inf, 1e20
    signs, halves = rng.choice([-1.0, 1.0], width), np.where(np.arange(width) < width // 2, -1.0, 1.0)
    tiny_and_huge = [1e20 * signs, 1e-30 * signs, 1e30 * signs, 5e37 * signs, 1.6e38 * halves]
    return np.stack([*constants, one_finite, one_nan, one_infinite, one_huge, *tiny_and_huge])


@ANY_DTYPE
@ANY_FORM
def test_special_values_are_as_the_original_says(
    kernels: Kernels, sm_count: int, figures: Figures, form: str, dtype: str
) -> None:
    """NaN where it has NaN, its infinities, and finite values near its own."""
    tried = ((48, 9), (16, 256), (32, 1000), (16, 2048), (16, 4099), (16, 40_001))
    for rows, width in shapes_of_form(form, dtype, tried):
        values = special_rows(width)
        x = holding(dtype, values[np.arange(max(rows, len(values))) % len(values)])
        for eps in epses(form):
            given = given_for(original_of(form), dtype, width, eps=eps)
            first = None
            for row in legal(form, x):
                y = launched(kernels, sm_count, row, x, given)
                got = host_values(y.bits.get(), dtype).astype(np.float64)
                first = got if first is None else first
                found = compared(first, got, dtype)
                figures.add(row, dtype, evolve(found, worst_share=0.0))  # a share of another bound
                assert found.right, f"{row.id} {dtype} {x.rows} x {width}, eps {eps}: {found}"


def compared(wanted: Any, got: Any, dtype: str) -> Comparison:
    """Compare with the original: the same NaN and infinities, and finite values two units of storage apart at most.

    In FP32 they are 64 roundings apart at most, 2^-18 of themselves, for they add in other orders.
    """
    finite = np.isfinite(wanted) & np.isfinite(got)
    same = (np.isnan(wanted) & np.isnan(got)) | (wanted == got)
    kind = storage(dtype)
    unit = max(2.0 ** (2 - kind.bits), 2.0**-18)
    limit = unit * np.abs(wanted) + 2.0 ** (kind.exponent_min - kind.bits + 3)
    share = np.where(finite, np.abs(np.where(finite, got, 0) - np.where(finite, wanted, 0)) / limit, 0.0)
    return Comparison(got.size, float(share.max()), int((share > 1).sum()), int((~finite & ~same).sum()))


@ANY_DTYPE
def test_the_documented_special_values_are_those(kernels: Kernels, sm_count: int, dtype: str) -> None:
    """Of the originals, to which the others are held: what their kernels' first lines say."""
    width = 333
    for form, norm in NORMS.items():
        row = original_of(form)
        for eps in epses(form):
            given = given_for(row, dtype, width, eps=eps)
            x = holding(dtype, special_rows(width))
            out = host_values(launched(kernels, sm_count, row, x, given).bits.get(), dtype)
            beta = host_values(given.weights[1].bits.get(), dtype)[0] if norm.weights > 1 else np.zeros(width)
            assert np.isnan(out[[0, 1, 2, 11, 12 if norm.algebra != "rms" else 0]]).all()
            if norm.algebra == "softmax":
                assert (out[10] == np.eye(width)[width // 3]).all()
                assert np.allclose(out[[3, 7, 8]], 1 / width, rtol=1e-2)
            elif norm.algebra == "layer":
                constant = np.broadcast_to(beta, (4, width))
                assert np.isnan(out[[3, 4, 8, 9]]).all() if eps == 0 else np.array_equal(out[[3, 4, 8, 9]], constant)
            elif dtype != "float16":
                assert (out[[5, 6, 14]] == 0).all(), "the squares of 1e20 are inf"
                assert np.isnan(out[3:5]).all() if eps == 0 else (out[3:5] == 0).all()


@ANY_KERNEL
def test_exactly_in_place_is_the_originals(kernels: Kernels, sm_count: int, row: Recipe, dtype: str) -> None:
    rows, width = geometry_of(row, dtype)
    original = original_of(row.form)
    for offset, gap in ((0, 0), (0, 8), (3, 1)):
        given = given_for(row, dtype, width, seed=offset, offset=offset)
        x = random(dtype, rows, width, seed=gap, offset=offset, pitch=width + gap)
        apart = launched(kernels, sm_count, original, x, given, offset=offset, pitch=width + gap)
        before = x.raw.copy()
        ready = prepared(kernels, row, dtype, rows, width, sm_count)
        assert run(ready, x, x, given) is (Verdict.RECIPE if row is original else Verdict.IN_PLACE)
        assert x.outside_equals(before)
        assert given.intact
        assert bool(cupy.array_equal(x.bits, apart.bits))


@ANY_RECIPE
def test_misaligned_rows_and_weights_get_the_original_bit_for_bit(kernels: Kernels, sm_count: int, row: Recipe) -> None:
    """Weights alone off a boundary are enough."""
    if row.alignment[0] != "rows":
        pytest.skip("the recipe takes any base")
    rows, width = geometry_of(row, "bfloat16")
    for x_offset, weights_offset in ((1, 0), (0, 1), (8, 8), (3, 5)):
        x = random("bfloat16", rows, width, seed=x_offset, offset=x_offset)
        given = with_weights_at(given_for(row, "bfloat16", width), weights_offset)
        aligned = x_offset % 8 == 0 and (weights_offset % 8 == 0 or row.weights == 0)
        verdict = Verdict.RECIPE if aligned else Verdict.MISALIGNED
        y = launched(kernels, sm_count, row, x, given, expected=verdict)
        if not aligned:
            same = launched(kernels, sm_count, original_of(row.form), x, given)
            assert bool(cupy.array_equal(y.bits, same.bits))


@ANY_KERNEL
def test_a_graph_replays_on_what_its_buffers_hold_then(
    kernels: Kernels, sm_count: int, session: Session, row: Recipe, dtype: str
) -> None:
    """Input and weights change in place after the capture; eps is what it was captured with."""
    rows, width = geometry_of(row, dtype)
    x, y = random(dtype, rows, width), results(row, random(dtype, rows, width))
    given, ready = given_for(row, dtype, width), prepared(kernels, row, dtype, rows, width, sm_count)
    session.synchronize()
    graph = session.capture(lambda: ready.run(x.span, y.span, session.pointer, given.operands), 2)
    for seed in (1, 2, 3):
        for turn, tensor in enumerate((x, *given.weights)):
            refill(tensor, 10 * seed + turn)
        y.raw.fill(0xFF)
        before, now = x.raw.copy(), evolve(given, before=tuple(weight.raw.copy() for weight in given.weights))
        session.synchronize()
        graph.replay()
        session.synchronize()
        assert y.outside_equals(0xFF)
        assert now.intact
        assert bool(cupy.array_equal(x.raw, before))
        assert compare(cupy, row.form, row, dtype, x.values(), y.values(), given.values).right


@ANY_DTYPE
@pytest.mark.parametrize(
    ("rows", "width"), [*((1_000_000, width) for width in (1, 3, 8, 33, 127)), (1, 2**20), (1, 2**20 - 1), (4, 2**18)]
)
def test_a_million_short_rows_and_few_long_ones_are_right(
    kernels: Kernels, sm_count: int, figures: Figures, dtype: str, rows: int, width: int
) -> None:
    x = random(dtype, rows, width, seed=1)
    for form in FORMS:
        given = given_for(original_of(form), dtype, width)
        check_every_recipe(kernels, sm_count, figures, form, x, given)


@ANY_DTYPE
def test_rows_far_from_zero_stay_within_an_honest_bound(
    kernels: Kernels, sm_count: int, figures: Figures, dtype: str
) -> None:
    """A mean of 100 deviations, and of 10,000 in FP32: the scale says how many digits are left."""
    for rows, width in ((33, 256), (9, 1000), (5, 4096), (2, 20_001)):
        noise = np.random.default_rng(width).normal(0, 1, (rows, width))
        for mean in (100.0, -10_000.0) if dtype == "float32" else (100.0,):
            for form in FORMS:
                given = given_for(original_of(form), dtype, width)
                check_every_recipe(kernels, sm_count, figures, form, holding(dtype, noise + mean), given)


@pytest.mark.parametrize("row", [row for row in EVERY if row.weights], ids=lambda row: row.id)
def test_a_result_that_overlaps_a_weight_is_refused(
    kernels: Kernels, sm_count: int, session: Session, row: Recipe
) -> None:
    """By name, before anything is launched, in a capture too."""
    dtype = row.dtypes[0]
    rows, width = geometry_of(row, dtype)
    x, y = random(dtype, rows, width), results(row, random(dtype, rows, width))
    given, ready = given_for(row, dtype, width), prepared(kernels, row, dtype, rows, width, sm_count)
    for place, name in enumerate(("gamma", "beta")[: row.weights]):
        inside = evolve(y, rows=1, pitch=width, first=y.first + 2 * width * (rows > 1))
        weights = tuple(inside if number == place else weight for number, weight in enumerate(given.weights))
        bad = Given(weights, given.parameters)
        with pytest.raises(LaunchError, match=f"{name} overlaps out"):
            run(ready, x, y, bad)
        with pytest.raises(LaunchError, match=f"{name} overlaps out"):
            session.capture(lambda bad=bad: ready.run(x.span, y.span, session.pointer, bad.operands), 1)
    assert ready.launches.total() == 0
    assert bool((y.raw == 0xFF).all())


@ANY_RECIPE
def test_overlapping_rows_are_right_from_a_copy(kernels: Kernels, sm_count: int, row: Recipe) -> None:
    dtype = row.dtypes[-1]
    rows, width = geometry_of(row, dtype)
    given = given_for(row, dtype, width)
    room = random(dtype, rows + 1, width)
    x, shifted = evolve(room, rows=rows), evolve(room, rows=rows, first=room.first + storage(dtype).bytes * width)
    for source, target in ((x, shifted), (shifted, x)):
        refill(room, rows)
        held, before = source.values().copy(), room.raw.copy()
        assert run(prepared(kernels, row, dtype, rows, width, sm_count), source, target, given) is Verdict.OVERLAP
        assert target.outside_equals(before)
        original = original_of(row.form)
        assert compare(cupy, row.form, original, dtype, held, target.values(), given.values).right
