"""What makes a way through rows legal: facts of program and layout, for one workload and for many alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from features.errors import ProgramError, Refused
from features.expression import Cast, Expression, Load, Map, Prefix, Reduce, Store
from features.program import Program, program_of
from features.proof import Proved, candidates, legal, prove, recipes_for
from features.workload import Workload, workload
from features.workloads import workloads
from kernels.dtypes import STORAGE
from kernels.recipes import original_of, recipe, recipes_of

LOAD = Load("float16")
WIDE = Cast(LOAD, "float32")


def of(expression: Expression) -> Workload:
    """Return a workload that stores a float16 expression."""
    return Workload(Program(Store(expression, "float16")), 4, 1024, 1024)


def refusal(work: Workload, recipe_id: str) -> Refused:
    verdict = prove(work, recipe(recipe_id))
    assert isinstance(verdict, Refused)
    return verdict


def facts(work: Workload, recipe_id: str, proof: str) -> Any:
    verdict = prove(work, recipe(recipe_id))
    assert isinstance(verdict, Proved), verdict
    return verdict.facts[proof]


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        (Cast(Reduce(WIDE, ordered=True), "float16"), "ordered"),
        (Cast(Reduce(WIDE, "xor"), "float16"), "identity_unknown"),
        (Cast(Reduce(WIDE, nan="raise"), "float16"), "nan_policy_unknown"),
        (Reduce(LOAD), "arithmetic_unsupported"),
        (Cast(Reduce(Cast(Load("bfloat16"), "float32")), "float16"), "dtype_unsupported"),
        (Cast(Reduce(Map(WIDE, "square")), "float16"), "not_closed_reduction"),
        (Cast(Map(Reduce(WIDE), "abs"), "float16"), "not_closed_reduction"),
        (Cast(Reduce(Prefix(WIDE)), "float16"), "not_closed_reduction"),
        (LOAD, "not_closed_reduction"),
    ],
    ids=[
        "ordered",
        "algebra",
        "nan",
        "half",
        "two dtypes",
        "mapped row",
        "mapped result",
        "prefix in",
        "copy",
    ],
)
def test_a_program_whose_rows_no_kernel_may_regroup_is_refused_by_code(expression: Expression, code: str) -> None:
    """Recipe and original refuse alike."""
    assert refusal(of(expression), "sum.original").code == code
    assert refusal(of(expression), "sum.rows1").code == code
    with pytest.raises(ProgramError):
        candidates(of(expression))


def test_a_scan_is_no_reduction_and_a_reduction_no_scan() -> None:
    assert refusal(workload("sum", (4, 1024), "float16"), "scan.cub128").code == "not_closed_prefix"
    assert refusal(workload("scan", (4, 1024), "float16"), "sum.rows1").code == "not_closed_reduction"


def test_regrouped_rows_record_both_grids_masks_and_spans() -> None:
    """17 rows of 1023 in a tensor 1100 wide: the original takes 8 a program, rows2 makes nine programs of them."""
    work = workload("max", (17, 1023), "float16", strides=(1100, 1))
    assert facts(work, "max.rows2", "independent_rows") == {
        "algebra": "max",
        "identity": "-inf",
        "nan": "propagate",
        "arithmetic": "float32",
        "loads_per_element": 1,
        "stores_per_row": 1,
        "original_rows_per_program": 8,
        "rows_per_program": 2,
        "original_programs": 3,
        "programs": 9,
        "masked_rows": 1,
        "vector_tail_elements": 1023 % 8,
        "x_span_bytes": (16 * 1100 + 1023) * 2,
        "y_span_bytes": 17 * 2,
    }
    assert facts(work, "max.rows2", "regrouped") == {"original_rows_per_program": 8, "rows_per_program": 2}
    assert facts(workload("min", (9, 64), "float32"), "min.original", "independent_rows")["rows_per_program"] == 32
    assert facts(workload("sum", (9, 5), "float16"), "sum.flat", "flat_rows")["thread_bytes"] == 80


@pytest.mark.parametrize(
    ("op", "shape", "recipe_id", "code", "fact"),
    [
        ("sum", (9, 1025), "sum.rows4", "not_more_programs", "takes 4 rows a program at width 1025, no more than 4"),
        ("sum", (9, 65), "sum.short4", "width_too_large", "width 65 is more than 64 (2 x 8 elements for each of 4"),
        ("max", (9, 129), "max.short8", "width_too_large", "width 129 is more than 128"),
        ("sum", (9, 9), "sum.flat", "width_too_large", "width 9 is more than 8, and a thread takes 8 whole rows"),
        ("sum", (2**31, 8), "sum.lean8", "index_overflow", "2147483648 rows are more than 2147483647"),
        ("sum", (1, 2**31), "sum.lean64", "index_overflow", "2147483648 elements a row are more than 2147483647"),
        (
            "sum",
            (9, 256),
            "sum.rows1",
            "width_too_small",
            "width 256 is no more than 1/8 of the 2048 elements that 256",
        ),
        ("sum", (9, 4104), "sum.lean8", "width_too_large", "width 4104 is more than 2048 elements (8 steps of 256)"),
        ("max", (9, 33), "max.lanes8x4", "width_too_large", "width 33 is more than the 32 elements that 8 lanes hold"),
        ("max", (9, 4), "max.lanes8x4", "width_too_small", "width 4 is no more than 1/8 of the 32 elements"),
        ("sum", (2**31, 8), "sum.lanes8x4", "index_overflow", "2147483648 rows are more than 2147483647"),
        ("max", (2047, 32), "max.several2x2", "too_few_rows", "2047 rows are fewer than 2048 (4 CTAs of 512 rows)"),
        ("sum", (9000, 40), "sum.several2x2", "width_too_large", "width 40 is more than the 32 elements that 2 lanes"),
        ("sum", (9, 129), "sum.staged64", "width_too_large", "64 rows of 129 elements are 16512 bytes"),
        ("sum", (9, 1001), "sum.aligned", "width_not_divisible", "width 1001 is not a multiple of 8 elements"),
        ("sum", (9, 8192), "sum.split", "width_too_small", "width 8192 is not more than 8192 (4 x 8 elements x 256"),
        ("sum", (2**25, 16384), "sum.split", "index_overflow", "33554432 rows of up to 128 parts"),
        ("sum", (1, 2**34 + 8), "sum.split", "index_overflow", "more than 17179869184"),
        ("sum", (2**32, 512), "sum.rows1", "index_overflow", "4294967296 CTAs"),
        ("max", (0, 512), "max.rows1", "empty", "0 x 512 has no element"),
    ],
)
def test_a_shape_that_a_recipe_cannot_take_is_refused_with_the_numbers(
    op: str, shape: tuple[int, int], recipe_id: str, code: str, fact: str
) -> None:
    """The original takes each of them."""
    work = workload(op, shape, "float16")
    found = refusal(work, recipe_id)
    assert found.code == code
    assert fact in found.fact
    assert isinstance(prove(work, recipe(f"{op}.original")), Proved)


@pytest.mark.parametrize(
    ("layout", "recipe_id", "code"),
    [
        ({"alignment_bytes": 8}, "sum.aligned", "misaligned"),
        ({"strides": (18, 1)}, "sum.aligned", "misaligned"),
        ({"alignment_bytes": 2}, "sum.staged64", "misaligned"),
        ({"strides": (24, 1)}, "sum.staged64", "rows_not_contiguous"),
        ({"strides": (24, 1)}, "sum.flat", "rows_not_contiguous"),
        ({"alignment_bytes": 8}, "sum.flat", "misaligned"),
        ({"alignment_bytes": 8}, "sum.lean8", "misaligned"),
    ],
)
def test_a_layout_that_vectors_cannot_cross_is_refused(layout: dict[str, Any], recipe_id: str, code: str) -> None:
    """Rows that are cut at vector boundaries take any element-aligned base and pitch."""
    width = 8 if recipe_id == "sum.flat" else 16
    work = workload("sum", (9, width), "float16", **layout)
    assert refusal(work, recipe_id).code == code
    for name in ("sum.short4", "sum.short8", "sum.lanes8x4"):
        assert isinstance(prove(work, recipe(name)), Proved)


def test_one_row_has_no_pitch_that_could_be_wrong() -> None:
    work = Workload(program_of("sum", "float16"), 1, 16, 17)
    for name in ("sum.aligned", "sum.staged64", "sum.lean8"):
        assert isinstance(prove(work, recipe(name)), Proved)


def test_a_subgroup_has_its_32_lanes() -> None:
    row = recipe("sum.subgroup_e8u8")
    work = workload("sum", (9, 4096), "bfloat16")
    assert facts(work, row.id, "subgroups") == {"lanes_per_row": 64, "subgroups_per_row": 2}
    for lanes_short in (evolve(row, rows_per_cta=8), evolve(row, threads=96)):
        verdict = prove(work, lanes_short)
        assert isinstance(verdict, Refused)
        assert verdict.code == "incomplete_subgroup"


def test_bit_equal_numerics_admit_what_keeps_the_order_and_every_extreme() -> None:
    sums = workload("sum", (9, 4096), "float16", numerics="bit_equal")
    assert isinstance(prove(sums, recipe("sum.aligned")), Proved)
    assert refusal(sums, "sum.rows1").code == "numerics_not_permitted"
    extremes = workload("max", (9, 4096), "float16", numerics="bit_equal")
    assert isinstance(prove(extremes, recipe("max.rows1")), Proved)


@pytest.mark.parametrize("op", ["sum", "max", "nanmean"])
@pytest.mark.parametrize("dtype", STORAGE)
def test_many_workloads_are_proved_as_each_alone(op: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    rows = np.concatenate([[0, 1, 2, 2**25, 2**32, 70], rng.integers(1, 5000, 60)])
    widths = np.concatenate([[7, 16, 8193, 65536, 8, 5], rng.integers(1, 20_000, 60)])
    pitches = widths + rng.integers(0, 9, widths.size)
    works = workloads(program_of(op, dtype), rows, widths, row_pitches=pitches)
    for row in recipes_for(program_of(op, dtype)):
        together = np.broadcast_to(np.asarray(legal(works, row)), rows.shape)
        assert together.tolist() == [isinstance(prove(works.at(i), row), Proved) for i in range(rows.size)]


def test_the_original_comes_first_and_is_proved() -> None:
    for op in ("sum", "nansum", "max", "mean"):
        for shape in ((0, 1), (1, 1), (3, 50257), (10**6, 127), (2**40, 1)):
            first, proof = candidates(workload(op, shape, "bfloat16", alignment_bytes=2))[0]
            assert first is original_of(first.form)
            assert isinstance(proof, Proved)


def test_every_geometry_has_a_recipe_besides_the_original() -> None:
    """For sums and extremes, at any width and alignment."""
    for width in (1, 31, 127, 257, 1000, 4097, 50257, 2**20 + 1):
        proved = [prove(workload("sum", (3, width), "float16", alignment_bytes=2), r) for r in recipes_of("reduce.sum")]
        assert sum(isinstance(verdict, Proved) for verdict in proved) > 1
