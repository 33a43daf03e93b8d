"""Every recipe of every reduction on what is legal for it, any base and pitch: extremes exact, sums in their bound."""

from __future__ import annotations

import cupy
import pytest

from kernels import reductions
from kernels.recipe import Recipe
from kernels.recipes import recipes_of
from tests.gpu.geometries import Layout, cases, fewest_rows, shapes, shapes_of_form, tried_shapes
from tests.gpu.reductions import EVERY, FORMS, bits_of, check_every_recipe, legal
from tests.gpu.tensors import DTYPES, Kernels, random

ANY_FORM = pytest.mark.parametrize("form", FORMS)
ANY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)


@ANY_DTYPE
@ANY_FORM
def test_every_recipe_is_right_at_every_geometry(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    met: set[str] = set()
    for turn, (rows, width) in enumerate(tried_shapes(form, dtype)):
        x = random(dtype, rows, width, seed=turn)
        assert check_every_recipe(kernels, sm_count, form, x) >= 1
        met |= {row.id for row in legal(form, x)}
    assert met == {row.id for row in recipes_of(form) if dtype in row.dtypes}


@ANY_DTYPE
@pytest.mark.parametrize("form", ["reduce.sum", "reduce.max", "map.divide_by_count.reduce.sum.suppress"])
@pytest.mark.parametrize("offset", range(1, 9))
def test_any_base_and_any_pitch_is_taken(kernels: Kernels, sm_count: int, form: str, dtype: str, offset: int) -> None:
    """Input and results at offsets and pitches of their own; rows of one CTA lie at different offsets from a vector."""
    shapes = (
        (700, 3),
        (500, 27),
        (500, 59),
        (300, 64),
        (90, 127),
        (33, 256),
        (19, 1000),
        (6, 2305),
        (3, 9001),
        (2, 40000),
    )
    for turn, (rows, width) in enumerate(shapes):
        gap = (offset + turn) % 4
        x = random(dtype, rows, width, seed=offset, offset=offset, pitch=width + gap)
        assert check_every_recipe(kernels, sm_count, form, x, offset=(offset + turn) % 5, pitch=1 + turn % 3) >= 1


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.id)
def test_every_recipe_takes_the_bases_and_pitches_that_it_says(kernels: Kernels, sm_count: int, row: Recipe) -> None:
    """Rows of a wider tensor, on boundaries and off them; by the recipes with aligned loads where rows are aligned."""
    for dtype in row.dtypes:
        for case in cases(row, dtype):
            lies = case.layout
            x = random(dtype, case.rows, case.width, offset=lies.x_offset, pitch=case.width + lies.x_gap)
            places = {"offset": lies.y_offset, "pitch": 1 + lies.y_gap}
            assert check_every_recipe(kernels, sm_count, row.form, x, only=row, **places) == 1


@ANY_DTYPE
@pytest.mark.parametrize(
    ("rows", "width"), [(1_000_000, 1), (1_000_001, 5), (1_000_000, 8), (1_000_000, 31), (1_000_000, 127)]
)
def test_a_million_short_rows_are_right(kernels: Kernels, sm_count: int, dtype: str, rows: int, width: int) -> None:
    for form in ("reduce.sum", "reduce.max"):
        check_every_recipe(kernels, sm_count, form, random(dtype, rows, width, seed=1))


@ANY_DTYPE
@pytest.mark.parametrize(("rows", "width"), [(1, 2**20), (1, 2**20 - 1), (4, 2**18), (16, 131_073), (600, 9000)])
def test_few_wide_rows_are_right(kernels: Kernels, sm_count: int, dtype: str, rows: int, width: int) -> None:
    for form in ("reduce.sum", "reduce.min", "map.divide_by_count.reduce.sum"):
        for offset in (0, 3):
            x = random(dtype, rows, width, seed=2, offset=offset)
            assert reductions.SPLIT in {row.role for row in legal(form, x)}
            check_every_recipe(kernels, sm_count, form, x)


@ANY_DTYPE
@ANY_FORM
def test_recipes_that_claim_to_equal_the_original_do(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    """Bit for bit; of extremes that is every recipe."""
    given = ((1000, 64), (300, 256), (17, 1024), (9, 2048), (2, 4096), (40, 8192), (3, 40_000))
    for rows, width in shapes_of_form(form, dtype, given):
        x = random(dtype, rows, width, seed=width)
        first, *others = legal(form, x)
        wanted = bits_of(kernels, sm_count, first, x)
        for row in others:
            equal = (bits_of(kernels, sm_count, row, x) == wanted).all()
            assert equal or row.numerics != "bit_equal", f"{row.id} {dtype} {rows} x {width}"


def test_the_last_row_may_start_past_32_bits(kernels: Kernels, sm_count: int) -> None:
    """More than 2^31 elements after the first, without as much work."""
    if cupy.cuda.runtime.memGetInfo()[0] < 32 * 2**30:
        pytest.skip("a tensor of 5 GiB and what checks it need 32 GiB of free device memory")
    for row in recipes_of("reduce.sum"):
        gaps = Layout(x_gap=8)
        if "float16" in row.dtypes and shapes(row, "float16", gaps):
            _, width = shapes(row, "float16", gaps)[-1]
            rows = max(5, fewest_rows(row, "float16", width, gaps))
            x = random("float16", rows, width, pitch=2**31 // (rows - 1) // 8 * 8 + 8)
            assert check_every_recipe(kernels, sm_count, "reduce.sum", x, only=row) == 1
            del x
            cupy.get_default_memory_pool().free_all_blocks()
