"""Geometries that a recipe takes, found by asking its proofs, so that a new recipe needs no place in any list.

Nothing here needs a GPU: `tests/kernels/test_gpu_tests_meet_every_recipe.py` asks for every recipe and dtype.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np
from attrs import frozen

from features.expression import LAST
from features.program import OPS, axis_of, program_of
from features.proof import form_of, legal
from features.workloads import Workloads
from kernels.dtypes import STORAGE, storage
from kernels.guard import VECTOR_BYTES
from kernels.launch import rows_per_program
from kernels.recipe import Recipe
from kernels.recipes import recipes_of
from kernels.reductions import LEAST_CTAS

DTYPES = tuple(STORAGE)
OP_OF = {form_of(program_of(op, DTYPES[0])): op for op in OPS if axis_of(program_of(op, DTYPES[0])) == LAST}
# Widths that are asked for, and the most elements of a shape: small enough for the sanitizer, enough for lanes that
# take several rows each (4609 rows of 16) and for more than one step of the widest CTA.
MOST_WIDTH, MOST_ELEMENTS = 20_000, 80_000
# Elements of a whole number of vectors, whatever the dtype.
VECTORS = 8
# What every reduction is tried at, besides the shapes of its recipes.
TRIED_WIDTHS = (
    *(1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 27, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 129, 250, 256, 257),
    *(511, 512, 513, 1000, 1024, 1025, 2048, 2049, 3584, 4096, 4097, 8192, 8193, 16383, 16384, 50257, 131072),
)
TRIED_ROWS = (1, 2, 3, 17, 64, 131, 257, 1000)
TRIED_ELEMENTS = 2**23
Shape = tuple[int, int]


@frozen
class Layout:
    """How rows lie: elements that a base lies past a 16-byte boundary, and elements between two rows; of x and of y."""

    x_offset: int = 0
    x_gap: int = 0
    y_offset: int = 0
    y_gap: int = 0


PLAIN = Layout()
# Of every demand of `kernels.guard.DEMANDS` one that meets it and no stricter one, and some that meet none.
LAYOUTS = (PLAIN, Layout(8, 16, 8, 8), Layout(1, 0, 3, 0), Layout(0, 1, 0, 3), Layout(3, 1, 3, 0), Layout(7, 3, 0, 1))


@frozen
class Case:
    """Rows and a width, and how they lie."""

    rows: int
    width: int
    layout: Layout


def takes(recipe: Recipe, dtype: str, rows: int, width: int, layout: Layout = PLAIN) -> bool:
    """Tell whether a recipe is proved for rows of x that lie so."""
    return bool(_proved(recipe, dtype, np.array([rows]), np.array([width]), layout)[0])


@cache
def takes_somewhere(recipe: Recipe, dtype: str, rows: int, width: int) -> bool:
    """Tell whether there is a layout with which a recipe is proved."""
    return any(takes(recipe, dtype, rows, width, layout) for layout in LAYOUTS)


def _proved(recipe: Recipe, dtype: str, rows: Any, widths: Any, layout: Layout) -> Any:
    alignment = math.gcd(layout.x_offset * storage(dtype).bytes, VECTOR_BYTES)
    works = Workloads(program_of(OP_OF[recipe.form], dtype), rows, widths, widths + layout.x_gap, alignment)
    return np.broadcast_to(legal(works, recipe), widths.shape)


def most_elements(recipe: Recipe) -> int:
    """Return the most elements of a shape: a few rows of what a cluster of CTAs takes, where a recipe has clusters."""
    return MOST_ELEMENTS if recipe.cluster == 1 else 4 * _cluster_elements(recipe)


def _cluster_elements(recipe: Recipe) -> int:
    return recipe.cluster * recipe.threads * recipe.items * recipe.phases


def _widths(recipe: Recipe) -> Any:
    """Return the widths that are asked for, ascending: of clusters those about the ends of what they hold."""
    if recipe.cluster == 1:
        return np.arange(1, MOST_WIDTH + 1)
    most = _cluster_elements(recipe)
    places = (most // 2, most * 5 // 8, most)
    return np.unique([place + step for place in places for step in range(-17, 18)])


@cache
def shapes(recipe: Recipe, dtype: str, layout: Layout = PLAIN) -> tuple[Shape, ...]:
    """Return rows and widths that a recipe takes with a layout, the widest last; none where it takes no such layout.

    They are the narrowest, the widest, and of those between one of whole vectors and one that ends within a vector. The
    last CTA is short of rows, in the midst of those of a lane: two CTAs come before it, or as many as the recipe wants.
    """
    widths = _widths(recipe)
    each = rows_per_program(recipe, MOST_WIDTH, widths) + 0 * widths
    few, many = (ctas * each + each // 2 | 1 for ctas in (2, LEAST_CTAS))
    rows = np.where(_proved(recipe, dtype, few, widths, layout), few, many)
    good = _proved(recipe, dtype, rows, widths, layout) & (rows * widths <= most_elements(recipe))
    ragged = widths % VECTORS != 0
    picked = {int(place) for group in (good & ragged, good & ~ragged) for place in _middle(group)}
    places = np.flatnonzero(good)
    picked |= {int(place) for place in (*places[:1], *places[-1:])}
    return tuple((int(rows[place]), int(widths[place])) for place in sorted(picked))


def _middle(group: Any) -> Any:
    places = np.flatnonzero(group)
    return places[len(places) // 2 :][:1]


def geometry_of(recipe: Recipe, dtype: str) -> Shape:
    """Return rows and a width that a recipe takes on a boundary and without gaps: the widest of `shapes`."""
    return shapes(recipe, dtype)[-1]


def fewest_rows(recipe: Recipe, dtype: str, width: int, layout: Layout = PLAIN) -> int:
    """Return the fewest rows that a recipe takes at a width that it takes."""
    return 1 if takes(recipe, dtype, 1, width, layout) else LEAST_CTAS * recipe.rows_per_cta


def shapes_at(recipe: Recipe, dtype: str, widths: Iterable[int], rows: int = 1) -> tuple[Shape, ...]:
    """Return the shapes of a recipe and those of these widths that it takes, of so many rows or what it wants.

    In the order of rows and width.
    """
    found = {(max(rows, own), width) for own, width in shapes(recipe, dtype)}
    found |= {(max(rows, fewest_rows(recipe, dtype, width)), width) for width in widths}
    return tuple(sorted(shape for shape in found if takes(recipe, dtype, *shape)))


def shapes_of_form(form: str, dtype: str, given: Iterable[Shape] = ()) -> tuple[Shape, ...]:
    """Return the given shapes and at least one that each recipe of a form takes; each shape once."""
    own = (shape for row in recipes_of(form) if dtype in row.dtypes for shape in shapes(row, dtype))
    return tuple(dict.fromkeys((*given, *own)))


def tried_shapes(form: str, dtype: str) -> tuple[Shape, ...]:
    """Return shapes of every kind for a reduction: row counts take turns, so that each width meets some of them."""
    given = []
    for turn, width in enumerate(TRIED_WIDTHS):
        counts = [rows for rows in TRIED_ROWS if rows * width <= TRIED_ELEMENTS]
        given += [(counts[turn % len(counts)], width), (counts[(turn * 3 + 1) % len(counts)], width), (1, width)]
    return shapes_of_form(form, dtype, given)


def cases(recipe: Recipe, dtype: str) -> Iterator[Case]:
    """Yield what a recipe takes of every layout: rows alone, and several of them with a last CTA short of rows."""
    for layout in LAYOUTS:
        for rows, width in shapes(recipe, dtype, layout):
            for count in sorted({rows, fewest_rows(recipe, dtype, width, layout)}):
                yield Case(count, width, layout)
