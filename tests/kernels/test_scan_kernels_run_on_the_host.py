"""The scan kernels' own source, run thread by thread on the host: right, and inside their tensors.

Every way of `kernels.scans` and the original, with every dtype, so that a machine without a GPU sees an index go wrong.
"""

from __future__ import annotations

from shutil import which
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from features.program import program_of
from features.proof import Proved, prove
from features.workload import Workload
from kernels.dtypes import STORAGE, storage
from kernels.launch import launch_shape, rows_per_program
from kernels.recipe import Recipe
from kernels.recipes import original_of, recipes_of
from kernels.reductions import SHORT
from kernels.reference import compare
from kernels.scans import COVER, FLAT, TINY, WAYS
from tests.kernels.emulated import PAGE, run, values_of
from tests.kernels.orders import flat_order, fp32, lanes_order, original_order

pytestmark = [
    pytest.mark.skipif(which("g++") is None, reason="needs a host C++ compiler"),
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
]
FORM = "prefix.sum"
FURTHER = tuple(row for row in recipes_of(FORM) if row.id.partition(".")[2] in {way.name for way in WAYS})
RUN = (original_of(FORM), *FURTHER)
SHAPES = (
    *(
        (1, 1),
        (300, 1),
        (700, 2),
        (70, 3),
        (260, 4),
        (90, 7),
        (33, 16),
        (40, 24),
        (21, 31),
        (20, 32),
        (19, 33),
        (9, 64),
    ),
    *((70, 64), (37, 120)),
    *((12, 100), (9, 127), (9, 128), (7, 200), (9, 256), (5, 257), (3, 340), (4, 384), (5, 512), (3, 513), (3, 1000)),
    *((3, 1009), (3, 1010), (3, 1024), (2, 1025), (2, 2033), (2, 2050), (3, 3584), (2, 4097), (1, 8199), (1, 16390)),
)
# (gap between rows of x, of y, offset of x, of y), in elements; None ends a tensor at a fence.
LAYOUTS = (
    (0, 0, 0, None),
    (0, 0, None, 0),
    (0, 0, 1, 1),
    (0, 0, 3, 6),
    (1, 3, 3, 7),
    (8, 16, 8, None),
    (0, 0, None, None),
)
MOST_THREADS = 3000  # of a launch: each is a fiber, and switching takes a system call
RNG = np.random.default_rng(29)


def is_legal(row: Recipe, dtype: str, rows: int, width: int, layout: tuple[int, int, int | None, int | None]) -> bool:
    """Whether a caller with these tensors and many rows would get the recipe: it is proved for x, and y is no worse."""
    size, row = storage(dtype).bytes, evolve(row, proofs=tuple(name for name in row.proofs if name != "many_rows"))
    for gap, offset in zip(layout[:2], layout[2:], strict=True):
        first = (-((rows - 1) * (width + gap) + width) if offset is None else offset) * size % PAGE
        work = Workload(program_of("scan", dtype), rows, width, width + gap, first & -first or 256)
        if not isinstance(prove(work, row), Proved):
            return False
    return True


def ran(row: Recipe, dtype: str, values: Any, layout: tuple[int, int, int | None, int | None], seed: int = 0) -> Any:
    gap, y_gap, offset, y_offset = layout
    spacing = values.shape[1] + y_gap
    return run(row, dtype, values, gap=gap, offset=offset, spacing=spacing, y_offset=y_offset, seed=seed)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("row", RUN, ids=lambda row: row.id)
def test_every_way_is_right_and_stays_inside(row: Recipe, dtype: str) -> None:
    count = 0
    for rows, width in SHAPES:
        for layout in LAYOUTS:
            few = launch_shape(row, rows, width, 132).ctas * row.threads <= MOST_THREADS
            if not few or not is_legal(row, dtype, rows, width, layout):
                continue
            given, got = ran(row, dtype, RNG.uniform(-1, 1, (rows, width)), layout, seed=count)
            found = compare(np, FORM, row, dtype, values_of(given, dtype), values_of(got, dtype))
            assert found.right, f"{row.id} {dtype} {rows} x {width}, {layout}: {found}"
            count += 1
    assert count > 3


@pytest.mark.parametrize("row", FURTHER, ids=lambda row: row.id)
def test_nothing_leaks_from_row_to_row_and_whole_numbers_are_exact(row: Recipe) -> None:
    """NaN and infinity reach what follows them in their row, and nothing else."""
    count = 0
    for rows, width in SHAPES:
        if launch_shape(row, rows, width, 132).ctas * row.threads > MOST_THREADS:
            continue
        if not is_legal(row, "float32", rows, width, LAYOUTS[0]):
            continue
        values = RNG.integers(-4, 5, (rows, width)).astype(np.float32)
        values[::3, width // 2], values[1::3, width // 3] = np.nan, np.inf
        _, got = ran(row, "float32", values, LAYOUTS[0])
        assert np.array_equal(values_of(got, "float32"), np.cumsum(values, axis=1), equal_nan=True)
        count += 1
    assert count > 1


@pytest.mark.parametrize("offset", [0, 1, 3])
@pytest.mark.parametrize("row", FURTHER, ids=lambda row: row.id)
def test_additions_are_in_the_order_of_the_model(row: Recipe, offset: int) -> None:
    """So the chains that are checked against the models are those of the kernels. FP32 shows every rounding."""
    layout, count = (0, 0, offset, 0), 0
    for _, width in SHAPES:
        taken = rows_per_program(row, 1, width)
        if not is_legal(row, "float32", taken, width, layout):
            continue
        values = RNG.uniform(-1, 1, (taken, width)).astype(np.float32)
        _, got = ran(row, "float32", values, layout)
        assert np.array_equal(got.view(np.float32), ordered(row, values, offset))
        count += 1
    assert count > 1 or ("rows" in row.alignment and offset > 0) or (row.role == TINY and offset > 0)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("width", range(1, 9))
@pytest.mark.parametrize("row", [row for row in FURTHER if row.role == TINY], ids=lambda row: row.id)
def test_a_warp_takes_256_tiny_rows_and_the_last_one_what_is_left(row: Recipe, width: int, dtype: str) -> None:
    for rows in (1, 7, 8, 9, 255, 256, 257, row.rows_per_cta + 263):
        given, got = ran(row, dtype, RNG.uniform(-1, 1, (rows, width)), (0, 0, 0, 0))
        assert compare(np, FORM, row, dtype, values_of(given, dtype), values_of(got, dtype)).right, rows
        if width == 1:
            assert np.array_equal(given, got)


def ordered(row: Recipe, values: Any, offset: int) -> Any:
    """Return the rows of one CTA as the model of a recipe scans them."""
    starts = [(offset + number * values.shape[1]) % 4 for number in range(len(values))]
    if row.role == TINY:
        return np.cumsum(values, axis=1)
    if row.role == FLAT:
        return flat_order(values, fp32, row.threads // 32, row.items, offset)
    if row.role in (SHORT, COVER):
        piece = row.items if ("MOVES", "elements") in row.constants else 4
        pieces = row.items * row.phases // piece
        starts = starts if row.role == COVER else [0] * len(values)
        rows = zip(values, starts, strict=True)
        return np.stack([lanes_order(one, fp32, row.lanes, piece, pieces, start) for one, start in rows])
    rows = zip(values, starts, strict=True)
    return np.stack([original_order(one, fp32, row.lanes // 32, row.items, start) for one, start in rows])
