"""Every element of a row enters once, on every way through it; and no chain is longer than the recipe says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from kernels import reductions
from kernels.dtypes import STORAGE
from kernels.launch import MAX_GRID, launch_shape, rows_per_program, spread
from kernels.recipe import Recipe
from kernels.recipes import RECIPES, recipe, recipes_of
from kernels.reduction_shapes import (
    IN_ROUNDS,
    LAST_WIDTHS_OF_FEW,
    LAST_WIDTHS_OF_MANY,
    MANY_ROWS,
    ORIGINAL_FORMS,
    original_form,
    split_parts,
)
from kernels.reductions import FLAT_ROWS, FLAT_WIDTH, MOST_PARTS, REDUCTIONS, STAGE_BYTES
from kernels.reference import chain
from kernels.source import device_file
from kernels.templates import TEMPLATES
from tests.kernels.orders import deeper
from tests.kernels.reduce_orders import (
    alone_order,
    cover_order,
    flat_order,
    held_order,
    lanes_order,
    split_order,
    staged_order,
    streamed_order,
)

SUMS = recipes_of("reduce.sum")
HELD = ("reduce_lanes.cu", "reduce_several.cu")
WIDTHS = (
    *(1, 2, 3, 7, 8, 9, 28, 29, 31, 60, 61, 63, 64, 65, 127, 128, 129, 255, 256, 257),
    *(1000, 1024, 1025, 2049, 4097, 8192, 8193, 16383, 16384),
)
LONG = (50257, 131072)
VECTORS = sorted({16 // kind.bytes for kind in STORAGE.values()})
RNG = np.random.default_rng(11)
NARROW = (
    reductions.SHORT,
    reductions.STAGED,
    reductions.FLAT,
)
CASE = re.compile(rb"(?:case (\d+)|default):[^@]*?(at_once|alone|in_turn)<([^>]*)>")


def orders(row: Recipe, rows: int, width: int, vector: int, offset: int) -> Any:
    """Return the models of a recipe's ways through a row, (numbers, combination) -> result.

    One, or two: that of a row at the ends of a tensor and that of a row in its midst.
    """
    through = spread(row, rows, width, 132)
    if row.template == "reduce_split.cu":
        parts, units = split_parts(row.threads, rows, width, 132)
        return (partial(_split, row.threads, row.phases, vector, offset, parts, units),)
    if row.template == "reduce_staged.cu":
        return (staged_order,)
    if row.template == "reduce_flat.cu":
        return (flat_order,)
    if row.template == "reduce_streamed.cu":
        carry = dict(row.constants)["CARRY"]
        return (lambda x, combine: streamed_order(x, combine, row.lanes, row.items, row.phases, carry),)
    if row.template in HELD:
        size = vector if row.role == reductions.SEVERAL else 1
        return (partial(held_order, lanes=row.lanes, pieces=row.phases, size=size),)
    if through.lanes == 1:
        return (alone_order,)
    if row.alignment[0] == "rows":
        offset = 0
    shape = {"lanes": through.lanes, "unroll": through.phases, "vector": vector, "offset": offset}
    if through.lanes > 32 or row.alignment[0] == "rows":
        return (partial(lanes_order, **shape),)
    return tuple(partial(cover_order, **shape, surrounded=surrounded) for surrounded in (False, True))


def _split(lanes: int, unroll: int, vector: int, offset: int, parts: int, units: int, x: Any, combine: Any) -> Any:
    return split_order(x, combine, lanes, unroll, vector, offset, parts, units)


def widths_of(row: Recipe) -> tuple[int, ...]:
    """Return the widths that a recipe is legal for, at least in some layout."""
    if row.role == reductions.SHORT:
        return tuple(w for w in WIDTHS if w <= 16 * row.lanes)
    if row.template in HELD:
        return tuple(w for w in WIDTHS if w <= row.lanes * row.phases * (4 if row.role == reductions.SEVERAL else 1))
    if row.role == reductions.STAGED:
        return tuple(w for w in WIDTHS if w * row.rows_per_cta * 2 <= STAGE_BYTES)
    if row.role == reductions.FLAT:
        return tuple(range(1, FLAT_WIDTH + 1))
    if row.role == reductions.SPLIT:
        return tuple(w for w in (*WIDTHS, *LONG) if w > 8192)
    return (*WIDTHS, *LONG)


def cases(row: Recipe) -> Iterator[tuple[int, int, int, int]]:
    """Yield rows, width, elements a vector and the row's offset from a 16-byte boundary."""
    for width in widths_of(row):
        for vector in VECTORS:
            for offset in (0, 1, vector - 1):
                for rows in (1, 3, 500) if row.template in ("reduce_original.cu", "reduce_split.cu") else (1,):
                    yield rows, width, vector, offset


