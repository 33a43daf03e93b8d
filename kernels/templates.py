"""The templates: one `.cu` file each, and the longest chain of FP32 additions that it makes."""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen

from kernels import channels, norms, reduction_shapes, reductions, scans
from kernels.recipe import Recipe, split_parts


@frozen
class Template:
    """One `.cu` file.

    Attributes
    ----------
    chain : bounds the longest chain of FP32 additions into one result, of a recipe at a width.
    workspace : its CTAs talk to each other through memory that follows the tensors in its arguments.
    by_vector : a lane takes 16-byte vectors, however many elements of the dtype they hold.
    interleaved : rows interleave, and how many do is an argument.
    """

    file: str
    chain: Callable[[Recipe, int], int] = field(eq=False)
    chain_meaning: str
    workspace: bool = False
    by_vector: bool = False
    interleaved: bool = False


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
        Template("norm_original.cu", norms.original_chain, "pack, lane, warp and CTA, one after the other"),
        Template("norm_streamed.cu", norms.streamed_chain, "pack, lane, warp and CTA, one after the other"),
        Template("norm_held.cu", norms.held_chain, "piece, lane, warp and CTA, one after the other", by_vector=True),
        Template(
            norms.CLUSTER_HELD,
            norms.cluster_chain,
            "vector, thread, warp, CTA and cluster, one after the other",
            by_vector=True,
        ),
        Template(
            norms.CLUSTER_STREAMED, norms.streamed_chain, "pack, thread, warp, CTA and cluster, one after the other"
        ),
        *(
            Template(
                file, channels.chain, "a thread's channels, warp and groups, one after the other", interleaved=True
            )
            for file in channels.TEMPLATES
        ),
    )
}
