"""The vectors of schema scan/4, each worked out by hand from the published formulas.

B rows a CTA of T threads, C = ceil(R / B), H = ceil(C / (S A)), X = 2 b R N / (S 2^20), F = 1 if 2 b R N > 0.75 L2,
else 0. On an H200 S = 132 and 0.75 L2 = 47185920 bytes.

Rows in steps: W warps a row, so B = T / (w W), a chunk is 8 w W elements, f chunks a step; u = 1 if 16 does not divide
b N, else 0; J = ceil((N + u (16/b - 1)) / (8 w W)), P = ceil(J / f), G = max(0, S H P max(14336, 16 b T f) - 2 b R N):
[1, X, F X, G / (S 2^20), H, H P, F H P, u H P, H P f, C J (T / w) / S, ceil(C / S) J (T / w) W, C (8 w W f P - N) / S,
ceil(C / S), R P / S].

Rows held whole: V = ceil(C / S) (T / w); a thread takes f chunks of e elements by loads of q bytes, L lanes a row, all
T where rows lie in one run: [1, X, F X, H, H e f, H log2 L, V e f, V ceil(b e f / q), V f log2 L].
"""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from features.program import scan
from features.schema import MIB, point
from features.schemas_scan import SCAN_1, SCAN_2, SCAN_3
from features.schemas_scan_any import SCAN_4
from features.workload import workload
from features.workloads import workloads
from kernels.recipe import ORIGINAL, RECIPE, SPLIT, Recipe
from kernels.recipes import recipe
from kernels.reductions import SHORT
from kernels.scans import ANY, BROAD, FLAT, NARROW
from tests.made import H200