@pytest.mark.parametrize("row", SUMS, ids=lambda row: row.id)
def test_every_element_enters_once(row: Recipe) -> None:
    for rows, width, vector, offset in cases(row):
        weights = RNG.integers(1, 2**40, width)
        for order in orders(row, rows, width, vector, offset):
            assert order(weights, np.add) == weights.sum(), (rows, width, vector, offset)


@pytest.mark.parametrize("row", SUMS, ids=lambda row: row.id)
def test_no_chain_is_longer_than_the_recipe_says(row: Recipe) -> None:
    for rows, width, vector, offset in cases(row):
        for order in orders(row, rows, width, vector, offset):
            assert order(np.zeros(width, np.int64), deeper) <= chain(row, width), (rows, width, vector, offset)


@pytest.mark.parametrize("row", [row for row in SUMS if row.role not in NARROW and row.template not in HELD])
def test_a_chain_is_not_much_longer_than_what_the_kernel_does_with_four_elements_a_vector(row: Recipe) -> None:
    """Where rows are long. Two-byte storage has half the steps; more rows than SMs split into the fewest parts."""
    width = 131072
    depth = max(order(np.zeros(width, np.int64), deeper) for order in orders(row, 10_000, width, 4, 3))
    assert chain(row, width) - depth <= 8


