"""The vectors of schema scan/1, each worked out by hand from the published formulas.

J = N / (8 T), H = ceil(R / (S A)), traffic X = 2 b R N / (S 2^20);
recipe [1, X, 8 H J, H J T / 32], original [1, X, ceil(R / S) N].
"""

from __future__ import annotations

import pytest
from attrs import evolve

from features.schema import Schema, point
from features.schemas import SCHEMAS
from features.schemas_scan import SCAN_1
from features.workload import workload
from kernels.recipe import ORIGINAL
from kernels.recipes import RECIPES, recipe
from tests.made import H200

MIB = 2**20

# (rows, width, dtype, S, T, A), recipe's [8 H J, H J T / 32], original's ceil(R / S) N, and bytes 2 b R N
VECTORS = {
    # The worked example. J = 8192 / 8192 = 1; H = ceil(128 / 132) = 1: 8, 1 * 1 * 32; original 1 * 8192.
    "worked example": ((128, 8192, "float16", 132, 1024, 1), (8, 32), 8192, 4 * 128 * 8192),
    # J = 1024 / 1024 = 1; H = ceil(1 / 2112) = 1: 8, 4; original 1 * 1024.
    "one row": ((1, 1024, "float16", 132, 128, 16), (8, 4), 1024, 4 * 1024),
    # S A = 132 * 16 = 2112 rows fill the GPU: H = 1. J = 2. original ceil(2112 / 132) = 16 rows: 16 * 2048.
    "rows are exactly S A": ((2112, 2048, "float16", 132, 128, 16), (16, 8), 32768, 4 * 2112 * 2048),
    # One row more: H = 2, J = 2: 8 * 2 * 2, 2 * 2 * 4; original ceil(2113 / 132) = 17: 17 * 2048.
    "one row past S A": ((2113, 2048, "float16", 132, 128, 16), (32, 16), 34816, 4 * 2113 * 2048),
    # BF16 moves as many bytes as FP16. J = 131072 / 2048 = 64; H = ceil(4096 / 1056) = 4: 8 * 256, 256 * 8;
    # original ceil(4096 / 132) = 32: 32 * 131072 = 4194304.
    "wide bfloat16": ((4096, 131072, "bfloat16", 132, 256, 8), (2048, 2048), 4194304, 4 * 4096 * 131072),
    # FP32: 8 bytes an element. J = 12288 / 4096 = 3; H = ceil(1000 / (132 * 3)) = ceil(2.52) = 3: 8 * 9, 9 * 16;
    # original ceil(1000 / 132) = 8: 8 * 12288.
    "float32, J = 3": ((1000, 12288, "float32", 132, 512, 3), (72, 144), 98304, 8 * 1000 * 12288),
    # 114 SMs: H = ceil(115 / 114) = 2, J = 1: 16, 2 * 32; original 2 * 8192.
    "another SM count": ((115, 8192, "float32", 114, 1024, 1), (16, 64), 16384, 8 * 115 * 8192),
    # A = 2: 264 rows at once; H = ceil(265 / 264) = 2; J = 65536 / 8192 = 8: 8 * 16, 16 * 32; original 3 * 65536.
    "capacity two": ((265, 65536, "float16", 132, 1024, 2), (128, 512), 196608, 4 * 265 * 65536),
    # A million short rows: J = 1, H = ceil(1000000 / 2112) = ceil(473.48) = 474: 3792, 474 * 4;
    # original ceil(1000000 / 132) = 7576: 7576 * 1024.
    "a million rows": ((1000000, 1024, "bfloat16", 132, 128, 16), (3792, 1896), 7757824, 4 * 1000000 * 1024),
    # One very wide row: J = 1048576 / 4096 = 256, H = 1: 2048, 256 * 16; original 1 * 1048576.
    "one wide row": ((1, 1048576, "float32", 132, 512, 4), (2048, 4096), 1048576, 8 * 1048576),
}


@pytest.mark.parametrize(("case", "batch", "serial", "moved_bytes"), VECTORS.values(), ids=VECTORS)
def test_vectors_are_those_of_the_published_formulas(
    case: tuple[int, int, str, int, int, int], batch: tuple[int, int], serial: int, moved_bytes: int
) -> None:
    """Recipe and original get the columns that a reader computes by hand."""
    rows, width, dtype, sms, threads, capacity = case
    work, target = workload("scan", (rows, width), dtype), evolve(H200, sm_count=sms)
    traffic = moved_bytes / (sms * MIB)
    at = point(work, recipe(f"scan.cub{threads}"), capacity, target)
    assert SCAN_1.vector("recipe", at) == (1, traffic, *batch)
    at = point(work, recipe("scan.original"), None, target)
    assert SCAN_1.vector(ORIGINAL, at) == (1, traffic, serial)


def test_the_worked_example_reads_as_published() -> None:
    """R = 128, N = 8192, FP16, S = 132, T = 1024, A = 1 gives [1, 4*128*8192/(132*1048576), 8, 32]."""
    work = workload("scan", (128, 8192), "float16")
    at = point(work, recipe("scan.cub1024"), 1, H200)
    assert SCAN_1.vector("recipe", at) == (1, 4 * 128 * 8192 / (132 * 1048576), 8, 32)
    assert SCAN_1.vector(ORIGINAL, at) == (1, 4 * 128 * 8192 / (132 * 1048576), 8192)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_says_what_its_columns_are(schema: Schema) -> None:
    """Every column has a unit, a meaning and a formula, and another name than its neighbours."""
    for features in schema.roles.values():
        assert len({feature.name for feature in features}) == len(features)
        assert all(feature.unit and feature.meaning and feature.formula for feature in features)
        assert features[0].formula == "1"


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_says_which_roles_need_the_capacity(schema: Schema) -> None:
    """Their columns cannot be had without it, and those of the others can; of roles that recipes still have."""
    for role in set(schema.roles) & {row.role for row in RECIPES if row.family == schema.family}:
        row = next(row for row in RECIPES if (row.family, row.role) == (schema.family, role))
        at = point(workload("scan", (128, 8192), "float16"), row, None, H200)
        if role in schema.needs_capacity:
            with pytest.raises(TypeError):
                schema.vector(role, at)
        else:
            schema.vector(role, at)


def test_the_digest_of_scan_1_covers_its_formulas() -> None:
    """A column with another formula makes another schema."""
    described = SCAN_1.describe()
    assert described["roles"]["recipe"][2]["formula"] == "8 H J"
    assert SCHEMAS["scan/1"].digest == SCAN_1.digest
