"""The vectors of schema scan/5, each worked out by hand from the published formulas; earlier schemas stay as they are.

B rows a CTA of T threads, C = ceil(R / B), H = ceil(C / (S A)), X = 2 b R N / (S 2^20), F = 1 if 2 b R N > 0.75 L2,
else 0, V = ceil(C / S) (T / w). On an H200 S = 132 and 0.75 L2 = 47185920 bytes. L lanes hold a row in f chunks of e
elements, of all the rows that they take at once:

short [1, X, F X, H, H e f, H log2 L, V e f, V ceil(b e f / q), V f log2 L], cover the same without loads, and
tiny, n = B / T rows a thread: [1, X, F X, H, H n N, V, V n N].
"""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from features.program import scan
from features.schema import MIB, point
from features.schemas import SCHEMAS
from features.schemas_scan_any import SCAN_4, SCAN_5, SCAN_6
from features.workload import workload
from features.workloads import workloads
from kernels.recipes import recipe
from kernels.reductions import SHORT
from kernels.scans import ANY, BROAD, COVER, NARROW, TINY
from tests.made import H200

# (rows, width, dtype, recipe, S, A), bytes 2 b R N, F, and the columns from H on.
Case = tuple[int, int, str, str, int, int]
VECTORS: dict[str, tuple[Case, int, int, tuple[int, ...]]] = {
    # B = 128 / 8 * 4 = 64, C = ceil(65537 / 64) = 1025, H = ceil(1025 / 1056) = 1; ceil(1025 / 132) = 8, V = 32. Four
    # chunks of 8, one a row: e f = 32, 64 bytes a lane by loads of 16.
    "four rows a lane": (
        (65_537, 64, "float16", "scan.vector8x8r4", 132, 8),
        16_777_472,
        0,
        (1, 32, 3, 32 * 32, 32 * 4, 32 * 4 * 3),
    ),
    # B = 16, C = ceil(5000 / 16) = 313, H = 1; ceil(313 / 132) = 3, V = 12. FP32: e f = 16 are 64 bytes.
    "two rows a lane, float32": (
        (5000, 96, "float32", "scan.vector16x8r2", 132, 16),
        3_840_000,
        0,
        (1, 16, 4, 12 * 16, 12 * 4, 12 * 2 * 4),
    ),
    # B = 4, C = 5000, H = ceil(5000 / 1848) = 3; ceil(5000 / 132) = 38, V = 152. e = 8, f = 2, L = 32.
    "covered": ((20_000, 340, "float16", "scan.cover32x16", 132, 14), 27_200_000, 0, (3, 48, 15, 152 * 16, 152 * 10)),
    # B = 1, C = 1000, H = 1; ceil(1000 / 114) = 9, V = 36. L = 128.
    "covered by four warps, another SM count": (
        (1000, 513, "bfloat16", "scan.cover128x8", 114, 16),
        2_052_000,
        0,
        (1, 8, 7, 36 * 8, 36 * 7),
    ),
    # B = 1024, C = ceil(976.6) = 977, H = 1; ceil(977 / 132) = 8, V = 32. n N = 8.
    "a copy": ((1_000_000, 1, "float16", "scan.tiny128", 132, 11), 4_000_000, 0, (1, 8, 32, 256)),
    # B = 256, C = ceil(3906.25) = 3907, H = ceil(3907 / 3432) = 2; ceil(3907 / 132) = 30 = V. n N = 56.
    "a warp a CTA, far": ((1_000_000, 7, "float32", "scan.tiny32", 132, 26), 56_000_000, 1, (2, 112, 30, 30 * 56)),
}


@pytest.mark.parametrize(("case", "moved_bytes", "far", "rest"), VECTORS.values(), ids=VECTORS)
def test_vectors_are_those_of_the_published_formulas(
    case: Case, moved_bytes: int, far: int, rest: tuple[int, ...]
) -> None:
    rows, width, dtype, recipe_id, sms, capacity = case
    row, target = recipe(recipe_id), evolve(H200, sm_count=sms)
    traffic = moved_bytes / (sms * MIB)
    at = point(workload("scan", (rows, width), dtype), row, capacity, target)
    assert SCAN_5.vector(row.role, at) == (1, traffic, far * traffic, *rest)


