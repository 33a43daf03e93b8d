"""The proofs of row reductions, for one workload or many: what each way through rows needs besides the program.

Rows are counted in programs (CTAs) that take some of them; how many the original takes follows from rows and width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from features.claim import Claim
from features.proof_of_reduction import independent_rows
from features.workload import Workload
from features.workloads import Workloads
from kernels.dtypes import storage
from kernels.guard import VECTOR_BYTES
from kernels.launch import MAX_GRID, lane_elements
from kernels.recipe import Recipe
from kernels.reduction_shapes import original_rows
from kernels.reductions import (
    FLAT_WIDTH,
    LEAST_SHARE,
    MOST_PARTS,
    MOST_STEPS,
    STAGE_BYTES,
    WIDEST_STEP_BYTES,
)

SUBGROUP_LANES = 32
# A sub-warp's lanes take two packs of 8 elements each in one step.
SHORT_PACKS = 2
MAX_SPLIT_WIDTH = 2**34  # parts are counted in units of 8 elements, in 32 bits


def regrouped(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """A program takes fewer rows than one of the original, so the same rows make strictly more programs."""
    original = original_rows(work.rows, work.width)
    return Claim(
        (
            (
                "not_more_programs",
                recipe.rows_per_cta < original,
                lambda: (
                    f"the original takes {original} rows a program at width {work.width}, no more than "
                    f"{recipe.rows_per_cta}"
                ),
            ),
        ),
        lambda: {"original_rows_per_program": original, "rows_per_program": recipe.rows_per_cta},
    )


def lanes_have_work(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """A row has pieces for more than an eighth of its lanes."""
    at_once = recipe.lanes * lane_elements(recipe, storage(work.dtype).bytes)
    return Claim(
        (
            (
                "width_too_small",
                LEAST_SHARE * work.width > at_once,
                lambda: (
                    f"width {work.width} is no more than 1/{LEAST_SHARE} of the {at_once} elements that {recipe.lanes} "
                    "lanes take at once"
                ),
            ),
        ),
        lambda: {"elements_at_once": at_once},
    )


def few_steps(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """A row takes few steps, or the recipe is the widest: there are others for longer rows."""
    element_bytes = storage(work.dtype).bytes
    step = recipe.lanes * lane_elements(recipe, element_bytes) * recipe.phases
    return Claim(
        (
            (
                "width_too_large",
                (step * element_bytes >= WIDEST_STEP_BYTES) | (work.width <= MOST_STEPS * step),
                lambda: f"width {work.width} is more than {MOST_STEPS * step} elements ({MOST_STEPS} steps of {step})",
            ),
        ),
        lambda: {"step_elements": step, "steps_per_row": -(-work.width // step)},
    )


def short_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """A row is at most two packs of 8 elements for each of the few lanes that take it."""
    lanes = recipe.lanes
    most = SHORT_PACKS * lanes * recipe.items
    return Claim(
        (
            (
                "width_too_large",
                work.width <= most,
                lambda: (
                    f"width {work.width} is more than {most} ({SHORT_PACKS} x {recipe.items} elements for each of "
                    f"{lanes} lanes)"
                ),
            ),
        ),
        lambda: {"lanes_per_row": lanes, "most_elements": most},
    )


def held_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The lanes of a row hold all of it at once and are not nearly idle."""
    most = recipe.lanes * recipe.phases * lane_elements(recipe, storage(work.dtype).bytes)
    return Claim(
        (
            (
                "width_too_large",
                work.width <= most,
                lambda: f"width {work.width} is more than the {most} elements that {recipe.lanes} lanes hold",
            ),
            (
                "width_too_small",
                LEAST_SHARE * work.width > most,
                lambda: (
                    f"width {work.width} is no more than 1/{LEAST_SHARE} of the {most} elements that {recipe.lanes} "
                    "lanes hold"
                ),
            ),
        ),
        lambda: {"lanes_per_row": recipe.lanes, "most_elements": most},
    )


def staged_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The rows of a program are one span without gaps, on a 16-byte boundary, and fit its shared memory."""
    element_bytes = storage(work.dtype).bytes
    staged = recipe.rows_per_cta * work.width * element_bytes
    return Claim(
        (
            (
                "width_too_large",
                staged <= STAGE_BYTES,
                lambda: (
                    f"{recipe.rows_per_cta} rows of {work.width} elements are {staged} bytes, more than the "
                    f"{STAGE_BYTES} that a program stages"
                ),
            ),
            _contiguous(work),
            _aligned_base(work),
        ),
        lambda: {"staged_bytes": staged, "origin_multiple_bytes": staged, "vector_bytes": VECTOR_BYTES},
    )


def flat_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Rows are one span without gaps on a 16-byte boundary, and so short that eight of them are a thread's share."""
    each = recipe.rows_each
    share = each * work.width * storage(work.dtype).bytes
    return Claim(
        (
            (
                "width_too_large",
                work.width <= FLAT_WIDTH,
                lambda: f"width {work.width} is more than {FLAT_WIDTH}, and a thread takes {each} whole rows",
            ),
            _contiguous(work),
            _aligned_base(work),
        ),
        lambda: {"rows_per_thread": each, "thread_bytes": share, "vector_bytes": VECTOR_BYTES},
    )