# Rows in steps: (rows, width, dtype, recipe, S, A), bytes 2 b R N, F, G, and then [H, H P, F H P, u H P, H P f] and
# [C J (T / w), ceil(C / S) J (T / w) W, C (8 w W f P - N), ceil(C / S), R P].
STEPS = {
    # T = 128, W = 1, B = 4, f = 1. 1024 bytes a row: u = 0, J = 512 / 256 = 2 = P. C = 256, H = ceil(256 / 2112) = 1.
    # 16 * 2 * 128 = 4096 < 14336: G = 132 * 2 * 14336 - 2097152 = 3784704 - 2097152. 256 * 2 * 4; ceil(256 / 132) =
    # 2: 2 * 2 * 4 * 1; 256 * (512 - 512); 1024 * 2.
    "whole chunks, a warp a row": (
        (1024, 512, "float16", "scan.any1", 132, 16),
        2_097_152,
        0,
        1_687_552,
        (1, 2, 0, 0, 2),
        (2048, 16, 0, 2, 2048),
    ),
    # W = 2, B = 2. 1026 = 64 * 16 + 2 bytes: u = 1, J = ceil((513 + 7) / 512) = 2 = P. C = 500, H = 1.
    # G = 3784704 - 2052000. 500 * 2 * 4; ceil(500 / 132) = 4: 4 * 2 * 4 * 2; 500 * (1024 - 513); 1000 * 2.
    "ragged, two warps a row": (
        (1000, 513, "float16", "scan.any2", 132, 16),
        2_052_000,
        0,
        1_732_704,
        (1, 2, 0, 2, 2),
        (4000, 64, 255_500, 4, 2000),
    ),
    # W = 4, B = 1. 2040 = 127 * 16 + 8 bytes: u = 1, and 1020 elements that fit a chunk of 1024 are cut into two of
    # them: J = ceil(1027 / 1024) = 2 = P. C = 200, H = 1. G = 3784704 - 816000. 200 * 2 * 4; ceil(200 / 132) =
    # 2: 2 * 2 * 4 * 4; 200 * (2048 - 1020); 200 * 2.
    "one chunk more where it begins off a boundary": (
        (200, 1020, "bfloat16", "scan.any4", 132, 16),
        816_000,
        0,
        2_968_704,
        (1, 2, 0, 2, 2),
        (1600, 64, 205_600, 2, 400),
    ),
    # W = 1, B = 4. 1012 = 63 * 16 + 4 bytes: u = 1; a vector has 4 elements: J = ceil((253 + 3) / 256) = 1 = P. C = 3,
    # H = 1. G = 132 * 14336 - 20240 = 1892352 - 20240. 3 * 1 * 4; 1 * 1 * 4 * 1; 3 * (256 - 253); 10 * 1.
    "float32 may begin three elements off": (
        (10, 253, "float32", "scan.any1", 132, 16),
        20_240,
        0,
        1_872_112,
        (1, 1, 0, 1, 1),
        (12, 4, 9, 1, 10),
    ),
    # 114 SMs, W = 1, B = 4. 1028 = 64 * 16 + 4 bytes: u = 1, J = ceil((257 + 3) / 256) = 2 = P. C = 25000, H =
    # ceil(25000 / 1824) = ceil(13.7) = 14. 16 * 4 * 128 = 8192 < 14336: 114 * 28 * 14336 = 45760512 < 205600000: G = 0.
    # 25000 * 2 * 4; ceil(25000 / 114) = ceil(219.3) = 220: 220 * 2 * 4 * 1; 25000 * (512 - 257); 100000 * 2.
    "another SM count, far": (
        (100_000, 257, "float32", "scan.any1", 114, 16),
        205_600_000,
        1,
        0,
        (14, 28, 28, 28, 28),
        (200_000, 1760, 6_375_000, 220, 200_000),
    ),
    # W = 4, B = 1, f = 2. 8194 = 512 * 16 + 2 bytes: u = 1, J = ceil(4104 / 1024) = 5, P = 3. C = 3000, H =
    # ceil(3000 / 1056) = 3. 16 * 2 * 128 * 2 = 8192 < 14336: 132 * 9 * 14336 = 17031168 < 49164000: G = 0. 3000 * 5 *
    # 4; ceil(3000 / 132) = 23: 23 * 5 * 4 * 4; 3000 * (1024 * 6 - 4097) = 3000 * 2047; 3000 * 3.
    "paired, ragged, far": (
        (3000, 4097, "float16", "scan.any4p", 132, 8),
        49_164_000,
        1,
        0,
        (3, 9, 9, 9, 18),
        (60_000, 1840, 6_141_000, 23, 9000),
    ),
    # 47185920 bytes are not more than 0.75 L2: F = 0. T = 256, W = 8, B = 1, u = 0, J = ceil(1024 / 2048) = 1 = P.
    # C = 11520, H = ceil(11520 / 1056) = ceil(10.9) = 11. 132 * 11 * 14336 = 20815872 < 47185920: G = 0. 11520 * 1 * 8;
    # ceil(11520 / 132) = ceil(87.3) = 88: 88 * 1 * 8 * 8; 11520 * (2048 - 1024); 11520 * 1.
    "the most that stays near": (
        (11_520, 1024, "float16", "scan.any8", 132, 8),
        47_185_920,
        0,
        0,
        (11, 11, 0, 0, 11),
        (92_160, 5632, 11_796_480, 88, 11_520),
    ),
    # T = 512, W = 16, B = 1, f = 2. 40002 = 2500 * 16 + 2 bytes: u = 1, J = ceil(20008 / 4096) = 5, P = 3. C = 50, H =
    # 1. 16 * 2 * 512 * 2 = 32768 > 14336: G = 132 * 3 * 32768 - 4000200 = 12976128 - 4000200. 50 * 5 * 16;
    # ceil(50 / 132) = 1: 1 * 5 * 16 * 16; 50 * (4096 * 6 - 20001) = 50 * 4575; 50 * 3.
    "steps of more than 14 KiB wait": (
        (50, 20_001, "bfloat16", "scan.any16p", 132, 4),
        4_000_200,
        0,
        8_975_928,
        (1, 3, 0, 3, 6),
        (4000, 1280, 228_750, 1, 150),
    ),
    # T = 256, W = 8, B = 1, f = 2. u = 0, J = 6144 / 2048 = 3, P = 2. C = 400, H = ceil(400 / 264) = 2. 16 * 2 * 256 *
    # 2 = 16384 > 14336: 132 * 4 * 16384 = 8650752 < 9830400: G = 0. 400 * 3 * 8; ceil(400 / 132) = 4: 4 * 3 * 8 * 8;
    # 400 * (2048 * 4 - 6144) = 400 * 2048; 400 * 2.
    "a block scan": (
        (400, 6144, "bfloat16", "scan.cub256", 132, 2),
        9_830_400,
        0,
        0,
        (2, 4, 0, 0, 8),
        (9600, 768, 819_200, 4, 800),
    ),
    # T = 256. 17 rows of 513 to 1024 elements are 4 warps a row: B = 2, f = 1. 2000 = 125 * 16 bytes: u = 0, J = P = 1.
    # C = ceil(17 / 2) = 9, H = 1. 16 * 2 * 256 = 8192 < 14336: G = 1892352 - 68000. 9 * 1 * 8;
    # ceil(9 / 132) = 1: 1 * 1 * 8 * 4; 9 * (1024 - 1000); 17 * 1.
    "the original, four warps a row": (
        (17, 1000, "float16", "scan.original", 132, 8),
        68_000,
        0,
        1_824_352,
        (1, 1, 0, 0, 1),
        (72, 32, 216, 1, 17),
    ),
    # Wider than 2304 and no more than 4 * 132 rows: 8 warps paired, B = 1, f = 2. u = 1, J = ceil(4104 / 2048) = 3,
    # P = 2. C = 300, H = 1. 132 * 2 * 16384 = 4325376 < 4916400: G = 0. 300 * 3 * 8; ceil(300 / 132) = 3: 3 * 3 * 8 *
    # 8; 300 * (2048 * 4 - 4097) = 300 * 4095; 300 * 2.
    "the original, eight warps paired, ragged": (
        (300, 4097, "bfloat16", "scan.original", 132, 8),
        4_916_400,
        0,
        0,
        (1, 2, 0, 2, 4),
        (7200, 576, 1_228_500, 3, 600),
    ),
    # More than 16 * 132 rows: a warp a row, B = 8, f = 1. 4000 = 250 * 16 bytes: u = 0, J = ceil(1000 / 256) = 4 = P.
    # C = 750, H = 1. 16 * 4 * 256 = 16384 > 14336: 132 * 4 * 16384 = 8650752 < 48000000: G = 0. 750 * 4 * 8;
    # ceil(750 / 132) = 6: 6 * 4 * 8 * 1; 750 * (1024 - 1000); 6000 * 4.
    "the original, a warp a row, far": (
        (6000, 1000, "float32", "scan.original", 132, 8),
        48_000_000,
        1,
        0,
        (1, 4, 4, 0, 4),
        (24_000, 192, 18_000, 6, 24_000),
    ),
}
# Rows held whole: (rows, width, dtype, recipe, S, A), bytes 2 b R N, F, and the columns from H on.
HELD = {
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
IN_STEPS = (ORIGINAL, RECIPE, ANY)


def role_of(row: Recipe) -> str:
    """The role that a recipe had when scan/4 was made, before narrow and broad forms had their own."""
    return ANY if row.role in (NARROW, BROAD) else row.role


@pytest.mark.parametrize(("case", "moved_bytes", "far", "excess", "steps", "shares"), STEPS.values(), ids=STEPS)
def test_vectors_of_rows_in_steps_are_those_of_the_published_formulas(
    case: Case, moved_bytes: int, far: int, excess: int, steps: tuple[int, ...], shares: tuple[int, ...]
) -> None:
    rows, width, dtype, recipe_id, sms, capacity = case
    row, target = recipe(recipe_id), evolve(H200, sm_count=sms)
    traffic, waiting = moved_bytes / (sms * MIB), pytest.approx(excess / (sms * MIB), rel=1e-12, abs=0)
    issued, totals, masked, busiest, pieces = shares
    at = point(workload("scan", (rows, width), dtype), row, capacity, target)
    assert SCAN_4.vector(role_of(row), at) == (
        *(1, traffic, far * traffic, waiting),
        *steps,
        *(issued / sms, totals, masked / sms, busiest, pieces / sms),
    )


@pytest.mark.parametrize(("case", "moved_bytes", "far", "rest"), HELD.values(), ids=HELD)
def test_vectors_of_rows_held_whole_are_those_of_the_published_formulas(
    case: Case, moved_bytes: int, far: int, rest: tuple[int, ...]
) -> None:
    rows, width, dtype, recipe_id, sms, capacity = case
    row, target = recipe(recipe_id), evolve(H200, sm_count=sms)
    traffic = moved_bytes / (sms * MIB)
    at = point(workload("scan", (rows, width), dtype), row, capacity, target)
    assert SCAN_4.vector(role_of(row), at) == (1, traffic, far * traffic, *rest)


CASES: list[Case] = [case for case, *_ in STEPS.values()] + [case for case, *_ in HELD.values()]


@pytest.mark.parametrize("recipe_id", dict.fromkeys(case[3] for case in CASES))
def test_many_workloads_have_the_vectors_of_each(recipe_id: str) -> None:
    shapes, row = [(case[0], case[1]) for case in CASES], recipe(recipe_id)
    rows, widths = zip(*shapes, strict=True)
    many = SCAN_4.vector(role_of(row), point(workloads(scan("bfloat16"), rows, widths), row, 5, H200))
    columns = np.array([np.broadcast_to(column, len(rows)) for column in many])
    alone = [SCAN_4.vector(role_of(row), point(workload("scan", shape, "bfloat16"), row, 5, H200)) for shape in shapes]
    assert columns.T.tolist() == [list(values) for values in alone]


def named(role: str, recipe_id: str, shape: tuple[int, int], dtype: str = "float16") -> dict[str, float]:
    """Return the columns of a workload by name, at a capacity of 8."""
    at = point(workload("scan", shape, dtype), recipe(recipe_id), 8, H200)
    return dict(zip([feature.name for feature in SCAN_4.roles[role]], SCAN_4.vector(role, at), strict=True))


def test_a_form_by_itself_has_the_columns_of_whole_rows() -> None:
    """They are those of scan/2 and four more."""
    columns = SCAN_4.roles[ANY]
    assert all(SCAN_4.roles[role] == columns for role in IN_STEPS)
    more = {feature.name for feature in columns} - {feature.name for feature in SCAN_2.roles[RECIPE]}
    assert more == {"ragged_batch_steps", "batch_chunks", "busiest_ctas", "pieces"}
    assert SCAN_4.roles[SHORT] == SCAN_4.roles[FLAT]


@pytest.mark.parametrize(
    ("role", "recipe_id"),
    [(ORIGINAL, "scan.original"), (RECIPE, "scan.cub256"), (ANY, "scan.any1"), (ANY, "scan.any16p")],
)
@pytest.mark.parametrize("shape", [(17, 1000), (133, 65536), (6000, 4096)])
def test_rows_of_whole_vectors_have_the_values_of_scan_2(role: str, recipe_id: str, shape: tuple[int, int]) -> None:
    at = point(workload("scan", shape, "float16"), recipe(recipe_id), 8, H200)
    earlier = dict(zip([f.name for f in SCAN_2.roles[RECIPE]], SCAN_2.vector(RECIPE, at), strict=True))
    now = named(role, recipe_id, shape)
    assert now["ragged_batch_steps"] == 0
    assert {name: now[name] for name in earlier} == earlier


def test_rows_split_over_ctas_are_priced_as_in_scan_3() -> None:
    assert SCAN_4.roles[SPLIT] == SCAN_3.roles[SPLIT]
    for recipe_id in ("scan.split2048", "scan.split4096", "scan.split8192"):
        for shape in ((1, 1048576), (3, 50257), (128, 16384)):
            at = point(workload("scan", shape, "float16"), recipe(recipe_id), None, H200)
            assert SCAN_4.vector(SPLIT, at) == SCAN_3.vector(SPLIT, at)


def test_earlier_schemas_price_the_roles_that_they_did() -> None:
    assert set(SCAN_1.roles) == set(SCAN_2.roles) == {ORIGINAL, RECIPE}
    assert set(SCAN_3.roles) == {ORIGINAL, RECIPE, SPLIT}
    assert {role: SCAN_3.roles[role] for role in SCAN_2.roles} == SCAN_2.roles
    assert set(SCAN_4.roles) == {*SCAN_3.roles, ANY, SHORT, FLAT}


# What waits beyond the traffic may fall as rows are added: within a batch the traffic grows and the steps do not.
MAY_FALL = {"waiting"}


@pytest.mark.parametrize(
    ("recipe_id", "width"),
    [
        ("scan.lanes1x4", 2),
        ("scan.lanes32x8", 200),
        ("scan.vector128x8", 1000),
        ("scan.flat256", 1000),
        ("scan.any2", 513),
        ("scan.any4p", 4097),
        ("scan.cub256", 6144),
    ],
)
def test_no_column_is_negative_and_none_falls_as_rows_are_added(recipe_id: str, width: int) -> None:
    """So a problem that is smaller than all that were calibrated is below no range but that of traffic.

    The original changes its form as rows are added, so its columns may fall.
    """
    role = role_of(recipe(recipe_id))
    before = dict.fromkeys([feature.name for feature in SCAN_4.roles[role]], 0.0)
    for rows in (1, 2, 100, 1000, 10**5, 10**6):
        now = named(role, recipe_id, (rows, width))
        assert all(value >= 0 for value in now.values())
        assert all(before[name] <= now[name] for name in now if name not in MAY_FALL)
        before = now


def test_what_waits_beyond_the_traffic_falls_within_a_batch() -> None:
    """any2, 513 FP16, H = 1 and P = 2: (28672 - 2052 R / 132) / 2^20 while it is positive, which R = 2000 is not."""
    few, more, many = (named(ANY, "scan.any2", (rows, 513))["waiting"] for rows in (1, 1000, 2000))
    assert few > more > many == 0
