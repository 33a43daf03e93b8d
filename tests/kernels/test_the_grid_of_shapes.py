"""The grid that GPU tests walk: its truth is the reference's, its blocks are every row, its memory is bounded."""

from __future__ import annotations

import numpy as np
import pytest

from features.program import program_of
from features.proof import form_of
from kernels.recipes import recipes_of
from kernels.reductions import REDUCTIONS
from kernels.reference import against, reference
from tests.gpu.grid import (
    BLOCK_BYTES_EACH,
    BLOCK_ELEMENTS,
    GROUPS,
    LARGE,
    ROWS,
    WAYS,
    WIDTHS,
    batches,
    blocks,
    holes,
    needed_bytes,
    prefix_sums,
    truth,
    ways,
)

SCAN = "prefix.sum"
FORMS = tuple(form_of(program_of(op, "float32")) for ops in GROUPS.values() for op in ops)
H200_BYTES = 139 * 2**30


@pytest.mark.parametrize("width", [1, 2, 15, 16, 17, 31, 255, 256, 257, 4097, 70_000])
def test_prefix_sums_are_those_of_the_reference(width: int) -> None:
    x = np.random.default_rng(width).uniform(-1, 1, (3, width))
    expected, scale = reference(SCAN, np, x)
    for mine, theirs in ((prefix_sums(np, x), expected), (prefix_sums(np, abs(x)), scale)):
        assert np.all(abs(mine - theirs) <= 2.0**-44 * scale)


@pytest.mark.parametrize(("rows", "width"), [(r, w) for r in (1, 133, 1_000_000) for w in WIDTHS])
def test_blocks_are_every_row_once_and_bounded(rows: int, width: int) -> None:
    ends = list(blocks(rows, width))
    assert [first for first, _ in ends] == [0, *(last for _, last in ends[:-1])]
    assert ends[-1][1] == rows
    assert all(last > first and (last - first) * width <= max(BLOCK_ELEMENTS, width) for first, last in ends)


def rounded(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(np.float16)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_within_the_bound_is_what_the_reference_says(form: str) -> None:
    """Results a little off, NaNs and zeros of either sign: counted wherever the reference's comparison finds fault."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (40, 300)).astype(np.float16).astype(np.float64)
    x[4:6] = 0.0
    x[5] = -x[5]
    if form in REDUCTIONS:
        rows, columns = holes(300, 0, 40)
        x[rows, columns] = np.nan
        x[8] = np.nan
    recipe = recipes_of(form)[0]
    operands = [*rng.uniform(-1, 1, (recipe.weights, 300)), *(1e-5 for _ in recipe.parameters)]
    known = truth(np, form, "float16", x, operands)
    expected, scale = reference(form, np, x, operands)
    right = rounded(expected)
    assert known.beyond(np, recipe, right) == 0
    seen = set()
    for steps in (0, 1, 3, 50):
        got = right.copy()
        got.view(np.uint16)[::3] ^= np.uint16(steps)
        found = against(np, form, recipe, "float16", 300, expected, scale, got)
        assert known.beyond(np, recipe, got) == found.bad_finite + found.bad_special
        seen.add(found.right)
    assert seen == {True, False}
    wrong = right.copy()
    wrong[0] = np.nan
    assert known.beyond(np, recipe, wrong) == wrong[0].size
    assert (
        known.beyond(np, recipe, np.full_like(right, np.nan)) == np.isfinite(expected).sum() + np.isinf(expected).sum()
    )


def test_an_extreme_tells_zeros_apart() -> None:
    known = truth(np, "reduce.max", "float16", np.array([[-0.0, 0.0], [-0.0, -0.0]]))
    recipe = recipes_of("reduce.max")[0]
    assert known.beyond(np, recipe, np.array([[0.0], [-0.0]], np.float16)) == 0
    assert known.beyond(np, recipe, np.array([[-0.0], [0.0]], np.float16)) == 2


def test_memory_is_asked_for_inputs_an_output_and_blocks() -> None:
    scans, reduced = (SCAN,), tuple(REDUCTIONS)
    assert needed_bytes(scans, "float16", 1_000_000, 8192) > 2 * 2 * 8_192_000_000
    assert needed_bytes(scans, "float16", 1_000_000, 8192) - needed_bytes(reduced, "float16", 1_000_000, 8192) > 2**33
    assert needed_bytes(scans, "float32", 1_000_000, 8192) < H200_BYTES
    assert needed_bytes(reduced, "float32", 1_000_000, 1_048_576) > H200_BYTES
    for rows in ROWS:
        for width in WIDTHS:
            tensors = (2 if width > 1 else 1) * 4 * rows * width
            most = tensors + 4 * rows + max(BLOCK_ELEMENTS, width) * BLOCK_BYTES_EACH + 2**30
            assert needed_bytes(scans, "float32", rows, width) <= most


def test_outputs_are_held_together_as_far_as_they_have_room() -> None:
    rows = recipes_of(SCAN)[:5]
    assert list(batches([(row, 10) for row in rows], 25)) == [list(rows[:2]), list(rows[2:4]), list(rows[4:])]
    assert list(batches([(row, 10) for row in rows], 5)) == [[row] for row in rows]
    assert list(batches([(row, 10) for row in rows], 50)) == [list(rows)]


def test_large_shapes_are_met_in_one_way_and_others_in_all() -> None:
    assert ways(1, LARGE) == WAYS
    assert [(way.offset, way.graph) for way in ways(1, LARGE + 1)] == [(0, True)]
    met = {(way.offset > 0, way.graph) for way in WAYS}
    assert met == {(False, False), (False, True), (True, False), (True, True)}


def test_a_row_alone_is_whole_and_others_have_holes() -> None:
    assert holes(5, 0, 1) == ([], [])
    rows, columns = holes(5, 512, 1024)
    assert rows == [row for row in range(256) if row % 4 == 3]
    assert all(0 <= column < 5 for column in columns)
