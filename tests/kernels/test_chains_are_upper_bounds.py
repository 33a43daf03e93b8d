"""The documented longest chain of FP32 additions is an upper bound of the order in which a kernel adds."""

import numpy as np
import pytest

from kernels.dtypes import STORAGE
from kernels.launch import spread
from kernels.recipe import Recipe
from kernels.recipes import RECIPES, recipe
from kernels.reductions import SHORT
from kernels.reference import chain
from kernels.scans import COVER, held_elements, run_elements, run_rows
from tests.kernels.orders import cub_order, deeper, flat_order, lanes_order, original_order, split_order

ORIGINAL_SCAN = recipe("scan.original")
SPLITS = tuple(row for row in RECIPES if row.template == "scan_split.cu")
CUBS = tuple(row for row in RECIPES if row.template == "scan_cub.cu")
ANYS = tuple(row for row in RECIPES if row.template == "scan_any.cu")
FLATS = tuple(row for row in RECIPES if row.template == "scan_flat.cu")
HELD = tuple(row for row in RECIPES if row.form == "prefix.sum" and row.role in (SHORT, COVER))
WIDTHS = (
    *(1, 2, 8, 9, 255, 256, 257, 512, 513, 1000, 1024, 1025, 2047, 2303, 2304),
    *(2305, 3584, 4097, 8192, 50257, 131072),
)


def zeros(width: int) -> np.ndarray:
    """A row of elements that no addition has touched."""
    return np.zeros(width, np.int64)


@pytest.mark.parametrize("rows", [1, 100, 300, 1000, 3000, 100_000])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_originals_depth_stays_within_its_chain(rows: int, width: int) -> None:
    warps = spread(ORIGINAL_SCAN, rows, width, 132).lanes // 32
    bound = chain(ORIGINAL_SCAN, width)
    for offset in sorted({0, *(16 // kind.bytes - 1 for kind in STORAGE.values())}):
        depth = original_order(zeros(width), deeper, warps, ORIGINAL_SCAN.items, offset)
        assert depth.max() <= bound


@pytest.mark.parametrize("row", CUBS, ids=lambda row: row.id)
@pytest.mark.parametrize("chunks", [1, 2, 3, 16, 128])
def test_the_block_scans_depth_stays_within_its_chain(row: Recipe, chunks: int) -> None:
    width = chunks * row.threads * row.items
    depth = cub_order(zeros(width), deeper, row.threads // 32, row.items)
    assert depth.max() <= chain(row, width)


@pytest.mark.parametrize("row", SPLITS, ids=lambda row: row.id)
@pytest.mark.parametrize("width", [2049, 8193, 50257, 131072, 1048576, 4194304])
@pytest.mark.parametrize("offset", [0, 3, 7])
def test_the_split_scans_depth_stays_within_its_chain(row: Recipe, width: int, offset: int) -> None:
    depth = split_order(zeros(width), deeper, row.threads // 32, row.items, row.phases, offset)
    assert depth.max() <= chain(row, width)


@pytest.mark.parametrize("row", ANYS, ids=lambda row: row.id)
@pytest.mark.parametrize("width", [129, 300, 1000, 2050, 8192, 50257, 151936])
@pytest.mark.parametrize("offset", [0, 3, 7])
def test_a_fixed_forms_depth_stays_within_its_chain(row: Recipe, width: int, offset: int) -> None:
    depth = original_order(zeros(width), deeper, row.lanes // 32, row.items, offset)
    assert depth.max() <= chain(row, width)


@pytest.mark.parametrize("row", FLATS, ids=lambda row: row.id)
@pytest.mark.parametrize("offset", [0, 3, 7])
def test_a_runs_depth_stays_within_its_chain_and_near_it(row: Recipe, offset: int) -> None:
    """Rows that begin anywhere in a thread, a warp or the CTA; the longest reaches every warp."""
    most = run_elements(row.threads, row.items)
    for width in (1, 2, 7, 8, 9, 33, 127, 250, 256, 257, 340, most // 2, most):
        depth = flat_order(
            np.zeros((run_rows(row, width), width), np.int64), deeper, row.threads // 32, row.items, offset
        )
        assert depth.max() <= chain(row, width)
    assert chain(row, most) - depth.max() <= 4


@pytest.mark.parametrize("row", HELD, ids=lambda row: row.id)
def test_the_depth_of_rows_in_lanes_stays_within_their_chain_and_near_it(row: Recipe) -> None:
    most, depths = held_elements(row), []
    for piece in (row.items, 4):
        pieces = row.items * row.phases // piece
        for width in (most // 8 + 1, most - 1, most):
            for offset in (0, 3) if row.role == COVER else (0,):
                depths.append(lanes_order(zeros(width), deeper, row.lanes, piece, pieces, offset).max())
                assert depths[-1] <= chain(row, width)
    assert chain(row, most) - max(depths) <= 4


# The order of addition of a row, by the template of a recipe.
ORDERS = {
    "scan_any.cu": lambda row, width, warps: original_order(zeros(width), deeper, warps, row.items),
    "scan_original.cu": lambda row, width, warps: original_order(zeros(width), deeper, warps, row.items),
    "scan_cub.cu": lambda row, width, warps: cub_order(zeros(width), deeper, warps, row.items),
    "scan_split.cu": lambda row, width, warps: split_order(zeros(width), deeper, warps, row.items, row.phases),
}


@pytest.mark.parametrize("row", [ORIGINAL_SCAN, *CUBS, *SPLITS, *ANYS], ids=lambda row: row.id)
def test_a_chain_is_no_looser_than_a_few_additions_where_rows_are_long(row: Recipe) -> None:
    """A bound that is far above the order it bounds would pass kernels that add in a worse one."""
    width = 131072
    warps = min(spread(row, rows, width, 132).lanes // 32 for rows in (1, 2**20))
    depth = ORDERS[row.template](row, width, warps).max()
    assert chain(row, width) - depth <= 8


@pytest.mark.parametrize("row", RECIPES, ids=lambda row: row.id)
def test_a_longer_row_never_has_a_shorter_chain(row: Recipe) -> None:
    chains = [chain(row, width) for width in range(1, 300_000, 997)]
    assert chains == sorted(chains)
