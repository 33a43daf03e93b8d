"""The laws of the catalogue: what every row must satisfy, whatever families there are."""

from __future__ import annotations

from importlib.resources import files
from itertools import pairwise

import pytest

from features.program import OPS, program_of
from features.proof import PROOFS, form_of
from features.schemas import schemas_of
from kernels.dtypes import STORAGE
from kernels.errors import KernelError
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import RECIPES, family_of, original_of, recipe, recipes_of
from kernels.source import catalogue_digest, entry, identity
from kernels.templates import TEMPLATES

FORMS = sorted({row.form for row in RECIPES})


def test_ids_are_unique() -> None:
    """An id names one recipe; it breaks ties and is what a request names."""
    assert len({row.id for row in RECIPES}) == len(RECIPES)


@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_one_original(form: str) -> None:
    """And it comes first, takes every dtype and is bit-equal to itself."""
    assert [row.role for row in recipes_of(form)].count(ORIGINAL) == 1
    assert recipes_of(form)[0] is original_of(form)
    assert set(original_of(form).dtypes) == set(STORAGE)
    assert original_of(form).numerics == "bit_equal"
    assert not original_of(form).experimental


@pytest.mark.parametrize("row", RECIPES, ids=lambda row: row.id)
def test_what_a_row_names_exists(row: Recipe) -> None:
    """Template, proofs, dtypes, and a role that the newest schema of its form prices."""
    assert row.template in TEMPLATES
    assert files("kernels").joinpath("device", row.template).is_file()
    assert set(row.proofs) <= set(PROOFS)
    assert row.role in schemas_of(row.family)[-1].roles
    assert set(row.dtypes) <= set(STORAGE)
    assert row.numerics in ("bit_equal", "reordered")
    assert recipe(row.id) is row


@pytest.mark.parametrize("form", FORMS)
def test_a_later_schema_prices_every_role_that_an_earlier_one_does(form: str) -> None:
    """Each prices the original and a recipe at least: without them there is nothing to choose between.

    That is, every role that recipes still have.
    """
    schemas, roles = schemas_of(family_of(form)), {row.role for row in recipes_of(form)}
    for earlier, later in pairwise(schemas):
        assert set(earlier.roles) & roles <= set(later.roles)
    assert all(ORIGINAL in schema.roles and len(roles & set(schema.roles)) > 1 for schema in schemas)


@pytest.mark.parametrize("row", RECIPES, ids=lambda row: row.id)
def test_a_launch_is_made_of_whole_warps(row: Recipe) -> None:
    """Every subgroup operation meets its 32 lanes."""
    assert row.threads % 32 == 0
    assert 0 < row.threads <= 1024
    assert row.items > 0
    assert row.rows_per_cta > 0


@pytest.mark.parametrize("op", OPS)
def test_every_op_has_kernels_for_every_dtype(op: str) -> None:
    """An op without an original could not be answered."""
    for dtype in STORAGE:
        assert original_of(form_of(program_of(op, dtype)))


def test_kernels_are_told_apart() -> None:
    """Each (recipe, dtype) has a symbol and a source digest of its own."""
    pairs = [(row, dtype) for row in RECIPES for dtype in row.dtypes]
    assert len({entry(*pair) for pair in pairs}) == len(pairs)
    assert len({identity(*pair).source for pair in pairs}) == len(pairs)
    assert len(catalogue_digest()) == 64


def test_a_recipe_that_is_not_known_is_refused_with_those_that_are() -> None:
    """So a typing error is seen."""
    with pytest.raises(KernelError, match=r"scan\.cub9.*scan\.original"):
        recipe("scan.cub9")
    with pytest.raises(KernelError, match="no original"):
        original_of("nothing")
