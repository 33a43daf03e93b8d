"""The vectors of schema scan/3 for rows that are split over CTAs, each worked out by hand from the published formulas.

K = ceil((N + 7) / (8 T f)) CTAs share a row, C = R K; traffic X = 2 b R N / (S 2^20), F = 1 if 2 b R N > 0.75 L2;
[1, X, F X, C, ceil(C / S) f, ceil(C / S) f (T / w)^2]. On an H200 S = 132 and 0.75 L2 = 47185920 bytes.
"""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from features.program import scan
from features.schema import point
from features.schemas_scan import SCAN_2, SCAN_3
from features.workload import workload
from features.workloads import workloads
from kernels.recipe import ORIGINAL, RECIPE, SPLIT
from kernels.recipes import recipe
from tests.made import H200

MIB = 2**20

# (rows, width, dtype, recipe, S), bytes 2 b R N, F, and [C, ceil(C / S) f, ceil(C / S) f (T / w)^2].
VECTORS = {
    # T = 256, f = 1. K = ceil(1048583 / 2048) = ceil(512.004) = 513; C = 513; ceil(513 / 132) = 4 on the busiest SM:
    # 4 * 1, 4 * 8^2. 4194304 bytes stay in L2.
    "one wide row": ((1, 1048576, "float16", "scan.split2048", 132), 4194304, 0, (513, 4, 256)),
    # T = 512, f = 2. K = ceil(16391 / 8192) = 3; C = 128 * 3 = 384; ceil(384 / 132) = 3: 3 * 2, 3 * 2 * 16^2.
    "every recipe is legal": ((128, 16384, "float16", "scan.split8192", 132), 8388608, 0, (384, 6, 1536)),
    # T = 256, f = 2. K = ceil(50264 / 4096) = ceil(12.27) = 13; C = 3 * 13 = 39, each on an SM: 2, 2 * 8^2.
    # FP32: 8 bytes an element, 8 * 3 * 50257.
    "vocabulary, float32": ((3, 50257, "float32", "scan.split4096", 132), 1206168, 0, (39, 2, 128)),
    # One element more than a part. K = ceil(2056 / 2048) = 2; C = 4096 * 2 = 8192, the most there may be;
    # ceil(8192 / 132) = ceil(62.06) = 63: 63, 63 * 64. BF16: 4 * 4096 * 2049 bytes.
    "the most CTAs": ((4096, 2049, "bfloat16", "scan.split2048", 132), 33570816, 0, (8192, 63, 4032)),
    # K = ceil(131079 / 8192) = ceil(16.0009) = 17; C = 100 * 17 = 1700; ceil(1700 / 132) = 13: 26, 26 * 256.
    # 8 * 100 * 131072 = 104857600 bytes are more than 47185920: F = 1.
    "far, float32": ((100, 131072, "float32", "scan.split8192", 132), 104857600, 1, (1700, 26, 6656)),
    # 114 SMs. K = ceil(20008 / 4096) = 5; C = 23 * 5 = 115, one more than there are SMs: 2 * 2, 4 * 64.
    "another SM count": ((23, 20001, "bfloat16", "scan.split4096", 114), 1840092, 0, (115, 4, 256)),
    # K = ceil((2097145 + 7) / 4096) = 512 exactly. C = 512: ceil(512 / 132) = 4: 8, 8 * 64.
    "a row of whole parts": ((1, 2097145, "float16", "scan.split4096", 132), 8388580, 0, (512, 8, 512)),
}
Case = tuple[int, int, str, str, int]


@pytest.mark.parametrize(("case", "moved_bytes", "far", "rest"), VECTORS.values(), ids=VECTORS)
def test_vectors_are_those_of_the_published_formulas(
    case: Case, moved_bytes: int, far: int, rest: tuple[int, ...]
) -> None:
    """A recipe that splits rows gets the columns that a reader computes by hand, whatever its capacity."""
    rows, width, dtype, recipe_id, sms = case
    target, traffic = evolve(H200, sm_count=sms), moved_bytes / (sms * MIB)
    for capacity in (None, 1, 8):
        at = point(workload("scan", (rows, width), dtype), recipe(recipe_id), capacity, target)
        assert SCAN_3.vector(SPLIT, at) == (1, traffic, far * traffic, *rest)


@pytest.mark.parametrize("recipe_id", ["scan.split2048", "scan.split4096", "scan.split8192"])
def test_many_workloads_have_the_vectors_of_each(recipe_id: str) -> None:
    """Arrays go through the same formulas."""
    shapes = [(case[0], case[1]) for case, *_ in VECTORS.values()]
    rows, widths = zip(*shapes, strict=True)
    many = SCAN_3.vector(SPLIT, point(workloads(scan("bfloat16"), rows, widths), recipe(recipe_id), None, H200))
    columns = np.array([np.broadcast_to(column, len(rows)) for column in many])
    alone = [
        SCAN_3.vector(SPLIT, point(workload("scan", shape, "bfloat16"), recipe(recipe_id), None, H200))
        for shape in shapes
    ]
    assert columns.T.tolist() == [list(values) for values in alone]


@pytest.mark.parametrize(("role", "recipe_id"), [(ORIGINAL, "scan.original"), (RECIPE, "scan.cub512")])
def test_whole_rows_are_priced_as_scan_2_does(role: str, recipe_id: str) -> None:
    """One CTA takes them: K = 1 changes no column."""
    for shape in ((1, 4096), (133, 65536), (4096, 131072)):
        at = point(workload("scan", shape, "float16"), recipe(recipe_id), 4, H200)
        assert SCAN_3.vector(role, at) == SCAN_2.vector(role, at)
        assert SCAN_3.roles[role] == SCAN_2.roles[role]


def test_an_earlier_schema_has_no_column_for_rows_that_are_split() -> None:
    at = point(workload("scan", (1, 50257), "float16"), recipe("scan.split2048"), 8, H200)
    assert SPLIT not in SCAN_2.roles
    assert SCAN_2.vector(SPLIT, at) == ()
