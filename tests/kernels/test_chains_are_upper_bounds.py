"""The documented longest chain of FP32 additions is an upper bound of the order in which a kernel adds."""

import numpy as np
import pytest

from kernels.dtypes import STORAGE
from kernels.launch import row_split
from kernels.recipes import ORIGINAL, RECIPES, Recipe, recipe
from kernels.reference import chain
from tests.kernels.orders import cub_order, deeper, original_order

ORIGINAL_SCAN = recipe("scan.original")
CUBS = tuple(row for row in RECIPES if row.template == "scan_cub.cu")
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
    warps, _ = row_split(ORIGINAL_SCAN, rows, width, 132)
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


@pytest.mark.parametrize("row", [ORIGINAL_SCAN, *CUBS], ids=lambda row: row.id)
def test_a_chain_is_no_looser_than_a_few_additions_where_rows_are_long(row: Recipe) -> None:
    """A bound that is far above the order it bounds would pass kernels that add in a worse one."""
    width = 131072
    warps = min(row_split(row, rows, width, 132)[0] for rows in (1, 2**20))
    order = original_order if row.role == ORIGINAL else cub_order
    depth = order(zeros(width), deeper, warps, row.items).max()
    assert chain(row, width) - depth <= 8


@pytest.mark.parametrize("row", RECIPES, ids=lambda row: row.id)
def test_a_longer_row_never_has_a_shorter_chain(row: Recipe) -> None:
    chains = [chain(row, width) for width in range(1, 300_000, 997)]
    assert chains == sorted(chains)
