"""The grid of shapes that every recipe must be right on, what of it fits a GPU, and its FP64 truth in blocks of rows.

Nothing here needs a GPU: `xp` is NumPy or CuPy. Truth and bound are those of `kernels.reference`. Only the prefix sums
are made another way, in blocks of columns, since CuPy takes a pass over everything for each doubling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from features.expression import LAST
from features.program import OPS, axis_of, program_of
from features.proof import Proved, form_of, prove
from features.workload import Workload
from kernels.dtypes import STORAGE, storage
from kernels.norms import NORMS
from kernels.recipe import Recipe
from kernels.recipes import recipes_of
from kernels.reductions import REDUCTIONS, out_width
from kernels.reference import chain, half_ulp, reference

ROWS = (1, 2, 3, 17, 127, 131, 132, 133, 512, 4095, 65_537, 1_000_000)
WIDTHS = (1, 2, 8, 31, 33, 64, 127, 128, 513, 1000, 1024, 3584, 4097, 8192, 50_257, 151_936, 1_048_576)
# Rows that lanes hold fill more than half of what they hold, so normalizations meet widths between, too.
FILLING = (24, 256, 512, 2048, 12_288, 24_576)
DTYPES = tuple(STORAGE)
# Those along the last axis: what reads along channels has tests of its own.
ROW_OPS = tuple(op for op in OPS if axis_of(program_of(op, DTYPES[0])) == LAST)
# Programs that share an input: what the reductions make is small, and what others make is as large as what they read.
GROUPS = {
    "scan": ("scan",),
    "reductions": tuple(op for op in OPS if form_of(program_of(op, DTYPES[0])) in REDUCTIONS),
    **{name: tuple(norm.op for norm in NORMS.values() if norm.algebra == name) for name in ("softmax", "rms", "layer")},
}
# Beyond this many elements a shape is met in one way, an aligned base and a replayed graph.
LARGE = 2**28
# Elements of a block of rows; FP64 and what is made of it take about this many bytes an element.
BLOCK_ELEMENTS, BLOCK_BYTES_EACH = 2**25, 128
# Guard bytes, workspaces and what allocators round up to.
SPARE_BYTES = 2**30
_COLUMNS = 16


def widths(form: str) -> tuple[int, ...]:
    """Return the widths that programs of a form are met at."""
    return tuple(sorted((*WIDTHS, *FILLING))) if form in NORMS else WIDTHS


@frozen
class Way:
    """How a shape is met: elements that its bases lie past a boundary, and whether a graph is replayed."""

    offset: int
    graph: bool

    def __str__(self) -> str:
        return f"{'a graph' if self.graph else 'plain'}, {self.offset} elements past a boundary"


WAYS = (Way(0, graph=False), Way(0, graph=True), Way(1, graph=False), Way(3, graph=True))
LARGE_WAYS = (Way(0, graph=True),)


def ways(rows: int, width: int) -> tuple[Way, ...]:
    """Return the ways in which a shape is met."""
    return WAYS if rows * width <= LARGE else LARGE_WAYS


def proved(op: str, dtype: str, rows: int, width: int, offset: int = 0) -> tuple[Recipe, ...]:
    """Return every recipe that may run on rows without gaps, `offset` elements past a boundary; the original first."""
    program = program_of(op, dtype)
    alignment = 16 if offset == 0 else math.gcd(offset * storage(dtype).bytes, 16)
    work = Workload(program, rows, width, width, alignment)
    return tuple(row for row in recipes_of(form_of(program)) if isinstance(prove(work, row), Proved))


def tensor_bytes(form: str, dtype: str, rows: int, width: int) -> tuple[int, int]:
    """Return the bytes of input and of output."""
    return rows * width * storage(dtype).bytes, rows * out_width(form, width) * storage(dtype).bytes


def block_rows(width: int) -> int:
    """Return how many rows of a width are a block: one at least."""
    return max(1, BLOCK_ELEMENTS // width)


def blocks(rows: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield the first row of each block and the one after its last."""
    step = block_rows(width)
    return ((first, min(rows, first + step)) for first in range(0, rows, step))


