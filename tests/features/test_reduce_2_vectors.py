"""The vectors of schema reduce/2, each worked out by hand from the published formulas.

J = ceil(ceil(b N / q) / (p L)) pieces of a row a lane, V = ceil(min(B, R) L / T) rows one after the other,
P = V ceil(J / f) steps, C = ceil(R / B) p CTAs, H = ceil(C / (S A)); traffic is b R (N + 1) / (S 2^20).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from benchmarks.schemas_reduce import CANDIDATES, candidate
from features.program import program_of
from features.schema import Schema, point
from features.schemas import SCHEMAS, schemas_of
from features.schemas_reduce import REDUCE_1, REDUCE_2
from features.workload import workload
from features.workloads import workloads
from kernels.recipes import recipe, recipes_of
from tests.made import H200

MIB, KIB = 2**20, 2**10
TABLES = [REDUCE_2, *map(candidate, CANDIDATES)]

# (recipe, rows, width, dtype, S, A), then f, H, P, C, pieces of a lane, bytes that steps cover, stages, and what else.
VECTORS: dict[str, tuple[tuple[str, int, int, str, int, int], dict[str, Any]]] = {
    # 17 rows of 1000 halves are 8 a CTA, a warp each: C = 3. 2000 bytes are 125 pieces of 16, J = 4, one step of 4.
    # Steps cover 3 x 1 x 16 x 256 x 4 bytes. 32 lanes are 5 stages.
    "original": (
        ("sum.original", 17, 1000, "float16", 132, 4),
        {"f": 4, "H": 1, "P": 1, "C": 3, "pieces": 4, "covered": 49152, "stages": 5},
    ),
    # One row of 16384 floats, which the whole CTA takes alone: V = 1. 65536 bytes are 4096 pieces, J = 16, P = 2.
    "original, one row": (
        ("sum.original", 1, 16384, "float32", 132, 4),
        {"f": 8, "H": 1, "P": 2, "C": 1, "pieces": 16, "covered": 2 * 16 * 256 * 8, "stages": 8},
    ),
    # Seven of them are four and three in turn: V = 4, P = 8, C = 2.
    "original, rows in turn": (
        ("sum.original", 7, 16384, "float32", 132, 4),
        {"f": 8, "H": 1, "P": 8, "C": 2, "pieces": 64, "covered": 2 * 8 * 16 * 256 * 8, "stages": 8},
    ),
    # 1000 rows, one a CTA of 1024 threads, A = 1: H = ceil(1000 / 132) = 8. 8192 floats are 2048 pieces, J = 2, P = 1.
    "one row a program": (
        ("max.lean1024", 1000, 8192, "float32", 132, 1),
        {"f": 4, "H": 8, "P": 1, "C": 1000, "pieces": 2, "covered": 1000 * 16 * 1024 * 4, "stages": 10},
    ),
    # A million rows of 27 halves, 8 lanes each, 32 a CTA: C = 31250, H = ceil(31250 / 1056) = 30. Of 4 pieces, J = 1.
    "short rows": (
        ("sum.short8", 1_000_000, 27, "float16", 132, 8),
        {"f": 4, "H": 30, "P": 1, "C": 31250, "pieces": 1, "covered": 31250 * 16 * 256 * 4, "stages": 3},
    ),
    # 64 rows a CTA of 64 threads, one lane each: 54 bytes are 4 pieces, 4 steps, C = 15625, H = ceil(15625 / 1848) = 9.
    # Rows of an odd number of halves meet in no bank: 15625 x 2 warps x 27 turns.
    "staged rows": (
        ("sum.staged64", 1_000_000, 27, "float16", 132, 14),
        {"f": 1, "H": 9, "P": 4, "C": 15625, "covered": 15625 * 4 * 16 * 64, "turns": 15625 * 2 * 27},
    ),
    # 24 floats are 96 bytes, 24 words: 8 lanes at a bank. C = 16 of two warps; 96 bytes are 6 pieces.
    "staged rows that meet in banks": (
        ("max.staged64", 1000, 24, "float32", 132, 14),
        {"f": 1, "H": 1, "P": 6, "C": 16, "covered": 16 * 6 * 16 * 64, "turns": 16 * 2 * 24 * 8},
    ),
    # 70 rows of 5 halves, of which a lane takes four alone: one CTA has all 70, V = 1, one piece of 10 bytes a row.
    "rows alone": (
        ("sum.original", 70, 5, "float16", 132, 4),
        {"f": 1, "H": 1, "P": 1, "C": 1, "pieces": 1, "covered": 16 * 256, "stages": 0},
    ),
    # C = ceil(10^6 / 1024) = 977, of which 528 are resident; V = 4.
    "a million rows alone": (
        ("sum.original", 1_000_000, 5, "float16", 132, 4),
        {"f": 1, "H": 2, "P": 4, "C": 977, "pieces": 4, "covered": 977 * 4 * 16 * 256, "stages": 0},
    ),
    # 32 lanes, one element of 2 bytes at a time: J = 4, one step of 4.
    "held": (
        ("sum.lanes32x4", 9, 127, "float16", 132, 16),
        {"f": 4, "H": 1, "P": 1, "C": 3, "pieces": 4, "covered": 3 * 2 * 128 * 4, "stages": 5},
    ),
    # 2 lanes, 8 rows each, 1024 rows a CTA: P = V = 8, C = 977, H = 2.
    "several rows": (("sum.several2x1", 1_000_000, 16, "float16", 132, 4), {"f": 1, "H": 2, "P": 8, "C": 977}),
    # Eight rows a thread of 128, 1024 a CTA: C = 977 again, P = 8.
    "flat": (("sum.flat", 1_000_000, 5, "float16", 132, 12), {"f": 1, "H": 1, "P": 8, "C": 977}),
    # 2^20 halves over 128 CTAs: 131072 pieces, J = ceil(131072 / (128 x 256)) = 4, one step of 8 masked by half.
    "split": (
        ("sum.split", 1, 2**20, "float16", 132, 5),
        {"f": 8, "H": 1, "P": 1, "C": 128, "pieces": 4, "covered": 128 * 16 * 256 * 8, "stages": 8, "parts": 128},
    ),
    # Two rows a CTA, 64 lanes, one bfloat16 at a time: 4096 pieces of 2 bytes, J = 64, P = 64 steps of one.
    "one element a lane": (
        ("sum.subgroup_e1u1", 4, 4096, "bfloat16", 132, 16),
        {"f": 1, "H": 1, "P": 64, "C": 2, "pieces": 64, "covered": 2 * 64 * 2 * 128, "stages": 6},
    ),
    # Eight bfloat16 at a time, by element: 512 pieces of 16 bytes, J = 8, one step.
    "eight elements a lane, plain": (
        ("sum.subgroup_e8u8", 4, 4096, "bfloat16", 132, 16),
        {"f": 8, "H": 1, "P": 1, "C": 2, "pieces": 8, "covered": 2 * 16 * 128 * 8, "stages": 6},
    ),
}


@pytest.mark.parametrize(("case", "known"), VECTORS.values(), ids=VECTORS)
def test_vectors_are_those_of_the_published_formulas(
    case: tuple[str, int, int, str, int, int], known: dict[str, Any]
) -> None:
    name, rows, width, dtype, sms, capacity = case
    row, size = recipe(name), 4 if dtype == "float32" else 2
    moved, target = size * rows * (width + 1), evolve(H200, sm_count=sms)
    piece = size if "e1" in name or "lanes" in name else 16
    taken = known["H"] * known.get("pieces", 0) * piece
    work = workload(name.split(".")[0], (rows, width), dtype)
    vector = REDUCE_2.vector(row.role, point(work, row, capacity, target))
    expected = {
        "constant": 1,
        "traffic": moved / (sms * MIB),
        "far_traffic": moved / (sms * MIB) if moved > 0.75 * H200.l2_bytes else 0,
        "batch_steps": known["H"] * known["P"],
        "batch_elements": taken // size,
        "batch_bytes": taken * row.threads / MIB,
        "programs": known["C"] / sms,
        "masked": (known.get("covered", 0) - size * rows * width) / (sms * KIB),
        "combining": known["H"] * known.get("stages", 0),
        "bank_turns": known.get("turns", 0) / sms,
        "parts": known.get("parts"),
    }
    names = [feature.name for feature in REDUCE_2.roles[row.role]]
    assert dict(zip(names, vector, strict=True)) == pytest.approx({n: expected[n] for n in names}, rel=1e-15)


@pytest.mark.parametrize("schema", TABLES, ids=lambda schema: schema.id)
def test_columns_are_nonnegative_and_the_same_for_one_and_for_many(schema: Schema) -> None:
    """Published or not: a nonnegative coefficient prices a nonnegative cost."""
    rng = np.random.default_rng(4)
    rows, widths = rng.integers(1, 5000, 40), rng.integers(1, 40_000, 40)
    rows[:3], widths[:3] = (1, 2, 1_000_000), (2**20, 2048, 27)
    for dtype in ("bfloat16", "float32"):
        works = workloads(program_of("sum", dtype), rows, widths)
        for row in recipes_of("reduce.sum"):
            many = schema.vector(row.role, point(works, row, 5, H200))
            columns = [np.broadcast_to(np.asarray(column, np.float64), rows.shape) for column in many]
            assert all((column >= 0).all() for column in columns)
            for i in (0, 1, 2, 17):
                alone = schema.vector(row.role, point(works.at(i), row, 5, H200))
                assert [float(column[i]) for column in columns] == [float(value) for value in alone]


def test_more_rows_never_cost_less_in_a_column() -> None:
    """But for masks, of which a last CTA that fills has fewer."""
    for row in recipes_of("reduce.max"):
        if row.role == "split":
            continue  # more rows are split into fewer parts
        at = [point(workload("max", (rows, 3000), "float32"), row, 5, H200) for rows in (3, 40, 700, 12_000)]
        names = [feature.name for feature in REDUCE_2.roles[row.role]]
        vectors = [dict(zip(names, REDUCE_2.vector(row.role, p), strict=True)) for p in at]
        for name in set(vectors[0]) - {"masked"}:
            values = [vector[name] for vector in vectors]
            assert values == sorted(values), (row.id, name)


def test_the_schema_is_published_for_the_family() -> None:
    """reduce/1 had one line for all rows that lanes hold."""
    assert schemas_of("reduce") == (REDUCE_1, REDUCE_2)
    assert set(REDUCE_1.roles) - set(REDUCE_2.roles) == {"held"}
    assert all(role.startswith("lanes") for role in set(REDUCE_2.roles) - set(REDUCE_1.roles))
    assert SCHEMAS["reduce/2"].describe()["form"] == "reduce"
    assert len(CANDIDATES) >= 4
