"""How a recipe is launched: its grid, and the arguments beyond pointers and extents."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from kernels.recipes import Recipe

MAX_GRID = 2**31 - 1


@frozen
class LaunchShape:
    """CTAs, threads a CTA, and integer arguments that follow the extents."""

    ctas: int
    threads: int
    extra: tuple[int, ...] = ()


def launch_shape(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    """Return the launch of a recipe for rows x width, neither of which is 0."""
    return _SHAPES.get(recipe.template, _rows_by_ctas)(recipe, rows, width, sm_count)


def _rows_by_ctas(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    return LaunchShape(-(-rows // recipe.rows_per_cta), recipe.threads)


# Forms of scan_original.cu: warps that take a row. The number is the kernel's `form` argument.
_ORIGINAL_SCAN_WARPS = (1, 2, 4, 4, 8)
_ONE_WARP, _TWO_WARPS, _FOUR_WARPS, _FOUR_WARPS_PAIRED, _EIGHT_WARPS_PAIRED = range(5)


def _original_scan_form(rows: int, width: int, sm_count: int) -> int:
    """Fewer warps a row as rows abound, since each row then wastes fewer; more as a row gets long.

    The bounds are where the forms crossed on an H200 on 2026-11-29 (FP16, microseconds by form): 17 x 1024 takes 3.2,
    2.2, 1.7, 2.0; 1024 x 1024 2.5, 2.4, 2.4, 3.4; 4096 x 1024 4.3, 4.7, 5.8, 9.3; 1500 x 6144 13.0, 8.5, 9.3, 8.2,
    12.7; 300 x 3584 6.8, 3.3, 3.4, 3.1, 2.7. Eight warps without pairing won nowhere and were dropped.
    """
    rows_per_sm = rows / sm_count
    if width > 2304:
        return _EIGHT_WARPS_PAIRED if rows_per_sm <= 4 else _FOUR_WARPS_PAIRED
    if width <= 256 or rows_per_sm > 16:
        return _ONE_WARP
    if width <= 512 or rows_per_sm > 2:
        return _TWO_WARPS
    return _FOUR_WARPS if width <= 1024 else _FOUR_WARPS_PAIRED


def _original_scan(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    form = _original_scan_form(rows, width, sm_count)
    rows_per_cta = recipe.threads // (32 * _ORIGINAL_SCAN_WARPS[form])
    return LaunchShape(min(-(-rows // rows_per_cta), MAX_GRID), recipe.threads, (form,))


_SHAPES: dict[str, Callable[[Recipe, int, int, int], LaunchShape]] = {"scan_original.cu": _original_scan}
