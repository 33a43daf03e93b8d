"""How a recipe is launched: its grid, and the arguments beyond pointers and extents."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from kernels.recipes import Number, Recipe, split_parts

MAX_GRID = 2**31 - 1
WORD_BYTES = 8


@frozen
class LaunchShape:
    """CTAs, threads a CTA, integer arguments that follow the extents, and what the CTAs talk through, if they do."""

    ctas: int
    threads: int
    extra: tuple[int, ...] = ()
    workspace_bytes: int = 0


@frozen
class RowSplit:
    """The warps of a CTA that take a row together, the chunks they take at a step, the CTAs that share a row."""

    warps: Number
    phases: Number
    ctas: Number = 1


def launch_shape(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    """Return the launch of a recipe for rows x width, neither of which is 0."""
    return _SHAPES.get(recipe.template, _rows_by_ctas)(recipe, rows, width, sm_count)


def _rows_by_ctas(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    return LaunchShape(-(-rows // recipe.rows_per_cta), recipe.threads)


def row_split(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> RowSplit:
    """Return how a launch divides a row; for numbers or arrays of them."""
    if recipe.template in _SPLITS:
        return _SPLITS[recipe.template](recipe, rows, width, sm_count)
    return RowSplit(recipe.threads // 32 // recipe.rows_per_cta, recipe.phases)


# The forms of scan_original.cu, by the kernel's `form` argument: 1, 2 or 4 warps a row, 4 paired, 8 paired. Paired
# warps take two chunks a step.
_PAIRED_FROM = 3


def _original_scan_form(rows: Number, width: Number, sm_count: int) -> Number:
    """Fewer warps a row as rows abound, since each row then wastes fewer; more as a row gets long.

    The bounds are where the forms crossed on an H200 on 2026-11-29 (FP16, microseconds by form): 17 x 1024 takes 3.2,
    2.2, 1.7, 2.0; 1024 x 1024 2.5, 2.4, 2.4, 3.4; 4096 x 1024 4.3, 4.7, 5.8, 9.3; 1500 x 6144 13.0, 8.5, 9.3, 8.2;
    300 x 3584 6.8, 3.3, 3.4, 3.1, 2.7. Eight warps without pairing won nowhere and were dropped.
    """
    one = (width <= 256) | (rows > 16 * sm_count)
    two = (width <= 512) | (rows > 2 * sm_count)
    narrow = (1 - one) * (1 * two + (1 - two) * (2 + (width > 1024)))
    wide = _PAIRED_FROM + (rows <= 4 * sm_count)
    return (width <= 2304) * narrow + (width > 2304) * wide


def _original_scan_split(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> RowSplit:
    form = _original_scan_form(rows, width, sm_count)
    paired = 1 * (form >= _PAIRED_FROM)
    return RowSplit(2 ** (form - paired), 1 + paired)


def _original_scan(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    rows_per_cta = recipe.threads // (32 * _original_scan_split(recipe, rows, width, sm_count).warps)
    form = _original_scan_form(rows, width, sm_count)
    return LaunchShape(min(-(-rows // rows_per_cta), MAX_GRID), recipe.threads, (form,))


def _split_scan_split(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> RowSplit:
    return RowSplit(recipe.threads // 32, recipe.phases, split_parts(recipe, width))


def _split_scan(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    """The workspace holds the counter that numbers the CTAs, and a word for each."""
    parts = split_parts(recipe, width)
    return LaunchShape(rows * parts, recipe.threads, (parts,), (1 + rows * parts) * WORD_BYTES)


_SHAPES: dict[str, Callable[[Recipe, int, int, int], LaunchShape]] = {
    "scan_original.cu": _original_scan,
    "scan_split.cu": _split_scan,
}
_SPLITS: dict[str, Callable[[Recipe, Number, Number, int], RowSplit]] = {
    "scan_original.cu": _original_scan_split,
    "scan_split.cu": _split_scan_split,
}