@pytest.mark.parametrize("recipe_id", dict.fromkeys(case[3] for case, *_ in VECTORS.values()))
def test_many_workloads_have_the_vectors_of_each(recipe_id: str) -> None:
    shapes, row = [(case[0], case[1]) for case, *_ in VECTORS.values()], recipe(recipe_id)
    rows, widths = zip(*shapes, strict=True)
    many = SCAN_5.vector(row.role, point(workloads(scan("bfloat16"), rows, widths), row, 5, H200))
    columns = np.array([np.broadcast_to(column, len(rows)) for column in many])
    alone = [SCAN_5.vector(row.role, point(workload("scan", shape, "bfloat16"), row, 5, H200)) for shape in shapes]
    assert columns.T.tolist() == [list(values) for values in alone]


def test_it_is_scan_4_and_two_roles() -> None:
    assert {role: SCAN_5.roles[role] for role in SCAN_4.roles} == SCAN_4.roles
    assert set(SCAN_5.roles) == {*SCAN_4.roles, COVER, TINY}
    assert set(SCAN_5.needs_capacity) == {*SCAN_4.needs_capacity, COVER, TINY}
    held = [feature.name for feature in SCAN_5.roles[SHORT]]
    assert [feature.name for feature in SCAN_5.roles[COVER]] == [name for name in held if name != "busiest_loads"]


def test_scan_6_is_scan_5_and_two_lines_more() -> None:
    assert {role: SCAN_6.roles[role] for role in SCAN_5.roles} == SCAN_5.roles
    more = {NARROW, BROAD}
    assert set(SCAN_6.roles) - set(SCAN_5.roles) == SCAN_6.needs_capacity - SCAN_5.needs_capacity == more
    assert SCAN_6.roles[NARROW] == tuple(f for f in SCAN_6.roles[ANY] if f.name != "batch_chunks")
    assert SCAN_6.roles[BROAD] == SCAN_6.roles[ANY]


def named(recipe_id: str, shape: tuple[int, int]) -> dict[str, float]:
    """Return the columns of a workload by name, at a capacity of 8."""
    row = recipe(recipe_id)
    at = point(workload("scan", shape, "float16"), row, 8, H200)
    return dict(zip([feature.name for feature in SCAN_5.roles[row.role]], SCAN_5.vector(row.role, at), strict=True))


@pytest.mark.parametrize(
    ("recipe_id", "width"),
    [
        ("scan.vector8x8r4", 64),
        ("scan.cover32x8", 33),
        ("scan.cover128x8", 513),
        ("scan.tiny32", 5),
        ("scan.tiny128", 1),
    ],
)
def test_no_column_is_negative_and_none_falls_as_rows_are_added(recipe_id: str, width: int) -> None:
    """So a problem that is smaller than all that were calibrated is below no range but that of traffic."""
    before = dict.fromkeys(named(recipe_id, (1, width)), 0.0)
    for rows in (1, 2, 100, 1000, 10**5, 10**6):
        now = named(recipe_id, (rows, width))
        assert all(before[name] <= now[name] for name in now)
        before = now


def test_lanes_that_take_several_rows_work_off_what_lanes_of_one_do_in_fewer_batches() -> None:
    """67584 rows fill CTAs of 8 and 16 rows: 8448 and 4224 of them, of which 1056 are there at once."""
    one, two = (named(f"scan.vector16x8{name}", (132 * 512, 128)) for name in ("", "r2"))
    for column in ("busiest_elements", "busiest_loads", "busiest_stages"):
        assert one[column] == two[column]
    assert (one["batches"], two["batches"]) == (8, 4)


PUBLISHED = {
    "scan/1": "0db4850b318826ca865659c5faa95646236fd2d6e6d5a7b7528ef0b4f5107ed2",
    "scan/2": "f1c6247ee8a533eb4107bf1e00b06b312460a4909c2c908ad022e2677749ff6f",
    "scan/3": "786dbd42b9fecaac86fc4134f3300c523a7c268663dae5906bbcc4d695b5f085",
    "scan/4": "14e8f426b5bc287128804b96d27f3433c44f3d588d527cedc1558288d814d44b",
    "scan/5": "45de2f627bae809e162f64f5f64ecaad0d9717f672f7007ec869486327927828",
    "scan/6": "045141512cba7eec23d702109aa61acd184db39e338488cab526493c2123c6ec",
    "reduce/1": "371f5402c9fde285032571ea200901de56b031f6741f32e3e3478d3a19c8c7c6",
    "reduce/2": "36a0ded683582b7967c9e9ade3e931c3d38759ef332fa7d13bde491941c0e1d3",
}


@pytest.mark.parametrize(("schema", "published"), PUBLISHED.items(), ids=PUBLISHED)
def test_published_tables_are_what_they_were(schema: str, published: str) -> None:
    assert SCHEMAS[schema].digest == published
