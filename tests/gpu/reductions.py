"""Reductions of one input by every recipe that is legal for it, against one reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy

from features.program import program_of
from features.proof import Proved, prove
from features.workload import Workload
from kernels.guard import Verdict
from kernels.recipe import Recipe
from kernels.recipes import recipes_of
from kernels.reductions import REDUCTIONS
from kernels.reference import against, reference
from tests.gpu.tensors import POISON, Kernels, Tensor, prepared, results, run

FORMS = tuple(REDUCTIONS)
EVERY = tuple(row for form in FORMS for row in recipes_of(form))


def workload_of(recipe: Recipe, x: Tensor) -> Workload:
    """Return what a caller would ask for with this tensor."""
    program = program_of(REDUCTIONS[recipe.form].op, x.dtype)
    address = x.span.address
    return Workload(program, x.rows, x.width, x.pitch, min(address & -address, 256))


def legal(form: str, x: Tensor) -> Iterator[Recipe]:
    """Yield the recipes of a form that are proved for a tensor."""
    for row in recipes_of(form):
        if isinstance(prove(workload_of(row, x), row), Proved):
            yield row


def check_every_recipe(
    kernels: Kernels,
    sm_count: int,
    form: str,
    x: Tensor,
    *,
    offset: int = 0,
    pitch: int | None = None,
    only: Recipe | None = None,
) -> int:
    """Run every legal recipe and check values, guard bytes, gaps and the input; return how many ran.

    `only` leaves out all others.
    """
    before, ran = x.raw.copy(), 0
    expected, scale = reference(form, cupy, x.values().astype(cupy.float64))
    for row in (row for row in legal(form, x) if only in (None, row)):
        y = results(row, x, offset=offset, pitch=pitch)
        verdict = run(prepared(kernels, row, x.dtype, x.rows, x.width, sm_count), x, y)
        where = f"{row.id} {x.dtype} {x.rows} x {x.width}, pitch {x.pitch}, {x.first} bytes in"
        assert verdict is Verdict.RECIPE, f"{where}: {verdict}"
        assert y.outside_equals(POISON), f"{where}: a byte outside the output changed"
        found = against(cupy, form, row, x.dtype, x.width, expected, scale, y.values())
        assert found.right, f"{where}: {found}"
        ran += 1
    assert bool(cupy.array_equal(x.raw, before)), f"{form} {x.dtype} {x.rows} x {x.width}: the input changed"
    return ran


def bits_of(kernels: Kernels, sm_count: int, recipe: Recipe, x: Tensor) -> Any:
    """Return the result's bits of one run."""
    y = results(recipe, x)
    assert run(prepared(kernels, recipe, x.dtype, x.rows, x.width, sm_count), x, y) is Verdict.RECIPE
    return y.bits.get()
