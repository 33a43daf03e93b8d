"""A launch covers every row, whatever the shape and the GPU, and its form is one that the kernel has."""

import re

from hypothesis import given
from hypothesis import strategies as st

from kernels import launch
from kernels.launch import MAX_GRID, launch_shape
from kernels.recipes import ORIGINAL, RECIPES, recipe
from kernels.source import device_file

ORIGINAL_SCAN = recipe("scan.original")
ROWS = st.one_of(st.integers(1, 4096), st.integers(1, 2**47))
WIDTHS = st.one_of(st.integers(1, 8192), st.integers(1, 2**30))
SMS = st.integers(1, 256)
CASE = re.compile(rb"(?:case (\d+)|default):\s*return scan_rows<(\d+), (\d+)>")


@given(ROWS, WIDTHS, SMS)
def test_the_originals_ctas_take_every_row_at_once_or_in_turns(rows: int, width: int, sm_count: int) -> None:
    """Past the grid's limit a CTA takes further rows in turn, as the kernel's outer loop does; nothing is left over."""
    shape = launch_shape(ORIGINAL_SCAN, rows, width, sm_count)
    (form,) = shape.extra
    rows_at_once = shape.threads // (32 * warps_of_forms()[form])
    assert 1 <= shape.ctas <= MAX_GRID
    assert rows_at_once >= 1
    assert shape.ctas * rows_at_once >= rows or shape.ctas == MAX_GRID
    assert (shape.ctas - 1) * rows_at_once < rows


@given(ROWS, WIDTHS, SMS)
def test_the_ctas_of_every_other_recipe_cover_the_rows_exactly_once(rows: int, width: int, sm_count: int) -> None:
    for row in (row for row in RECIPES if row.role != ORIGINAL):
        shape = launch_shape(row, rows, width, sm_count)
        assert shape.threads == row.threads
        assert (shape.ctas - 1) * row.rows_per_cta < rows <= shape.ctas * row.rows_per_cta


@given(WIDTHS, SMS, st.integers(1, 2**30), st.integers(1, 2**30))
def test_more_rows_never_take_more_warps_a_row(width: int, sm_count: int, some: int, more: int) -> None:
    fewer, many = sorted((some, more))
    warps = [warps_of_forms()[launch_shape(ORIGINAL_SCAN, rows, width, sm_count).extra[0]] for rows in (fewer, many)]
    assert warps[0] >= warps[1]


def warps_of_forms() -> list[int]:
    """Warps that take a row, by the number that the kernel's `switch` knows a form by."""
    found = CASE.findall(device_file("scan_original.cu"))
    assert [number for number, _, _ in found] == [*(str(i).encode() for i in range(len(found) - 1)), b""]
    return [int(warps) for _, warps, _ in found]


def test_the_launchs_table_of_forms_is_the_kernels_switch() -> None:
    assert tuple(warps_of_forms()) == launch._ORIGINAL_SCAN_WARPS
    assert len(CASE.findall(device_file("scan_original.cu"))) == device_file("scan_original.cu").count(b"scan_rows<")


def test_every_form_is_used() -> None:
    used = {
        launch_shape(ORIGINAL_SCAN, rows, width, 132).extra[0]
        for rows in (1, 132, 300, 2000, 100_000)
        for width in (1, 256, 257, 512, 513, 1024, 1025, 2304, 2305, 131072)
    }
    assert used == set(range(len(warps_of_forms())))