def narrow_indices(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Rows, and the elements of one, are counted in 32 bits."""
    return Claim((_countable("rows", work.rows), _countable("elements a row", work.width)), lambda: {"index_bits": 32})


def _countable(what: str, count: Any) -> tuple[str, Any, Callable[[], str]]:
    return (
        "index_overflow",
        count <= MAX_GRID,
        lambda: f"{count} {what} are more than {MAX_GRID}, past which none are counted",
    )


def aligned_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Every row starts on a 16-byte boundary and is a whole number of vectors, so that no load is masked or partial."""
    element_bytes = storage(work.dtype).bytes
    vector = VECTOR_BYTES // element_bytes
    last = (work.rows - 1) * work.row_pitch
    return Claim(
        (
            (
                "width_not_divisible",
                work.width % vector == 0,
                lambda: f"width {work.width} is not a multiple of {vector} elements (16 bytes)",
            ),
            _aligned_base(work),
            (
                "misaligned",
                (work.row_pitch % vector == 0) | (work.rows <= 1),
                lambda: f"row pitch {work.row_pitch} is not a multiple of {vector} elements (16 bytes)",
            ),
        ),
        lambda: {
            "vector_bytes": VECTOR_BYTES,
            "origin_multiple_elements": vector,
            "first_origin_elements": 0,
            "last_origin_elements": last + work.width - vector,
            "span_bytes": (last + work.width) * element_bytes,
        },
    )


def _contiguous(work: Workload | Workloads) -> tuple[str, Any, Callable[[], str]]:
    return (
        "rows_not_contiguous",
        (work.row_pitch == work.width) | (work.rows <= 1),
        lambda: f"row pitch {work.row_pitch} is not the width {work.width}, so rows are no single span",
    )


def _aligned_base(work: Workload | Workloads) -> tuple[str, Any, Callable[[], str]]:
    return (
        "misaligned",
        work.alignment_bytes % VECTOR_BYTES == 0,
        lambda: f"bases are {work.alignment_bytes}-byte aligned and {VECTOR_BYTES}-byte loads need more",
    )


def spread_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """A row is long enough for two parts of four packs a thread, and the grid holds the parts of any launch."""
    least = 8 * 4 * recipe.threads
    return Claim(
        (
            (
                "width_too_small",
                work.width > least,
                lambda: (
                    f"width {work.width} is not more than {least} (4 x 8 elements x {recipe.threads} threads), so "
                    "one program takes the row"
                ),
            ),
            (
                "index_overflow",
                work.width <= MAX_SPLIT_WIDTH,
                lambda: f"width {work.width} is more than {MAX_SPLIT_WIDTH}, past which parts are not counted",
            ),
            (
                "index_overflow",
                work.rows <= MAX_GRID // MOST_PARTS,
                lambda: f"{work.rows} rows of up to {MOST_PARTS} parts are more than a grid's {MAX_GRID}",
            ),
        ),
        lambda: {"least_parts": 2, "most_parts": MOST_PARTS, "order": "parts, by lanes of one warp"},
    )


def subgroups(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Every subgroup of a row has its 32 lanes, and every thread takes the same steps to each barrier."""
    lanes = recipe.lanes
    return Claim(
        (
            (
                "incomplete_subgroup",
                lanes % SUBGROUP_LANES == 0 and recipe.threads == lanes * recipe.rows_per_cta,
                lambda: (
                    f"{recipe.threads} threads give {recipe.rows_per_cta} rows {lanes} lanes each, which are no "
                    f"complete subgroups of {SUBGROUP_LANES}"
                ),
            ),
        ),
        lambda: {"lanes_per_row": lanes, "subgroups_per_row": lanes // SUBGROUP_LANES},
    )


# By the name that a recipe's row gives.
REDUCE_PROOFS: dict[str, Callable[[Workload | Workloads, Recipe], Claim]] = {
    "independent_rows": independent_rows,
    "regrouped": regrouped,
    "lanes_have_work": lanes_have_work,
    "few_steps": few_steps,
    "short_rows": short_rows,
    "held_rows": held_rows,
    "staged_rows": staged_rows,
    "flat_rows": flat_rows,
    "aligned_rows": aligned_rows,
    "narrow_indices": narrow_indices,
    "spread_rows": spread_rows,
    "subgroups": subgroups,
}
