"""The recipe table: one row a recipe. A new family adds rows here and templates in `kernels/device`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from attrs import Factory, field, frozen

from kernels import reduction_shapes, reductions, scans
from kernels.dtypes import STORAGE
from kernels.errors import KernelError
from kernels.reductions import ARRANGEMENTS, REDUCTIONS, Arrangement, Reduction
from kernels.scans import WAYS, Way

Number = Any  # an int, or a NumPy array of them
ORIGINAL = "original"
RECIPE = "recipe"
SPLIT = "split"


@frozen
class Template:
    """One `.cu` file.

    Attributes
    ----------
    chain : bounds the longest chain of FP32 additions into one result, of a recipe at a width.
    workspace : its CTAs talk to each other through memory that follows the tensors in its arguments.
    by_vector : a lane takes 16-byte vectors, however many elements of the dtype they hold.
    """

    file: str
    chain: Callable[[Recipe, int], int] = field(eq=False)
    chain_meaning: str
    workspace: bool = False
    by_vector: bool = False


@frozen(cache_hash=True)
class Recipe:
    """One physical way to run every program of a form.

    Attributes
    ----------
    id : unique name, for people, requests and tie-breaks.
    form : the normal form of the programs it runs, computed from their expression by `features.proof`.
    role : the column set of the schemas that price it: `original` (takes every legal workload), `recipe`, `any` and
        `narrow` for one form of the original by itself, `split` where several CTAs share a row, `short` where lanes
        hold a row and `cover` where its ends are moved apart from its vectors, `flat` where a CTA takes rows as one
        run, `tiny` where a thread takes eight. A reduction's role is a name of `kernels.reductions`.
    threads : threads a CTA.
    items : contiguous storage elements a thread and step.
    rows_per_cta : rows one CTA works on; the grid is ceil(rows / rows_per_cta), times the parts of a split row. A flat
        recipe's CTA works on as many whole rows as fit it, one at least.
    proofs : names of the proofs that make it legal, in the order in which they are tried.
    numerics : `bit_equal` to the original, or `reordered` within the stated bound.
    phases : chunks of threads x items elements that share one block scan; vectors that a reduction asks for together.
    rows_each : rows that the same lanes take at once.
    experimental : admitted only where a profile says that validation earned it.
    family : the forms that share a schema, a fit and a grid; a form is a family of its own where none is given.
    alignment : what a launch demands of the 16-byte boundaries of x and of y, by the names of `kernels.guard.DEMANDS`.
    constants : further names and values that the template is compiled with.
    """

    id: str
    form: str
    role: str
    template: str
    threads: int
    items: int
    rows_per_cta: int
    proofs: tuple[str, ...]
    numerics: str
    phases: int = 1
    rows_each: int = 1
    dtypes: tuple[str, ...] = tuple(STORAGE)
    experimental: bool = False
    family: str = Factory(lambda self: self.form, takes_self=True)
    alignment: tuple[str, str] = ("rows", "rows")
    constants: tuple[tuple[str, str], ...] = ()

    @property
    def lanes(self) -> int:
        """The lanes of a CTA that take a row together, where the launch does not say otherwise."""
        return self.threads * self.rows_each // self.rows_per_cta

    def facts(self) -> dict[str, Any]:
        """Return the row as JSON-ready facts; those of the last four where they are not the plain ones."""
        further = {
            "rows_each": None if self.rows_each == 1 else self.rows_each,
            "family": None if self.family == self.form else self.family,
            "alignment": None if self.alignment == ("rows", "rows") else list(self.alignment),
            "constants": dict(self.constants) or None,
        }
        return {
            "id": self.id,
            "form": self.form,
            "role": self.role,
            "template": self.template,
            "threads": self.threads,
            "items": self.items,
            "rows_per_cta": self.rows_per_cta,
            "proofs": list(self.proofs),
            "numerics": self.numerics,
            "phases": self.phases,
            "dtypes": list(self.dtypes),
            "experimental": self.experimental,
            **{name: value for name, value in further.items() if value is not None},
        }


def split_parts(recipe: Recipe, width: Number) -> Number:
    """Return how many CTAs share a row. It may begin up to a vector less one element after a vector boundary."""
    part = recipe.threads * recipe.items * recipe.phases
    return -(-(width + recipe.items - 1) // part)


def _block_scan_chain(recipe: Recipe, width: int) -> int:
    """items - 1 in a thread, 5 in a warp, 1 a warp of the CTA, 1 a chunk for the carry, 2 to apply the offsets."""
    return recipe.items + 4 + recipe.threads // 32 + -(-width // (recipe.threads * recipe.items)) + 2


def _original_scan_chain(recipe: Recipe, width: int) -> int:
    """As the block scan, with chunks as small as the launch makes them: 4 warps or more beyond 2304 elements."""
    chunks = max(10, -(-width // (128 * recipe.items)) + 1)
    return recipe.items + 4 + recipe.threads // 32 + chunks + 3


def _any_scan_chain(recipe: Recipe, width: int) -> int:
    """As a block scan of the warps of a row, which may begin up to a vector less one element after a boundary."""
    steps = -(-(width + scans.BEFORE_RUN) // (recipe.lanes * recipe.items))
    return recipe.items + 4 + recipe.lanes // 32 + steps + 3


def _lanes_chain(lanes: int, phases: int, width: int) -> int:
    """2 in a vector of 4 elements, 1 a vector of a step, 1 a step, 1 for each end's element, 1 a halving of the lanes.

    Vectors are counted as 4 elements; of 2-byte storage they hold 8, in half as many additions and one more level.
    """
    steps = -(-width // (4 * lanes * phases))
    ends = 2 * -(-7 // lanes)
    return 3 + phases + steps + ends + (lanes - 1).bit_length()


def _rows_chain(recipe: Recipe, width: int) -> int:
    return _lanes_chain(recipe.lanes, recipe.phases, width)


def _original_reduce_chain(recipe: Recipe, width: int) -> int:
    """The most of the forms that rows of this or a lesser width meet; a lane alone adds three times, less than others.

    Past 2^33 rows 8 lanes take every width; wider rows than their own are then more than a terabyte.
    """
    ranges = ((form, first, last) for form, first, last in reduction_shapes.original_ranges() if form.lanes > 1)
    return max(_lanes_chain(f.lanes, f.phases, min(width, last)) for f, first, last in ranges if max(width, 1) >= first)


def _held_chain(recipe: Recipe, width: int) -> int:
    """2 in a vector of 4 elements (3 in one of 8), 1 a piece of a lane, 1 a halving of the lanes."""
    in_vector = 3 if TEMPLATES[recipe.template].by_vector else 0
    return in_vector + recipe.phases + (recipe.lanes - 1).bit_length()


def _staged_chain(recipe: Recipe, width: int) -> int:
    """Every fourth element of a row, the last three of it, and 2 for the four accumulators."""
    return -(-width // 4) + 5


def _flat_chain(recipe: Recipe, width: int) -> int:
    """Every element but the first, one after the other."""
    return max(width - 1, 1)


def _split_chain(recipe: Recipe, width: int) -> int:
    """A part of half the row at most, then the parts: 4 a lane and 5 in a warp."""
    return _lanes_chain(recipe.threads, recipe.phases, -(-width // 2) + 8) + reductions.MOST_PARTS // 32 + 5


def _streamed_chain(recipe: Recipe, width: int) -> int:
    """1 a chunk, 1 a halving of a lane's items, 5 in a warp, 1 a warp of the row."""
    steps = -(-width // (recipe.lanes * recipe.items * recipe.phases)) * recipe.phases
    return steps + recipe.items.bit_length() + 5 + recipe.lanes // 32


def _split_scan_chain(recipe: Recipe, width: int) -> int:
    """As a block scan of one part; earlier parts: 1 for each a thread takes, 5 in a warp, 1 a warp with any."""
    parts: int = split_parts(recipe, width)
    earlier = -(-parts // recipe.threads) + 5 + min(recipe.threads // 32, -(-parts // 32))
    return recipe.items + 4 + recipe.threads // 32 + recipe.phases + earlier + 3


_ONE_CTA = "thread, warp, CTA and carry, one after the other"
TEMPLATES = {
    template.file: template
    for template in (
        Template("scan_original.cu", _original_scan_chain, _ONE_CTA),
        Template("scan_cub.cu", _block_scan_chain, _ONE_CTA),
        Template(
            "scan_split.cu",
            _split_scan_chain,
            "thread, warp and CTA one after the other, and the sums of earlier parts in a fixed order",
            workspace=True,
        ),
        Template("scan_any.cu", _any_scan_chain, _ONE_CTA),
        Template("scan_flat.cu", scans.flat_chain, "thread, warp and CTA in turn, from where a row starts"),
        Template("scan_lanes.cu", scans.lanes_chain, "piece, lanes, warps and pieces, one after the other"),
        Template("scan_tiny.cu", _flat_chain, "a row's elements, one after the other"),
        Template(
            "reduce_original.cu",
            _original_reduce_chain,
            "vector, step, lane, warp and CTA, one after the other",
            by_vector=True,
        ),
        Template(
            "reduce_rows.cu", _rows_chain, "vector, step, lane, warp and CTA, one after the other", by_vector=True
        ),
        Template(
            "reduce_lean.cu", _rows_chain, "vector, step, lane, warp and CTA, one after the other", by_vector=True
        ),
        Template("reduce_lanes.cu", _held_chain, "piece, lane, warp and CTA, one after the other"),
        Template("reduce_several.cu", _held_chain, "vector, piece and lane, one after the other", by_vector=True),
        Template("reduce_flat.cu", _flat_chain, "a row's elements, one after the other", by_vector=True),
        Template("reduce_staged.cu", _staged_chain, "a quarter of the row, then the four accumulators", by_vector=True),
        Template("reduce_split.cu", _split_chain, "half a row at most, then the parts", workspace=True, by_vector=True),
        Template("reduce_streamed.cu", _streamed_chain, "chunks, items, warp and CTA, one after the other"),
    )
}


# Chunks that share a block scan. Two cut few wide rows by a third or more (16 x 131072: 256 threads 16.6 -> 11.6 us),
# but their registers lower the capacity that many one-chunk rows live on (32768 x 1024: 128 threads 33.9 -> 38.7 us).
# H200, FP16, 2026-11-29.
_SCAN_PHASES = {128: 1, 256: 2, 512: 2, 1024: 2}


def _scan_cub(threads: int) -> Recipe:
    return Recipe(
        id=f"scan.cub{threads}",
        form="prefix.sum",
        role=RECIPE,
        template="scan_cub.cu",
        threads=threads,
        items=8,
        rows_per_cta=1,
        proofs=("closed_prefix", "whole_chunks", "aligned_load"),
        numerics="reordered",
        phases=_SCAN_PHASES[threads],
    )


def _scan_split(threads: int, phases: int) -> Recipe:
    return Recipe(
        id=f"scan.split{threads * phases * 8}",
        form="prefix.sum",
        role=SPLIT,
        template="scan_split.cu",
        threads=threads,
        items=8,
        rows_per_cta=1,
        proofs=("closed_prefix", "row_parts"),
        numerics="reordered",
        phases=phases,
        alignment=("any", "any"),
    )


def _scan_way(way: Way) -> Recipe:
    return Recipe(
        id=f"scan.{way.name}",
        form="prefix.sum",
        role=way.role,
        template=way.template,
        threads=way.threads,
        items=way.items,
        rows_per_cta=way.rows_per_cta,
        proofs=way.proofs,
        numerics="reordered",
        phases=way.phases,
        rows_each=way.rows_each,
        alignment=way.alignment,
        constants=way.constants,
    )


def _reducing(reduction: Reduction, way: Arrangement) -> Recipe:
    return Recipe(
        id=f"{reduction.op}.{way.name}",
        form=reduction.form,
        role=way.role,
        template=way.template,
        threads=way.threads,
        items=way.items,
        rows_per_cta=way.rows_per_cta,
        proofs=reductions.proofs(reduction, way),
        numerics="reordered" if way.reorders and not reduction.exact else "bit_equal",
        phases=way.phases,
        rows_each=way.rows_each,
        dtypes=way.dtypes,
        experimental=way.experimental,
        family=reductions.FAMILY,
        alignment=way.alignment,
        constants=(*reduction.constants, *way.constants),
    )


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        id="scan.original",
        form="prefix.sum",
        role=ORIGINAL,
        template="scan_original.cu",
        threads=256,
        items=8,
        rows_per_cta=1,
        proofs=("closed_prefix",),
        numerics="bit_equal",
    ),
    *(_scan_cub(threads) for threads in (128, 256, 512, 1024)),
    *(_scan_split(threads, phases) for threads, phases in ((256, 1), (256, 2), (512, 2))),
    *map(_scan_way, WAYS),
    *(_reducing(r, a) for r in REDUCTIONS.values() for a in ARRANGEMENTS if reductions.has(r, a)),
)


def recipe(recipe_id: str) -> Recipe:
    """Return the recipe with this id, or raise `KernelError` listing those there are."""
    for row in RECIPES:
        if row.id == recipe_id:
            return row
    raise KernelError(f"recipe {recipe_id!r} is not known; use one of {', '.join(row.id for row in RECIPES)}")


@cache
def recipes_of(form: str) -> tuple[Recipe, ...]:
    """Return the recipes of a form in catalogue order, the original first; empty for a form without kernels."""
    rows = [row for row in RECIPES if row.form == form]
    return tuple(sorted(rows, key=lambda row: row.role != ORIGINAL))


@cache
def family_of(form: str) -> str:
    """Return the family of a form: what its recipes say; a form without kernels is a family of its own."""
    return next((row.family for row in recipes_of(form)), form)


def is_fitted_on(form: str) -> bool:
    """Tell whether a family is fitted on programs of a form: all but those with a part of its recipes."""
    return form not in REDUCTIONS or REDUCTIONS[form].variety >= reductions.ALL


def original_of(form: str) -> Recipe:
    """Return the original of a form, or raise `KernelError`."""
    rows = recipes_of(form)
    if not rows:
        raise KernelError(f"no original kernel runs programs of form {form!r}")
    return rows[0]
