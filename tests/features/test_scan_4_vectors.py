"""The vectors of schema scan/4 for rows that a launch holds whole, each worked out by hand from the published formulas.

B rows a CTA of T threads, C = ceil(R / B), H = ceil(C / (S A)), V = ceil(C / S) (T / w); a thread takes f chunks of e
elements by loads of q bytes, L lanes a row, all T where rows lie in one run. X = 2 b R N / (S 2^20), F = 1 if 2 b R N >
0.75 L2, else 0: [1, X, F X, H, H e f, H log2 L, V e f, V ceil(b e f / q), V f log2 L]. On an H200 S = 132 and 0.75 L2 =
47185920 bytes.
"""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from features.program import scan
from features.schema import MIB, point
from features.schemas import SCAN_2, SCAN_3, SCAN_4
from features.workload import workload
from features.workloads import workloads
from kernels.recipes import ORIGINAL, RECIPE, SPLIT, recipe
from kernels.reductions import SHORT
from kernels.scans import ANY, FLAT
from tests.made import H200

# (rows, width, dtype, recipe, S, A), bytes 2 b R N, F, and the columns from H on.
VECTORS = {
    # One row a CTA: C = 17, each on an SM. e = 8, L = 128: V = 4.
    "few rows, a barrier": (
        (17, 1000, "float16", "scan.vector128x8", 132, 16),
        68_000,
        0,
        (1, 8, 7, 4 * 8, 4, 4 * 7),
    ),
    # B = 128 / 16 = 8, C = ceil(65537 / 8) = 8193, H = ceil(8193 / 2112) = 4; ceil(8193 / 132) = 63, V = 252.
    "two rows a warp": (
        (65_537, 128, "float16", "scan.vector16x8", 132, 16),
        33_554_944,
        0,
        (4, 32, 16, 252 * 8, 252, 252 * 4),
    ),
    # B = 4, C = 3. FP32 element by element: 8 loads of 4 bytes.
    "element by element": ((9, 200, "float32", "scan.lanes32x8", 132, 16), 14_400, 0, (1, 8, 5, 32, 4 * 8, 20)),
    # e f = 32, B = 4, C = 256, ceil(256 / 132) = 2, V = 8; 64 bytes are 4 loads; 5 stages of each of 4 chunks.
    "four chunks": ((1024, 1024, "float16", "scan.vector32x32", 132, 16), 4_194_304, 0, (1, 32, 5, 256, 32, 160)),
    # L = 1 has no stage; B = 128, C = 32; e = 4 by loads of 2 bytes.
    "a thread a row": ((4095, 2, "float16", "scan.lanes1x4", 132, 16), 32_760, 0, (1, 4, 0, 16, 16, 0)),
    # B = 1017 // 33 = 30, C = ceil(10^6 / 30) = 33334, H = ceil(33334 / 2112) = 16, ceil(33334 / 132) = 253, V = 1012.
    "runs of thirty rows": (
        (1_000_000, 33, "bfloat16", "scan.flat128", 132, 16),
        132_000_000,
        1,
        (16, 128, 112, 8096, 1012, 7084),
    ),
    # B = 2041 // 340 = 6, C = 3334, H = ceil(3334 / 912) = 4, ceil(3334 / 114) = 30, V = 240; 32 bytes are 2 loads.
    "another SM count": (
        (20_000, 340, "float32", "scan.flat256", 114, 8),
        54_400_000,
        1,
        (4, 32, 32, 1920, 480, 1920),
    ),
}
Case = tuple[int, int, str, str, int, int]


@pytest.mark.parametrize(("case", "moved_bytes", "far", "rest"), VECTORS.values(), ids=VECTORS)
def test_vectors_are_those_of_the_published_formulas(
    case: Case, moved_bytes: int, far: int, rest: tuple[int, ...]
) -> None:
    rows, width, dtype, recipe_id, sms, capacity = case
    row, target = recipe(recipe_id), evolve(H200, sm_count=sms)
    traffic = moved_bytes / (sms * MIB)
    at = point(workload("scan", (rows, width), dtype), row, capacity, target)
    assert SCAN_4.vector(row.role, at) == (1, traffic, far * traffic, *rest)


@pytest.mark.parametrize("recipe_id", [case[3] for case, *_ in VECTORS.values()] + ["scan.any1", "scan.any16p"])
def test_many_workloads_have_the_vectors_of_each(recipe_id: str) -> None:
    shapes, row = [(case[0], case[1]) for case, *_ in VECTORS.values()], recipe(recipe_id)
    rows, widths = zip(*shapes, strict=True)
    many = SCAN_4.vector(row.role, point(workloads(scan("bfloat16"), rows, widths), row, 5, H200))
    columns = np.array([np.broadcast_to(column, len(rows)) for column in many])
    alone = [SCAN_4.vector(row.role, point(workload("scan", shape, "bfloat16"), row, 5, H200)) for shape in shapes]
    assert columns.T.tolist() == [list(values) for values in alone]


def test_a_form_by_itself_has_the_columns_of_whole_rows() -> None:
    """any2: two warps a row, B = 2, C = 512 CTAs of 4 warps, H = 1, J = P = 1; 14336 < 4 * 1024 * 512 / 132 bytes."""
    row = recipe("scan.any2")
    at = point(workload("scan", (1024, 512), "float16"), row, 16, H200)
    traffic = 4 * 1024 * 512 / (132 * MIB)
    expected = {"constant": 1, "traffic": traffic, "batches": 1, "batch_steps": 1, "warps_issued": 512 * 4 / 132}
    expected["warp_totals"] = 4 * 4 * 2  # ceil(512 / 132) = 4, four warps of which each adds up two
    named = dict(zip([f.name for f in SCAN_4.roles[ANY]], SCAN_4.vector(ANY, at), strict=True))
    assert named == {**dict.fromkeys(named, 0), **expected}
    assert SCAN_4.roles[ANY] == SCAN_2.roles[RECIPE]


def test_what_scan_3_prices_is_priced_as_before() -> None:
    assert {role: SCAN_4.roles[role] for role in (ORIGINAL, RECIPE, SPLIT)} == SCAN_3.roles
    assert set(SCAN_4.roles) - set(SCAN_3.roles) == {ANY, SHORT, FLAT}


@pytest.mark.parametrize("recipe_id", ["scan.lanes1x4", "scan.lanes32x8", "scan.vector128x8", "scan.flat256"])
def test_no_column_is_negative_and_none_falls_as_rows_are_added(recipe_id: str) -> None:
    """So a problem that is smaller than all that were calibrated is below no range but that of traffic."""
    row, width = recipe(recipe_id), {"scan.lanes1x4": 2, "scan.lanes32x8": 200}.get(recipe_id, 1000)
    before = (0.0,) * 9
    for rows in (1, 2, 100, 1000, 10**5, 10**6):
        now = SCAN_4.vector(row.role, point(workload("scan", (rows, width), "float16"), row, 8, H200))
        assert all(one <= other for one, other in zip(before, now, strict=True))
        before = now
