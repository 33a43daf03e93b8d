"""A launch covers every row, whatever the shape and the GPU, and its form is one that the kernel has."""

import re
from functools import cache

import numpy as np
from attrs import fields
from hypothesis import given
from hypothesis import strategies as st

from kernels.launch import MAX_GRID, Spread, launch_shape, rows_per_program, spread
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import RECIPES, recipe
from kernels.source import device_file

ORIGINAL_SCAN = recipe("scan.original")
SPLITS = tuple(row for row in RECIPES if row.template == "scan_split.cu")
FLATS = tuple(row for row in RECIPES if row.template == "scan_flat.cu")
ROWS = st.one_of(st.integers(1, 4096), st.integers(1, 2**47))
WIDTHS = st.one_of(st.integers(1, 8192), st.integers(1, 2**30))
SMS = st.integers(1, 256)
NAMES = [field.name for field in fields(Spread)]
CASE = re.compile(rb"(?:case (\d+)|default):\s*return scan_rows<(\d+), (\d+)>\(")


@given(ROWS, WIDTHS, SMS)
def test_the_originals_ctas_take_every_row_at_once_or_in_turns(rows: int, width: int, sm_count: int) -> None:
    """Past the grid's limit a CTA takes further rows in turn, as the kernel's outer loop does; nothing is left over."""
    shape = launch_shape(ORIGINAL_SCAN, rows, width, sm_count)
    (form,) = shape.extra
    rows_at_once = shape.threads // (32 * forms()[form][0])
    assert 1 <= shape.ctas <= MAX_GRID
    assert rows_at_once >= 1
    assert shape.ctas * rows_at_once >= rows or shape.ctas == MAX_GRID
    assert (shape.ctas - 1) * rows_at_once < rows


@given(ROWS, WIDTHS, SMS)
def test_the_ctas_of_every_other_recipe_cover_the_rows_exactly_once(rows: int, width: int, sm_count: int) -> None:
    """A row that several CTAs share counts once."""
    for row in (row for row in RECIPES if row.role != ORIGINAL):
        shape = launch_shape(row, rows, width, sm_count)
        groups = shape.ctas // spread(row, rows, width, sm_count).parts
        taken = rows_per_program(row, rows, width)
        assert shape.threads == row.threads
        assert (groups - 1) * taken < rows <= groups * taken or shape.ctas == MAX_GRID


@given(st.integers(1, 4096), WIDTHS, st.sampled_from(SPLITS), st.integers(0, 7))
def test_the_parts_of_a_split_row_cover_it_whatever_its_offset(rows: int, width: int, row: Recipe, offset: int) -> None:
    shape = launch_shape(row, rows, width, 132)
    (parts,) = shape.extra
    part = row.threads * row.items * row.phases
    assert shape.ctas == rows * parts
    assert parts * part >= width + offset, "a part begins up to seven elements before the row"
    assert (parts - 2) * part < width, "at most one part has nothing to do"
    assert shape.workspace_bytes == 8 * (1 + shape.ctas)


@given(st.integers(1, 2**31 - 1), st.integers(1, 2041), st.sampled_from(FLATS), st.integers(0, 7))
def test_a_run_of_rows_fits_its_cta_wherever_it_begins(rows: int, width: int, row: Recipe, offset: int) -> None:
    shape = launch_shape(row, rows, width, 132)
    (at_once,) = shape.extra
    elements = row.threads * row.items
    assert (shape.ctas - 1) * at_once < rows <= shape.ctas * at_once
    if width + 7 <= elements:
        assert offset + at_once * width <= elements
        assert (at_once + 1) * width + 7 > elements, "no further row would fit"


@given(WIDTHS, SMS, st.integers(1, 2**30), st.integers(1, 2**30))
def test_more_rows_never_take_more_warps_a_row(width: int, sm_count: int, some: int, more: int) -> None:
    fewer, many = sorted((some, more))
    warps = [spread(ORIGINAL_SCAN, rows, width, sm_count).lanes for rows in (fewer, many)]
    assert warps[0] >= warps[1]


@cache
def forms() -> tuple[tuple[int, int], ...]:
    """Warps that take a row and chunks that they take at a step, by the number that the kernel's `switch` knows."""
    text = device_file("scan_original.cu")
    found = CASE.findall(text)
    assert [number for number, _, _ in found] == [*(str(i).encode() for i in range(len(found) - 1)), b""]
    assert len(found) == text.count(b"return scan_rows<")
    return tuple((int(warps), int(phases)) for _, warps, phases in found)


@given(ROWS, WIDTHS, SMS)
def test_the_form_that_a_launch_names_is_the_split_that_the_kernel_has_there(
    rows: int, width: int, sm_count: int
) -> None:
    (form,) = launch_shape(ORIGINAL_SCAN, rows, width, sm_count).extra
    through = spread(ORIGINAL_SCAN, rows, width, sm_count)
    assert forms()[form] == (through.lanes // 32, through.phases)


def test_a_split_of_many_launches_is_that_of_each() -> None:
    rows, widths = np.array([1, 131, 132, 133, 300, 2113, 100_000]), np.array([1, 256, 513, 1024, 1025, 2304, 2305])
    for row in RECIPES:
        many = np.broadcast_arrays(*(getattr(spread(row, rows, widths, 132), name) for name in NAMES), rows)
        for place, (r, w) in enumerate(zip(rows, widths, strict=True)):
            one = spread(row, int(r), int(w), 132)
            assert [int(column[place]) for column in many[:-1]] == [getattr(one, name) for name in NAMES]


def test_every_form_is_used() -> None:
    used = {
        launch_shape(ORIGINAL_SCAN, rows, width, 132).extra[0]
        for rows in (1, 132, 300, 2000, 100_000)
        for width in (1, 256, 257, 512, 513, 1024, 1025, 2304, 2305, 131072)
    }
    assert used == set(range(len(forms())))
