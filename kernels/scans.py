"""The further ways through the rows of a scan as a table: fixed forms of any width, many rows in one run, short rows.

Numbers are whole numbers, or arrays of them. `docs/facts.md` has the timings that chose these rows of the table.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from kernels.recipe import Recipe
from kernels.reductions import SHORT

Number = Any  # an int, or a NumPy array of them

ANY, NARROW, BROAD, FLAT, COVER, TINY = "any", "narrow", "broad", "flat", "cover", "tiny"
# A run or a covered row that begins past a 16-byte boundary is cut there: up to this many elements before are masked.
BEFORE_RUN = 7
# A form of the original takes rows of more than half a step and of this many steps at most; the widest has no most. Of
# 355 times that one took 9 to 16 steps in training, it was the fastest by more than 3 % in seven, most by 13 % (any16,
# 512 x 40961 FP32, where any16p is next), and slower than the original by more than 3 % in 251 (H200, 2026-11-30).
MOST_STEPS, WIDEST_STEP = 8, 8192
# Eight and sixteen warps a row that take one chunk a step are for few rows: of 332 times that they took more than these
# in training, they were the fastest by more than 3 % in three, most by 9 % (any8, 133 x 4097 FP32), and slower than the
# original by more than 3 % in 243.
FEW_ROWS, MANY_WARPS = 64, 8
# A thread takes this many adjacent rows of up to this many elements; eight rows are whole vectors, of any width.
TINY_ROWS, TINY_WIDTH = 8, 8

_ANYWHERE = ("any", "any")
_ROWS_ALIGNED = ("rows", "rows")
_PACKED = ("packed", "packed")
_SPANS = ("span", "span")
# By what the lanes of a row move: the role, the proofs, and what is asked of x and y.
_HELD = {
    "lanes": (SHORT, "elements", ("row_in_lanes",), _ANYWHERE),
    "vector": (SHORT, "vectors", ("row_in_lanes", "aligned_rows"), _ROWS_ALIGNED),
    "cover": (COVER, "cover", ("row_in_cover",), _ANYWHERE),
}
# Lines of coefficients of their own, for what common ones price worst: one or two warps a row meet thousands of rows at
# once, in small pieces, and 16 are most of what an SM holds.
_STEPPED = {1: NARROW, 2: NARROW, 16: BROAD}


@frozen
class Way:
    """One way through rows; `scan.<name>` is its recipe. Fields are those of `Recipe`."""

    name: str
    role: str
    template: str
    threads: int
    rows_per_cta: int
    proofs: tuple[str, ...]
    alignment: tuple[str, str]
    items: int = 8
    phases: int = 1
    rows_each: int = 1
    constants: tuple[tuple[str, str], ...] = ()


def _any(name: str, threads: int, warps: int, phases: int = 1) -> Way:
    return Way(
        name,
        _STEPPED.get(warps, ANY),
        "scan_any.cu",
        threads,
        threads // (32 * warps),
        ("closed_prefix", "row_in_steps"),
        _ANYWHERE,
        phases=phases,
        constants=(("WARPS", str(warps)),),
    )


def _flat(threads: int) -> Way:
    return Way(f"flat{threads}", FLAT, "scan_flat.cu", threads, 1, ("closed_prefix", "packed_rows"), _PACKED)


def _held(kind: str, lanes: int, items: int, phases: int = 1, rows_each: int = 1) -> Way:
    role, moves, proofs, alignment = _HELD[kind]
    several = rows_each > 1
    return Way(
        f"{kind}{lanes}x{items * phases}{f'r{rows_each}' if several else ''}",
        role,
        "scan_lanes.cu",
        128,
        128 // lanes * rows_each,
        ("closed_prefix", *proofs, *(("many_rows",) if several else ())),
        alignment,
        items=items,
        phases=phases,
        rows_each=rows_each,
        constants=(("LANES", str(lanes)), ("MOVES", moves), ("ROWS_EACH", str(rows_each))),
    )


def _tiny(threads: int) -> Way:
    return Way(
        f"tiny{threads}",
        TINY,
        "scan_tiny.cu",
        threads,
        threads * TINY_ROWS,
        ("closed_prefix", "tiny_rows"),
        _SPANS,
        rows_each=TINY_ROWS,
    )


WAYS: tuple[Way, ...] = (
    _any("any1", 128, 1),
    _any("any2", 128, 2),
    _any("any4", 128, 4),
    _any("any4p", 128, 4, 2),
    _any("any8", 256, 8),
    _any("any16", 512, 16),
    _any("any16p", 512, 16, 2),
    _flat(128),
    _flat(256),
    _held("lanes", 1, 4),
    _held("lanes", 8, 4),
    _held("lanes", 32, 4),
    _held("lanes", 32, 8),
    _held("lanes", 128, 8),
    _held("vector", 8, 8),
    _held("vector", 16, 8),
    _held("vector", 32, 8),
    _held("vector", 32, 8, phases=2),
    _held("vector", 32, 8, phases=4),
    _held("vector", 128, 8),
    _held("vector", 8, 8, rows_each=4),
    _held("vector", 16, 8, rows_each=2),
    _held("cover", 32, 8),
    _held("cover", 32, 8, phases=2),
    _held("cover", 32, 8, phases=4),
    _held("cover", 128, 8),
    _tiny(32),
    _tiny(128),
)


def run_elements(threads: int, items: int) -> int:
    """Return the elements of a flat recipe's run, wherever it begins."""
    return threads * items - BEFORE_RUN


def run_rows(recipe: Recipe, width: Number) -> Number:
    """Return the whole rows that a CTA of a flat recipe takes as one run; one where none would fit."""
    rows = run_elements(recipe.threads, recipe.items) // (width + (width < 1))
    return rows + (rows < 1)


def step_elements(recipe: Recipe) -> int:
    """Return the elements of a row that its threads take at one step; where lanes hold a row, those that they hold."""
    return recipe.lanes * recipe.items * recipe.phases


def held_elements(recipe: Recipe) -> int:
    """Return the most elements of a row that lanes hold, wherever it begins."""
    return step_elements(recipe) - (BEFORE_RUN if covers(recipe) else 0)


def covers(recipe: Recipe) -> bool:
    """Tell whether vectors cover a row of any base, so that its first one may begin before it."""
    return dict(recipe.constants).get("MOVES") == "cover"


def flat_chain(recipe: Recipe, width: int) -> int:
    """1 an element of a thread, 5 in a warp, 1 a warp that the row reaches, and 2 for what is carried.

    The first of a thread and of the warps are added to zero.
    """
    warps = min(recipe.threads // 32, -(-width // (32 * recipe.items)) + 1)
    return recipe.items + 5 + warps + 2


def lanes_chain(recipe: Recipe, width: int) -> int:
    """items - 1 in a piece, 1 a doubling of the lanes, 1 for each total of a warp and piece, 2 for what lies before.

    Where vectors are moved, an FP32 piece is half as long and there are twice as many.
    """
    if recipe.lanes == 1:
        return recipe.items - 1
    shuffled = min(recipe.lanes, 32)
    totals = recipe.phases * (recipe.lanes // shuffled)
    in_pieces = max(recipe.items - 1 + totals, recipe.items // 2 - 1 + 2 * totals)
    return in_pieces + (shuffled - 1).bit_length() + 2
