"""How a recipe is launched: its grid, and the arguments beyond pointers and extents."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from kernels import norms, reduction_shapes, scans
from kernels.guard import VECTOR_BYTES
from kernels.recipe import Number, Recipe, split_parts
from kernels.templates import TEMPLATES

MAX_GRID = 2**31 - 1
WORD_BYTES = 8


@frozen
class LaunchShape:
    """CTAs, threads a CTA, integer arguments that follow the extents, and what the CTAs talk through, if they do."""

    ctas: int
    threads: int
    extra: tuple[int, ...] = ()
    workspace_bytes: int = 0


@frozen(eq=False)
class Spread:
    """How a launch goes through rows: lanes that take a row in one CTA, chunks (or vectors) they take at a step, rows a
    CTA, and CTAs a row. `run_rows` rows are taken as if they were one, in the same steps; `by_element` says (1) that a
    lane asks for its elements one by one. Whole numbers, or arrays of them.
    """

    lanes: Number
    phases: Number
    rows_per_cta: Number
    parts: Number = 1
    run_rows: Number = 1
    by_element: Number = 0


def launch_shape(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    """Return the launch of a recipe for rows x width, neither of which is 0."""
    return _SHAPES.get(recipe.template, _rows_by_ctas)(recipe, rows, width, sm_count)


def _rows_by_ctas(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    return LaunchShape(-(-rows // recipe.rows_per_cta), recipe.threads)


def spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    """Return how a recipe's launch goes through rows; for numbers or arrays of them."""
    by_shape = _SPREADS.get(recipe.template)
    if by_shape is not None:
        return by_shape(recipe, rows, width, sm_count)
    return Spread(recipe.lanes, recipe.phases * recipe.rows_each, recipe.rows_per_cta, run_rows=recipe.rows_each)


def rows_per_program(recipe: Recipe, rows: Number, width: Number) -> Number:
    """Return the rows that one CTA of a recipe takes at a time, whatever the GPU."""
    by_shape = _ROWS_BY_SHAPE.get(recipe.template)
    return recipe.rows_per_cta if by_shape is None else by_shape(recipe, rows, width)


def lane_elements(recipe: Recipe, element_bytes: int) -> int:
    """Return the elements that a lane takes at once: a 16-byte vector of them, or the items of the recipe's row."""
    return VECTOR_BYTES // element_bytes if TEMPLATES[recipe.template].by_vector else recipe.items


def load_bytes(recipe: Recipe, element_bytes: int) -> int:
    """Return the bytes of one load where a row is not at its ends: a vector's, or an element's."""
    wide = TEMPLATES[recipe.template].by_vector or recipe.alignment[0] != "any" or scans.covers(recipe)
    return VECTOR_BYTES if wide else element_bytes


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


def _original_scan_spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    form = _original_scan_form(rows, width, sm_count)
    paired = 1 * (form >= _PAIRED_FROM)
    lanes = 32 * 2 ** (form - paired)
    return Spread(lanes, 1 + paired, recipe.threads // lanes)


def _original_scan(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    rows_per_cta = _original_scan_spread(recipe, rows, width, sm_count).rows_per_cta
    form = _original_scan_form(rows, width, sm_count)
    return LaunchShape(min(-(-rows // rows_per_cta), MAX_GRID), recipe.threads, (form,))


def _split_scan_spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    return Spread(recipe.threads, recipe.phases, 1, split_parts(recipe, width))


def _split_scan(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    """The workspace holds the counter that numbers the CTAs, and a word for each."""
    parts = split_parts(recipe, width)
    return LaunchShape(rows * parts, recipe.threads, (parts,), (1 + rows * parts) * WORD_BYTES)


def _flat_scan(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    at_once = scans.run_rows(recipe, width)
    return LaunchShape(-(-rows // at_once), recipe.threads, (at_once,))


def _flat_scan_spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    at_once = scans.run_rows(recipe, width)
    return Spread(recipe.threads, recipe.phases, at_once, 1, at_once)


def _original_norm(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    lanes = norms.original_lanes(width)
    return LaunchShape(min(-(-rows * lanes // recipe.threads), MAX_GRID), recipe.threads, (1 * (lanes > 32),))


def _original_norm_spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    lanes = norms.original_lanes(width)
    return Spread(lanes, 1, recipe.threads // lanes)


def _clusters(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    return LaunchShape(rows * recipe.cluster, recipe.threads)


def _cluster_spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    return Spread(recipe.threads, recipe.phases, 1, recipe.cluster)


def _original_reduce(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    _, _, rows_per_cta = reduction_shapes.original_spread(rows, width)
    form = reduction_shapes.original_form(rows, width)
    return LaunchShape(min(-(-rows // rows_per_cta), MAX_GRID), recipe.threads, (form,))


def _split_reduce(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    parts, units = reduction_shapes.split_parts(recipe.threads, rows, width, sm_count)
    workspace_bytes = reduction_shapes.split_workspace_bytes(rows, parts)
    return LaunchShape(rows * parts, recipe.threads, (parts, units), workspace_bytes)


def _original_reduce_spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    lanes, phases, rows_per_cta = reduction_shapes.original_spread(rows, width)
    return Spread(lanes, phases, rows_per_cta, by_element=1 * (lanes == 1))


def _flat_reduce_spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    return Spread(1, 1, recipe.rows_per_cta)


def _tiny_scan_spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    """The rows of a thread are as many vectors as a row has elements, so nothing is masked but past the last row."""
    return Spread(1, recipe.phases, recipe.rows_per_cta, run_rows=recipe.rows_each)


def _split_reduce_spread(recipe: Recipe, rows: Number, width: Number, sm_count: int) -> Spread:
    parts, _ = reduction_shapes.split_parts(recipe.threads, rows, width, sm_count)
    return Spread(recipe.threads, recipe.phases, 1, parts)


def _rows_in_turn(recipe: Recipe, rows: int, width: int, sm_count: int) -> LaunchShape:
    return LaunchShape(min(-(-rows // recipe.rows_per_cta), MAX_GRID), recipe.threads)


_SHAPES: dict[str, Callable[[Recipe, int, int, int], LaunchShape]] = {
    "channel_original.cu": _rows_in_turn,
    "norm_original.cu": _original_norm,
    **dict.fromkeys((norms.CLUSTER_HELD, norms.CLUSTER_STREAMED), _clusters),
    "scan_original.cu": _original_scan,
    "scan_split.cu": _split_scan,
    "scan_flat.cu": _flat_scan,
    "reduce_original.cu": _original_reduce,
    "reduce_split.cu": _split_reduce,
}
_ROWS_BY_SHAPE: dict[str, Callable[[Recipe, Number, Number], Number]] = {
    "scan_flat.cu": lambda recipe, rows, width: scans.run_rows(recipe, width),
    "norm_original.cu": lambda recipe, rows, width: recipe.threads // norms.original_lanes(width),
    "reduce_original.cu": lambda recipe, rows, width: reduction_shapes.original_rows(rows, width),
}
_SPREADS: dict[str, Callable[[Recipe, Number, Number, int], Spread]] = {
    "scan_original.cu": _original_scan_spread,
    "scan_split.cu": _split_scan_spread,
    "scan_flat.cu": _flat_scan_spread,
    "scan_tiny.cu": _tiny_scan_spread,
    "reduce_original.cu": _original_reduce_spread,
    "norm_original.cu": _original_norm_spread,
    **dict.fromkeys((norms.CLUSTER_HELD, norms.CLUSTER_STREAMED), _cluster_spread),
    "reduce_flat.cu": _flat_reduce_spread,
    "reduce_split.cu": _split_reduce_spread,
}