def working_bytes(rows: int, width: int) -> int:
    """Return the bytes of device memory that a check takes besides inputs and outputs."""
    return min(rows, block_rows(width)) * width * BLOCK_BYTES_EACH + SPARE_BYTES


def needed_bytes(forms: Sequence[str], dtype: str, rows: int, width: int) -> int:
    """Return the least bytes of device memory that a shape can be checked in: an input and one output at a time."""
    x_bytes, _ = tensor_bytes(forms[0], dtype, rows, width)
    return x_bytes + max(tensor_bytes(form, dtype, rows, width)[1] for form in forms) + working_bytes(rows, width)


def batches(jobs: Sequence[tuple[Recipe, int]], room_bytes: int) -> Iterator[list[Recipe]]:
    """Yield recipes, each given with the bytes of its output, in lists whose outputs have room together."""
    batch: list[Recipe] = []
    taken = 0
    for row, size in jobs:
        if batch and taken + size > room_bytes:
            yield batch
            batch, taken = [], 0
        batch.append(row)
        taken += size
    if batch:
        yield batch


def prefix_sums(xp: Any, x: Any) -> Any:
    """Return the sums of FP64 rows up to each element: within blocks of 16 columns, and of the blocks likewise.

    A sum is a chain of 16 additions for each power of 16 in the width: exact to 2^-46 of the sum of magnitudes.
    """
    rows, width = x.shape
    count = -(-width // _COLUMNS)
    parts = xp.zeros((rows, count * _COLUMNS), xp.float64)
    parts[:, :width] = x
    parts = parts.reshape(rows, count, _COLUMNS)
    for column in range(1, min(width, _COLUMNS)):
        parts[:, :, column] += parts[:, :, column - 1]
    if count > 1:
        totals = prefix_sums(xp, parts[:, :-1, -1])
        parts[:, 1:, :] += totals[:, :, None]
    return parts.reshape(rows, count * _COLUMNS)[:, :width]


@frozen(eq=False)
class Truth:
    """FP64 reference, scale and half a unit in the last place of a block of rows."""

    form: str
    dtype: str
    width: int
    expected: Any
    scale: Any
    half: Any

    def beyond(self, xp: Any, recipe: Recipe, got: Any) -> Any:
        """Return how many results are not within the bound, as an array without axes: nothing waits for a GPU.

        An overflow that the bound allows is counted, too: what is counted is compared again by `kernels.reference`.
        """
        reduces = self.form in REDUCTIONS
        if reduces and REDUCTIONS[self.form].exact:
            good = (got == self.expected) & (xp.signbit(got) == xp.signbit(self.expected))
        else:
            limit = self.half + (chain(recipe, self.width) + 2) * 2.0**-24 * self.scale
            good = xp.abs(got - self.expected) <= limit
            if reduces:
                good |= got == self.expected
        if reduces:
            good |= xp.isnan(got) & xp.isnan(self.expected)
        return good.size - xp.count_nonzero(good)


def truth(xp: Any, form: str, dtype: str, x: Any, operands: Sequence[Any] = ()) -> Truth:
    """Return the truth of a block of rows, given as FP64, and of a program's operands, as `reference` takes them."""
    if form == "prefix.sum":
        expected, scale = prefix_sums(xp, x), prefix_sums(xp, xp.abs(x))
    else:
        expected, scale = reference(form, xp, x, operands)
    return Truth(form, dtype, x.shape[1], expected, scale, half_ulp(xp, expected, storage(dtype)))


def holes(width: int, first: int, last: int) -> tuple[list[int], list[int]]:
    """Return rows of the block from `first` to `last`, counted within it, and a column of each: there the reductions
    meet a NaN. They are the fourth of every four among a block's first 256, so that a row alone is whole.
    """
    fourth = [row for row in range(first, min(last, first + 256)) if row % 4 == 3]
    return [row - first for row in fourth], [row * 7 % width for row in fourth]
