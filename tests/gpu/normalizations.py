"""Normalizations of one input by every recipe that is legal for it, against one reference, and what became of each.

The figures of a session are written to `normalizations.tsv` in the folder that OUT names: for each program, dtype and
recipe the worst share of the bound, counts of bad finite and of bad special values, and the share of elements that are
bit-equal to the original's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cupy
from attrs import define, evolve, field

from features.program import program_of
from features.proof import Proved, prove
from features.workload import Workload
from kernels.guard import Verdict
from kernels.norms import NORMS
from kernels.recipe import Recipe
from kernels.recipes import recipes_of
from kernels.reference import Comparison, against, reference
from tests.gpu.tensors import POISON, Given, Kernels, Tensor, blank, prepared, results, run

FORMS = tuple(NORMS)
EVERY = tuple(row for form in FORMS for row in recipes_of(form))
EPS = (0.0, 1e-10, 1e-3)
COLUMNS = (
    *("program", "dtype", "recipe", "elements", "worst_share_of_bound", "bad_finite", "bad_special"),
    *("compared_with_original", "bit_equal_share"),
)


@define
class Figure:
    """What is known of a recipe in a dtype."""

    found: Comparison = field(factory=lambda: Comparison(0, 0.0, 0, 0))
    compared: int = 0
    equal: int = 0


@define(eq=False)
class Figures:
    """The figures of a session, by recipe and dtype."""

    of: dict[tuple[Recipe, str], Figure] = field(factory=dict)

    def add(self, recipe: Recipe, dtype: str, found: Comparison) -> None:
        """Add a comparison with a reference, or with the original where FP64 has no say."""
        figure = self.of.setdefault((recipe, dtype), Figure())
        figure.found += found

    def add_equal(self, recipe: Recipe, y: Tensor, original: Any) -> None:
        """Count the elements that have the bits of the original's."""
        figure = self.of.setdefault((recipe, y.dtype), Figure())
        figure.compared += y.bits.size
        figure.equal += int((y.bits == original).sum())

    def table(self) -> str:
        """Return the figures as tab-separated lines."""
        lines = ["\t".join(COLUMNS)]
        for (row, dtype), figure in self.of.items():
            found, share = figure.found, figure.equal / max(1, figure.compared)
            facts = (found.elements, f"{found.worst_share:.4f}", found.bad_finite, found.bad_special, figure.compared)
            lines.append("\t".join(map(str, (NORMS[row.form].op, dtype, row.id, *facts, f"{share:.6f}"))))
        return "\n".join(lines) + "\n"

    def write(self) -> None:
        """Write the table where OUT names a folder."""
        if "OUT" in os.environ:
            Path(os.environ["OUT"], "normalizations.tsv").write_text(self.table(), encoding="utf-8")


def legal(form: str, x: Tensor) -> Iterator[Recipe]:
    """Yield the recipes of a form that are proved for a tensor, the original first."""
    address = x.span.address
    work = Workload(program_of(NORMS[form].op, x.dtype), x.rows, x.width, x.pitch, min(address & -address, 256))
    return (row for row in recipes_of(form) if isinstance(prove(work, row), Proved))


def launched(
    kernels: Kernels,
    sm_count: int,
    row: Recipe,
    x: Tensor,
    given: Given,
    *,
    offset: int = 0,
    pitch: int | None = None,
    expected: Verdict = Verdict.RECIPE,
) -> Tensor:
    """Run on disjoint buffers and check all but the values: verdict, guard bytes, gaps, input and weights."""
    before, y = x.raw.copy(), results(row, x, offset=offset, pitch=pitch)
    verdict = run(prepared(kernels, row, x.dtype, x.rows, x.width, sm_count), x, y, given)
    where = f"{row.id} {x.dtype} {x.rows} x {x.width}, pitch {x.pitch}, {x.first} bytes in"
    assert verdict is expected, f"{where}: {verdict}"
    assert y.outside_equals(POISON), f"{where}: a byte outside the output changed"
    assert bool(cupy.array_equal(x.raw, before)), f"{where}: the input changed"
    assert given.intact, f"{where}: a weight changed"
    return y


def check_every_recipe(
    kernels: Kernels, sm_count: int, figures: Figures, form: str, x: Tensor, given: Given, **lies: Any
) -> set[str]:
    """Run every legal recipe, compare it with the reference and with the original, and return which they were."""
    expected, scale = reference(form, cupy, x.values().astype(cupy.float64), given.values)
    met, first = set(), None
    for row in legal(form, x):
        y = launched(kernels, sm_count, row, x, given, **lies)
        first = y.bits.copy() if first is None else first
        found = against(cupy, form, row, x.dtype, x.width, expected, scale, y.values())
        figures.add(row, x.dtype, found)
        figures.add_equal(row, y, first)
        assert found.right, f"{row.id} {x.dtype} {x.rows} x {x.width}, {given.parameters}: {found}"
        met.add(row.id)
    return met


def with_weights_at(given: Given, offset: int) -> Given:
    """Return the same values, each vector `offset` elements past a boundary."""
    moved = []
    for weight in given.weights:
        copy = blank(weight.dtype, 1, weight.width, offset=offset)
        copy.bits[...] = weight.bits
        moved.append(copy)
    return evolve(given, weights=tuple(moved), before=tuple(weight.raw.copy() for weight in moved))
