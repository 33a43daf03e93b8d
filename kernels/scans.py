"""The further ways through the rows of a scan as a table: fixed forms of any width, many rows in one run, short rows.

Numbers are whole numbers, or arrays of them. `docs/facts.md` has the timings that chose these rows of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from kernels.reductions import SHORT

if TYPE_CHECKING:
    from kernels.recipes import Recipe

Number = Any  # an int, or a NumPy array of them

ANY, FLAT = "any", "flat"
# A run that begins past a 16-byte boundary is cut at that boundary: up to this many elements before it are masked.
BEFORE_RUN = 7
# A form of the original takes rows of more than half a step and of this many steps at most; the widest has no most. The
# longest row that one won was of 9.8 steps (any8, 700 x 20001, H200, FP16, 2026-11-30), and each that is proved takes
# its time in a sweep: on the wide plan 2.5 forms a geometry, with 32 steps 2.9.
MOST_STEPS, WIDEST_STEP = 16, 8192
# Lanes that hold a row have more than an eighth of their elements in it; with fewer, a recipe of fewer lanes is there.
LEAST_SHARE = 8

_ANYWHERE = ("any", "any")
_ROWS_ALIGNED = ("rows", "rows")
_PACKED = ("packed", "packed")


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
    constants: tuple[tuple[str, str], ...] = ()


def _any(name: str, threads: int, warps: int, phases: int = 1) -> Way:
    return Way(
        name,
        ANY,
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


def _held(lanes: int, items: int, vectors: bool, phases: int = 1) -> Way:
    return Way(
        f"{'vector' if vectors else 'lanes'}{lanes}x{items * phases}",
        SHORT,
        "scan_lanes.cu",
        128,
        128 // lanes,
        ("closed_prefix", "row_in_lanes", *(("aligned_rows",) if vectors else ())),
        _ROWS_ALIGNED if vectors else _ANYWHERE,
        items=items,
        phases=phases,
        constants=(("LANES", str(lanes)), ("VECTORS", str(int(vectors)))),
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
    _held(1, 4, vectors=False),
    _held(8, 4, vectors=False),
    _held(32, 4, vectors=False),
    _held(32, 8, vectors=False),
    _held(128, 8, vectors=False),
    _held(8, 8, vectors=True),
    _held(16, 8, vectors=True),
    _held(32, 8, vectors=True),
    _held(32, 8, vectors=True, phases=2),
    _held(32, 8, vectors=True, phases=4),
    _held(128, 8, vectors=True),
)


def run_elements(threads: int, items: int) -> int:
    """Return the elements of a flat recipe's run, wherever it begins."""
    return threads * items - BEFORE_RUN


def run_rows(recipe: Recipe, width: Number) -> Number:
    """Return the whole rows that a CTA of a flat recipe takes as one run; one where none would fit."""
    rows = run_elements(recipe.threads, recipe.items) // (width + (width < 1))
    return rows + (rows < 1)


def step_elements(recipe: Recipe) -> int:
    """Return the elements of a row that its threads take at one step; where lanes hold a row, the most it may have."""
    return recipe.threads // recipe.rows_per_cta * recipe.items * recipe.phases


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
    lanes = recipe.threads // recipe.rows_per_cta
    if lanes == 1:
        return recipe.items - 1
    shuffled = min(lanes, 32)
    totals = recipe.phases * (lanes // shuffled)
    in_pieces = max(recipe.items - 1 + totals, recipe.items // 2 - 1 + 2 * totals)
    return in_pieces + (shuffled - 1).bit_length() + 2
