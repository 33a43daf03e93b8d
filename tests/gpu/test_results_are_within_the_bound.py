"""Every recipe, on every geometry and layout that is legal for it, stays within the FP64 bound of its own chain."""

from __future__ import annotations

from collections import Counter

import cupy
import pytest

from kernels.guard import Verdict, judge
from kernels.recipe import Recipe
from tests.gpu.geometries import LAYOUTS, Layout, fewest_rows, shapes, shapes_at, takes
from tests.gpu.tensors import (
    CUBS,
    DTYPES,
    FURTHER,
    ORIGINAL,
    SCANS,
    SPLITS,
    Kernels,
    blank,
    check,
    prepared,
    random,
    whole_width,
)

ROWS = (1, 2, 3, 17, 64, 127, 131, 132, 133, 300, 1024)
WIDTHS = (
    *(1, 2, 31, 33, 127, 128, 255, 256, 257, 511, 512, 513, 1000, 1024, 1025),
    *(2047, 2048, 2304, 2305, 2560, 3584, 4097, 8192, 50257, 131072),
)
MOST_ELEMENTS = 2**24


def check_every_row_count(
    kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str, width: int, counts: tuple[int, ...] = ROWS
) -> None:
    """Check fresh inputs at every row count that is not too large."""
    for seed, rows in enumerate(counts):
        if rows * width <= MOST_ELEMENTS:
            x = random(dtype, rows, width, seed=seed)
            check(prepared(kernels, recipe, dtype, rows, width, sm_count), x, blank(dtype, rows, width))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_original_is_right_at_every_width(kernels: Kernels, sm_count: int, dtype: str, width: int) -> None:
    check_every_row_count(kernels, sm_count, ORIGINAL, dtype, width)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("recipe", CUBS, ids=lambda row: row.id)
