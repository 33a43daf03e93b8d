"""Every recipe of every reduction on what is legal for it, any base and pitch: extremes exact, sums in their bound."""

from __future__ import annotations

import cupy
import pytest

from kernels import reductions
from kernels.recipes import recipes_of
from tests.gpu.reductions import FORMS, bits_of, check_every_recipe, legal, vector
from tests.gpu.tensors import DTYPES, Kernels, random

WIDTHS = (
    *(1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 27, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 250, 256, 257),
    *(511, 512, 513, 1000, 1024, 1025, 2048, 2049, 3584, 4096, 4097, 8192, 8193, 16383, 16384, 50257, 131072),
)
ROWS = (1, 2, 3, 17, 64, 131, 257, 1000)
MOST_ELEMENTS = 2**23
ANY_FORM = pytest.mark.parametrize("form", FORMS)
ANY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)


@ANY_DTYPE
@ANY_FORM
def test_every_recipe_is_right_at_every_geometry(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    """Row counts take turns, so that each width meets some of them and each form of launch is met."""
    met: set[str] = set()
    for turn, width in enumerate(WIDTHS):
        possible = [rows for rows in ROWS if rows * width <= MOST_ELEMENTS]
        for rows in {possible[turn % len(possible)], possible[(turn * 3 + 1) % len(possible)], 1}:
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


@ANY_DTYPE
@pytest.mark.parametrize("form", ["reduce.sum", "reduce.max"])
def test_aligned_rows_of_a_wider_tensor_are_taken(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    """By the recipes with aligned loads too."""
    for rows, width in ((300, 16), (40, 256), (9, 2048), (3, 20480)):
        x = random(dtype, rows, width, pitch=width + 2 * vector(dtype), offset=vector(dtype))
        assert f"{form.removeprefix('reduce.')}.aligned" in {row.id for row in legal(form, x)}
        check_every_recipe(kernels, sm_count, form, x, offset=1, pitch=2)


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
    for rows, width in ((1000, 64), (300, 256), (17, 1024), (9, 2048), (2, 4096), (40, 8192), (3, 40_000)):
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
    for width in (64, 1000, 20_000):
        x = random("float16", 5, width, pitch=2**29 + 8)
        check_every_recipe(kernels, sm_count, "reduce.sum", x)
    del x
    cupy.get_default_memory_pool().free_all_blocks()