def test_forms_are_those_of_the_kernels_switch() -> None:
    found = CASE.findall(device_file("reduce_original.cu"))
    assert [number for number, *_ in found] == [*(str(i).encode() for i in range(len(found) - 1)), b""]
    assert len(found) == len(ORIGINAL_FORMS)
    for (_, kind, arguments), form in zip(found, ORIGINAL_FORMS, strict=True):
        numbers = [int(n) for n in arguments.split(b",") if n.strip().isdigit()]
        if kind == b"at_once":
            assert (numbers, form.rows_per_cta) == ([form.lanes, form.phases], 256 // form.lanes)
        elif kind == b"alone":
            assert (form.lanes, form.phases, numbers) == (1, 1, [])
        else:
            assert (form.lanes, numbers) == (256, [form.phases])
    alone = next(form for form in ORIGINAL_FORMS if form.lanes == 1)
    assert b"rows_alone = %d;" % (alone.rows_per_cta // 256) in device_file("reduce_original.cu")
    assert LAST_WIDTHS_OF_FEW[0] == LAST_WIDTHS_OF_MANY[0]
    assert b"alone_most = %d;" % LAST_WIDTHS_OF_FEW[0] in device_file("reduce_original.cu")
    flat = device_file("reduce_flat.cu")
    assert b"rows_each = %d;" % FLAT_ROWS in flat
    assert b"most = %d;" % FLAT_WIDTH in flat
    assert b"rows_in_turn = %d;" % ORIGINAL_FORMS[-1].rows_per_cta in device_file("reduce_original.cu")
    assert b"most_parts = %d;" % MOST_PARTS in device_file("reduce_split.cu")
    assert b"stage_bytes = %d;" % STAGE_BYTES in device_file("reduce_staged.cu")


def test_every_form_is_launched_and_rows_a_program_follow_from_the_width() -> None:
    original = recipe("sum.original")
    met = set()
    bounds = {1, 2048, 2049, 10**6, *LAST_WIDTHS_OF_FEW, *LAST_WIDTHS_OF_MANY}
    for rows in (1, 2, 3, 132, MANY_ROWS - 1, MANY_ROWS, 100_000):
        for width in (*sorted(bounds), *(bound + 1 for bound in sorted(bounds))):
            shape = launch_shape(original, rows, width, 132)
            through = spread(original, rows, width, 132)
            met.add(shape.extra[0])
            assert shape.ctas == -(-rows // through.rows_per_cta)
            assert through.rows_per_cta == rows_per_program(original, rows, width)
            assert ORIGINAL_FORMS[shape.extra[0]].lanes == through.lanes
    assert met == set(range(len(ORIGINAL_FORMS)))
    # More rows than a grid has CTAs for are taken in rounds, which one form has, whatever the width.
    for width in (1, 1000, 100_000):
        shape = launch_shape(original, 2**40, width, 132)
        assert (shape.ctas, shape.extra) == (MAX_GRID, (IN_ROUNDS,))
        most = launch_shape(original, 4 * MAX_GRID, width, 132)
        assert most.ctas == -(-4 * MAX_GRID // rows_per_program(original, 4 * MAX_GRID, width)) <= MAX_GRID


def test_parts_cover_a_row_and_are_at_least_two() -> None:
    split = recipe("max.split")
    for rows in (1, 2, 4, 16, 64, 527, 528, 10_000):
        for width in (8193, 50257, 65536, 262144, 1_048_576, 2**26 + 1):
            parts, units = split_parts(split.threads, rows, width, 132)
            shape = launch_shape(split, rows, width, 132)
            assert 2 <= parts <= MOST_PARTS
            assert parts * units * 8 >= width
            assert shape.ctas == rows * parts
            assert shape.extra == (parts, units)
            assert shape.workspace_bytes == 8 * rows * (parts + 1)
            assert spread(split, rows, width, 132).parts == parts
    assert split_parts(256, 1, 1_048_576, 132) == (128, 1024)
    assert split_parts(256, 16, 131072, 132) == (16, 1024)


def test_many_launches_are_shaped_as_each_alone() -> None:
    rows, widths = np.array([1, 2, 3, 132, 10_000]), np.array([64, 4096, 5, 16384, 300_000])
    for row in SUMS:
        together = spread(row, rows, widths, 132)
        for i, (r, w) in enumerate(zip(rows.tolist(), widths.tolist(), strict=True)):
            alone = spread(row, r, w, 132)
            for name in ("lanes", "phases", "rows_per_cta", "parts", "by_element"):
                assert np.broadcast_to(getattr(together, name), rows.shape)[i] == getattr(alone, name)
    forms = original_form(rows, widths)
    assert forms.tolist() == [original_form(int(r), int(w)) for r, w in zip(rows, widths, strict=True)]


def test_a_workspace_belongs_to_templates_that_ask_for_it() -> None:
    for row in RECIPES:
        asked = launch_shape(row, 4, 100_000, 132).workspace_bytes
        assert (asked > 0) == TEMPLATES[row.template].workspace


@pytest.mark.parametrize("form", REDUCTIONS)
def test_programs_have_as_many_ways_as_their_table_says(form: str) -> None:
    rows = recipes_of(form)
    reduction = REDUCTIONS[form]
    assert {row.family for row in rows} == {"reduce"}
    assert len(rows) == sum(reductions.has(reduction, way) for way in reductions.ARRANGEMENTS)
    assert any(row.role == reductions.SPLIT for row in rows) != reduction.counts
    assert all(row.numerics == "bit_equal" for row in rows if reduction.exact)
    assert {row.id for row in rows} >= {f"{reduction.op}.original", f"{reduction.op}.rows1"}