def test_every_recipe_is_right_at_every_number_of_chunks(
    kernels: Kernels, sm_count: int, dtype: str, recipe: Recipe
) -> None:
    """Odd numbers of chunks too: where two share a block scan, the last one is alone."""
    chunk = recipe.threads * recipe.items
    for chunks in sorted({1, 2, 3, 4, 5, 7, 131072 // chunk}):
        check_every_row_count(kernels, sm_count, recipe, dtype, chunks * chunk)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("recipe", CUBS, ids=lambda row: row.id)
def test_every_recipe_takes_rows_of_a_wider_tensor(kernels: Kernels, sm_count: int, dtype: str, recipe: Recipe) -> None:
    """Pitches past the width, input's and output's apart; what lies between the rows is left alone."""
    width = 2 * recipe.threads * recipe.items
    for rows in (1, 2, 133):
        x = random(dtype, rows, width, seed=rows, pitch=width + 8)
        y = blank(dtype, rows, width, pitch=2 * width)
        check(prepared(kernels, recipe, dtype, rows, width, sm_count), x, y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("recipe", SPLITS, ids=lambda row: row.id)
def test_split_rows_are_right_at_every_width(kernels: Kernels, sm_count: int, dtype: str, recipe: Recipe) -> None:
    """One element past a part, whole parts, all but one element of them, and widths that fit nothing."""
    part = whole_width(recipe, 1)
    tried = (*(n * part + more for n in (1, 2, 5, 6) for more in (-1, 0, 1)), 7 * part - 3, 50257, 131072, 151936)
    for width in (width for width in tried if takes(recipe, dtype, 1, width)):
        counts = tuple(rows for rows in (*ROWS, 33, 48) if takes(recipe, dtype, rows, width))
        check_every_row_count(kernels, sm_count, recipe, dtype, width, counts)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("recipe", SPLITS, ids=lambda row: row.id)
def test_split_rows_take_any_base_and_any_pitch(kernels: Kernels, sm_count: int, dtype: str, recipe: Recipe) -> None:
    part = whole_width(recipe, 1)
    for offset in range(9):
        for rows, width, x_gap, y_gap in ((1, 5 * part + 1, 0, 0), (3, 6 * part, 1, 0), (5, 7 * part - 5, 3, 8)):
            ready = prepared(kernels, recipe, dtype, rows, width, sm_count)
            for y_offset in sorted({0, offset, (offset + 3) % 9}):
                x = random(dtype, rows, width, seed=offset, offset=offset, pitch=width + x_gap)
                check(ready, x, blank(dtype, rows, width, offset=y_offset, pitch=width + y_gap))


FURTHER_WIDTHS = (
    *(1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 24, 31, 32, 33, 63, 64, 65, 100, 120, 127, 128, 129, 200, 248, 255, 256, 257),
    *(340, 504, 511, 512, 513, 520, 1000, 1009, 1010, 1016, 1017, 1018, 1024, 1025, 2033, 2034, 2041, 2048, 2050),
    *(2304, 3584, 4097, 5000, 8192, 10001, 16384, 20001, 50257, 131072, 151936),
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("recipe", FURTHER, ids=lambda row: row.id)
def test_further_ways_are_right_at_every_width_that_they_take(
    kernels: Kernels, sm_count: int, dtype: str, recipe: Recipe
) -> None:
    for rows, width in shapes_at(recipe, dtype, FURTHER_WIDTHS):
        counts = {rows, *(count for count in (1, 17, 133, 1024) if takes(recipe, dtype, count, width))}
        check_every_row_count(kernels, sm_count, recipe, dtype, width, tuple(sorted(counts)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("recipe", FURTHER, ids=lambda row: row.id)
def test_further_ways_take_the_bases_and_pitches_that_they_say(
    kernels: Kernels, sm_count: int, dtype: str, recipe: Recipe
) -> None:
    """Any, rows without gaps wherever they start, or whole vectors; on what they do not take the original runs."""
    ran: Counter[tuple[int, Verdict]] = Counter()
    taken = {shape for layout in LAYOUTS for shape in shapes(recipe, dtype, layout)}
    for offset in range(9):
        for rows, width in sorted(taken | {(fewest_rows(recipe, dtype, width), width) for _, width in taken}):
            ready = prepared(kernels, recipe, dtype, rows, width, sm_count)
            for turn, (x_gap, y_gap) in enumerate(((0, 0), (1, 0), (8, 16))):
                y_offset = (offset, (offset + 3) % 9, 0)[(turn + rows) % 3]
                x = random(dtype, rows, width, seed=offset, offset=offset, pitch=width + x_gap)
                y = blank(dtype, rows, width, offset=y_offset, pitch=width + y_gap)
                expected = judge(x.span, y.span, recipe.alignment)
                if expected is Verdict.MISALIGNED or takes(recipe, dtype, rows, width, Layout(offset, x_gap)):
                    check(ready, x, y, expected)
                    ran[offset, expected] += 1
    met = {offset for offset, verdict in ran if verdict is Verdict.RECIPE}
    assert met == set(range(9)) if recipe.alignment[0] in ("any", "packed") else 0 in met
    assert any(verdict is Verdict.MISALIGNED for _, verdict in ran) is (recipe.alignment != ("any", "any"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", range(9))
def test_the_original_takes_any_base_and_any_pitch(kernels: Kernels, sm_count: int, dtype: str, offset: int) -> None:
    """Input and output at offsets of their own, pitches odd and of their own; every form of the kernel is met."""
    gaps = ((0, 0), (1, 0), (0, 3), (5, 8))
    shapes = ((5, 7), (33, 256), (19, 300), (9, 1000), (6, 1025), (5, 2304), (3, 2600), (2, 9001))
    for turn, (rows, width) in enumerate(shapes):
        ready = prepared(kernels, ORIGINAL, dtype, rows, width, sm_count)
        for y_offset in sorted({0, offset, (offset + 3) % 9}):
            for x_gap, y_gap in (gaps[(turn + offset) % 4], gaps[(turn + offset + 1) % 4]):
                x = random(dtype, rows, width, seed=offset, offset=offset, pitch=width + x_gap)
                check(ready, x, blank(dtype, rows, width, offset=y_offset, pitch=width + y_gap))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "width"), [(5000, 100), (2200, 300), (400, 700), (3000, 1500), (600, 4097)])
def test_the_original_takes_odd_pitches_with_many_rows(
    kernels: Kernels, sm_count: int, dtype: str, rows: int, width: int
) -> None:
    """Rows of one CTA lie at different offsets from a vector boundary, and still take the same steps."""
    x = random(dtype, rows, width, offset=1, pitch=width + 1)
    y = blank(dtype, rows, width, offset=2, pitch=width + 3)
    check(prepared(kernels, ORIGINAL, dtype, rows, width, sm_count), x, y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "width"),
    [*((1_000_000, width) for width in (1, 3, 7, 16, 33, 127)), (65_537, 128), (1, 1_048_576), (1, 1_048_575)],
)
def test_very_many_rows_and_very_long_ones_are_right(
    kernels: Kernels, sm_count: int, dtype: str, rows: int, width: int
) -> None:
    x = random(dtype, rows, width, seed=1)
    others = (row for row in (*SPLITS, *FURTHER) if takes(row, dtype, rows, width))
    for recipe in (ORIGINAL, *others):
        check(prepared(kernels, recipe, dtype, rows, width, sm_count), x, blank(dtype, rows, width))


def test_every_recipe_counts_elements_past_32_bits(kernels: Kernels, sm_count: int) -> None:
    """The last row of input and output starts more than 2^31 elements after the first, without as much work."""
    if cupy.cuda.runtime.memGetInfo()[0] < 64 * 2**30:
        pytest.skip("two tensors of 5 GiB and what checks them need 64 GiB of free device memory")
    gaps = Layout(x_gap=8)
    for recipe in (row for row in SCANS if shapes(row, "float16", gaps)):
        _, width = shapes(recipe, "float16", gaps)[-1]
        rows = max(5, fewest_rows(recipe, "float16", width, gaps))
        pitch = 2**31 // (rows - 1) // 8 * 8 + 8 + width % 8
        x, y = random("float16", rows, width, pitch=pitch), blank("float16", rows, width, pitch=pitch)
        check(prepared(kernels, recipe, "float16", rows, width, sm_count), x, y)
    del x, y
    cupy.get_default_memory_pool().free_all_blocks()
