"""The recipe table: one row a recipe. A new family adds rows here and templates in `kernels/device`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from attrs import field, frozen

from kernels.dtypes import STORAGE
from kernels.errors import KernelError

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
    workspace : its CTAs talk to each other through memory that follows the pointers in its arguments.
    """

    file: str
    chain: Callable[[Recipe, int], int] = field(eq=False)
    chain_meaning: str
    workspace: bool = False


@frozen(cache_hash=True)
class Recipe:
    """One physical way to run every program of a form.

    Attributes
    ----------
    id : unique name, for people, requests and tie-breaks.
    form : the normal form of the programs it runs, computed from their expression by `features.proof`.
    role : the column set of the schemas that price it: `original` (takes every legal workload), `recipe`, or `split`
        where several CTAs share a row.
    threads : threads a CTA.
    items : contiguous storage elements a thread and step.
    rows_per_cta : rows one CTA works on; the grid is ceil(rows / rows_per_cta), times the parts of a split row.
    proofs : names of the proofs that make it legal, in the order in which they are tried.
    numerics : `bit_equal` to the original, or `reordered` within the stated bound.
    phases : chunks of threads x items elements that share one block scan.
    experimental : admitted only where a profile says that validation earned it.
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
    dtypes: tuple[str, ...] = tuple(STORAGE)
    experimental: bool = False

    def facts(self) -> dict[str, Any]:
        """Return the row as JSON-ready facts."""
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


def original_of(form: str) -> Recipe:
    """Return the original of a form, or raise `KernelError`."""
    rows = recipes_of(form)
    if not rows:
        raise KernelError(f"no original kernel runs programs of form {form!r}")
    return rows[0]
