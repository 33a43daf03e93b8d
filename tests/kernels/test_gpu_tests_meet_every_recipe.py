"""The geometries of the GPU tests are those that the recipes take, and every recipe of the catalogue is met by them."""

from __future__ import annotations

from itertools import product

import pytest

from features.program import program_of
from features.proof import Proved, form_of, prove
from features.workload import workload
from kernels.dtypes import storage
from kernels.guard import VECTOR_BYTES, Verdict, judge, span
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import RECIPES, recipes_of
from kernels.reductions import REDUCTIONS, out_width
from tests.gpu import grid
from tests.gpu.geometries import (
    DTYPES,
    LAYOUTS,
    OP_OF,
    Case,
    Layout,
    cases,
    fewest_rows,
    geometry_of,
    most_elements,
    shapes,
    shapes_at,
    shapes_of_form,
    takes,
    takes_somewhere,
    tried_shapes,
)

ANY_RECIPE = pytest.mark.parametrize("recipe", [row for row in RECIPES if row.form in OP_OF], ids=lambda row: row.id)


def proved(recipe: Recipe, dtype: str, rows: int, width: int) -> bool:
    """Ask the proofs as a caller does, without the helper's arrays."""
    work = workload(OP_OF[recipe.form], (rows, width), dtype)
    return isinstance(prove(work, recipe), Proved)


def verdict(recipe: Recipe, dtype: str, case: Case) -> Verdict:
    """Say what a launch would run, y far from x."""
    size, lies = storage(dtype).bytes, case.layout
    x = span(2**20 + lies.x_offset * size, case.rows, case.width, case.width + lies.x_gap, dtype)
    y_width = out_width(recipe.form, case.width)
    y = span(2**40 + lies.y_offset * size, case.rows, y_width, y_width + lies.y_gap, dtype)
    return Verdict.RECIPE if recipe.role == ORIGINAL else judge(x, y, recipe.alignment)


@ANY_RECIPE
def test_the_geometry_of_a_recipe_is_proved(recipe: Recipe) -> None:
    for dtype in recipe.dtypes:
        rows, width = geometry_of(recipe, dtype)
        assert proved(recipe, dtype, rows, width)
        assert rows * width <= most_elements(recipe)
        assert width > 1
        assert all(proved(recipe, dtype, *shape) for shape in shapes(recipe, dtype))
        assert all(proved(recipe, dtype, *shape) for shape in shapes_at(recipe, dtype, (1, 8, 300, 8192), 20))
        for _, wide in shapes(recipe, dtype):
            assert proved(recipe, dtype, fewest_rows(recipe, dtype, wide), wide)


@ANY_RECIPE
def test_every_layout_that_a_recipe_claims_is_among_its_cases(recipe: Recipe) -> None:
    """Those are what the sanitizer runs, and what the tests of bases and pitches do."""
    for dtype in recipe.dtypes:
        met = list(cases(recipe, dtype))
        assert all(verdict(recipe, dtype, case) is Verdict.RECIPE for case in met)
        layouts = {case.layout for case in met}
        claimed = {"any": LAYOUTS, "rows": LAYOUTS[:2], "span": LAYOUTS[:1], "packed": (LAYOUTS[0], LAYOUTS[2])}
        assert layouts == set(claimed["any" if recipe.role == ORIGINAL else recipe.alignment[0]])
        for layout in layouts:
            assert {takes(recipe, dtype, c.rows, c.width, c.layout) for c in met if c.layout == layout} == {True}


@ANY_RECIPE
def test_the_cases_of_a_recipe_end_within_a_cta_and_within_a_vector(recipe: Recipe) -> None:
    for dtype in recipe.dtypes:
        met = list(cases(recipe, dtype))
        if recipe.role != ORIGINAL and recipe.rows_per_cta > 1:
            assert any(case.rows > recipe.rows_per_cta and case.rows % recipe.rows_per_cta for case in met)
        if recipe.rows_each > 1:
            assert any(case.rows % recipe.rows_each for case in met)
        beside = [(rows, width + step) for rows, width in shapes(recipe, dtype) for step in (-1, 1) if width + step]
        if any(takes(recipe, dtype, *shape) for shape in beside):
            assert any(case.width * storage(dtype).bytes % VECTOR_BYTES for case in met)


@pytest.mark.parametrize(("form", "dtype"), [*product(OP_OF, DTYPES)])
def test_the_shapes_of_a_form_meet_every_recipe(form: str, dtype: str) -> None:
    every = {row for row in recipes_of(form) if dtype in row.dtypes}
    lists = [shapes_of_form(form, dtype), *([tried_shapes(form, dtype)] if form in REDUCTIONS else [])]
    for given in lists:
        assert {row for row in every if any(takes(row, dtype, *shape) for shape in given)} == every


@pytest.mark.parametrize(("op", "dtype"), [*product(grid.ROW_OPS, DTYPES)])
def test_the_grid_of_shapes_meets_every_recipe(op: str, dtype: str) -> None:
    """At shapes that a small grid has, too; clusters have tests of their own."""
    met: set[Recipe] = set()
    form = form_of(program_of(op, dtype))
    for rows, width in product(grid.ROWS, grid.widths(form)):
        if rows * width <= 2**22:
            met |= {row for way in grid.WAYS for row in grid.proved(op, dtype, rows, width, way.offset)}
    assert met >= {row for row in recipes_of(form) if dtype in row.dtypes and row.cluster == 1}


def test_a_shape_that_a_recipe_takes_nowhere_is_told() -> None:
    """What made tests pass that showed nothing: lanes that hold four elements, launched on rows of 20,000."""
    held, several, cover = (
        next(row for row in RECIPES if row.id == name) for name in ("sum.lanes1x4", "sum.several2x1", "scan.cover32x8")
    )
    assert not takes_somewhere(held, "float16", 7, 20_000)
    assert not takes_somewhere(several, "float16", 70, 16)
    assert takes_somewhere(cover, "float16", 70, 64)
    assert not takes(cover, "float16", 70, 64)
    assert takes(cover, "float16", 70, 64, Layout(x_offset=1))
