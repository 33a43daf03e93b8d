"""The proofs of a scan's further ways through rows, for one workload or many: in runs, in steps, in lanes."""

from __future__ import annotations

from collections.abc import Callable

from features.claim import Claim, Condition
from features.workload import Workload
from features.workloads import Workloads
from kernels.dtypes import storage
from kernels.guard import VECTOR_BYTES
from kernels.recipe import Recipe
from kernels.reductions import LEAST_CTAS, LEAST_SHARE
from kernels.scans import (
    FEW_ROWS,
    MANY_WARPS,
    MOST_STEPS,
    TINY_WIDTH,
    WIDEST_STEP,
    held_elements,
    run_elements,
    run_rows,
    step_elements,
)

MOST_HELD_ROWS = 2**31 - 1  # rows are numbered in 32 bits


def packed_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Rows follow each other without gaps, and a CTA takes whole ones of them as one run, wherever it begins."""
    most = run_elements(recipe.threads, recipe.items)
    at_once = run_rows(recipe, work.width)
    return Claim(
        (
            (
                "width_too_large",
                work.width <= most,
                lambda: (
                    f"width {work.width} is more than {most} ({recipe.items} elements x {recipe.threads} threads, less "
                    "what may lie before a vector boundary)"
                ),
            ),
            _contiguous(work),
        ),
        lambda: {"rows_per_program": at_once, "programs": -(-work.rows // at_once), "most_elements": most},
    )


def row_in_steps(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """A row keeps more than half of its threads at work, and they need no more steps than a wider form is there for."""
    step = step_elements(recipe)
    most = MOST_STEPS * step
    return Claim(
        (
            (
                "width_too_small",
                2 * work.width > step,
                lambda: f"width {work.width} is not more than half of the {step} elements of a step",
            ),
            (
                "width_too_large",
                (step >= WIDEST_STEP) | (work.width <= most),
                lambda: f"width {work.width} is more than {most} elements ({MOST_STEPS} steps of {step})",
            ),
            (
                "too_many_rows",
                (recipe.lanes < 32 * MANY_WARPS) | (recipe.phases > 1) | (work.rows <= FEW_ROWS),
                lambda: f"{work.rows} rows are more than the {FEW_ROWS} that {recipe.lanes} threads a row are for",
            ),
        ),
        lambda: {"step_elements": step, "steps_per_row": -(-work.width // step)},
    )


def row_in_lanes(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The lanes of a row hold all of it at once and are not nearly idle, and rows can be numbered in 32 bits."""
    lanes, most = recipe.lanes, held_elements(recipe)
    return Claim(
        (
            (
                "width_too_large",
                work.width <= most,
                lambda: f"width {work.width} is more than the {most} elements that {lanes} lanes hold",
            ),
            (
                "width_too_small",
                LEAST_SHARE * work.width > most,
                lambda: f"width {work.width} is at most an eighth of the {most} elements that {lanes} lanes hold",
            ),
            (
                "index_overflow",
                work.rows <= MOST_HELD_ROWS,
                lambda: f"{work.rows} rows are more than {MOST_HELD_ROWS}",
            ),
        ),
        lambda: {"lanes_per_row": lanes, "most_elements": most, "rows_per_program": recipe.rows_per_cta},
    )


def row_in_cover(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The lanes hold a row wherever it begins, and not every row is whole vectors, which have recipes of their own."""
    held = row_in_lanes(work, recipe)
    return Claim((*held.conditions, not_vectors(work)), held.facts)


def not_vectors(work: Workload | Workloads) -> Condition:
    """Some row begins or ends off a 16-byte boundary."""
    vector = VECTOR_BYTES // storage(work.dtype).bytes
    whole = (work.width % vector == 0) & (work.row_pitch % vector == 0) & (work.alignment_bytes % VECTOR_BYTES == 0)
    return (
        "rows_are_vectors",
        whole ^ True,
        lambda: f"width {work.width} and row pitch {work.row_pitch} are whole vectors of {vector}, aligned",
    )


def many_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Lanes that take several rows have enough CTAs to spread over a GPU."""
    least = LEAST_CTAS * recipe.rows_per_cta
    return Claim(
        (
            (
                "too_few_rows",
                work.rows >= least,
                lambda: f"{work.rows} rows are fewer than {least} ({LEAST_CTAS} CTAs of {recipe.rows_per_cta} rows)",
            ),
        ),
        lambda: {"rows_per_lane": recipe.rows_each, "least_rows": least},
    )


def tiny_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Rows are one span without gaps on a 16-byte boundary, and so short that eight of them are a thread's share."""
    each = recipe.rows_each
    return Claim(
        (
            (
                "width_too_large",
                work.width <= TINY_WIDTH,
                lambda: f"width {work.width} is more than {TINY_WIDTH}, and a thread takes {each} whole rows",
            ),
            _contiguous(work),
            (
                "misaligned",
                work.alignment_bytes % VECTOR_BYTES == 0,
                lambda: f"bases are {work.alignment_bytes}-byte aligned and {VECTOR_BYTES}-byte moves need more",
            ),
        ),
        lambda: {"rows_per_thread": each, "thread_bytes": each * work.width * storage(work.dtype).bytes},
    )


def _contiguous(work: Workload | Workloads) -> Condition:
    return (
        "rows_not_contiguous",
        (work.row_pitch == work.width) | (work.rows <= 1),
        lambda: f"row pitch {work.row_pitch} is not the width {work.width}, so rows are no single run",
    )


# By the name that a recipe's row gives.
SCAN_PROOFS: dict[str, Callable[[Workload | Workloads, Recipe], Claim]] = {
    "packed_rows": packed_rows,
    "row_in_steps": row_in_steps,
    "row_in_lanes": row_in_lanes,
    "row_in_cover": row_in_cover,
    "many_rows": many_rows,
    "tiny_rows": tiny_rows,
}
