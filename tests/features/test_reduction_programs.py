"""Reductions as programs: a scalar from a row, told apart by algebra and NaN policy; empty rows are clear errors."""

from __future__ import annotations

import pytest

from features.errors import ProgramError, WorkloadError
from features.expression import Cast, Load, Map, Prefix, Reduce, Store
from features.program import OPS, Program, program_of, takes_empty_rows
from features.proof import form_of
from features.workload import workload
from features.workloads import workloads
from kernels.dtypes import STORAGE
from kernels.recipes import family_of, original_of
from kernels.reductions import REDUCTIONS, out_width

WIDE = Cast(Load("float16"), "float32")
REDUCING = [op for op in OPS if program_of(op, "float32").expression.type()[1] == "scalar"]


def test_a_reduction_of_a_row_is_a_scalar() -> None:
    assert Reduce(WIDE).type() == ("float32", "scalar")
    assert program_of("sum", "float16").expression.type() == ("float16", "scalar")
    assert program_of("scan", "float16").expression.type() == ("float16", "row")
    for node in (Reduce(Reduce(WIDE)), Prefix(Reduce(WIDE))):
        with pytest.raises(ProgramError, match="needs a row, and its operand is a scalar"):
            node.type()


def test_a_tree_holds_algebra_policy_and_order() -> None:
    tree = program_of("nanmax", "bfloat16").tree()
    loaded = ["cast", "float32", ["load", "bfloat16"]]
    assert tree == ["store", "bfloat16", ["cast", "bfloat16", ["reduce", "max", "suppress", "unordered", loaded]]]
    assert Reduce(WIDE, ordered=True).tree()[:4] == ["reduce", "sum", "propagate", "ordered"]
    divided = [
        "map",
        "divide_by_count",
        ["reduce", "sum", "propagate", "unordered", ["cast", "float32", ["load", "float32"]]],
    ]
    assert program_of("mean", "float32").tree() == ["store", "float32", ["cast", "float32", divided]]


def test_forms_are_those_of_the_table_of_reductions() -> None:
    """The normal form of each op's program is the row that its kernels are compiled by."""
    assert {form_of(program_of(op, "float16")) for op in REDUCING} == set(REDUCTIONS)
    for op in REDUCING:
        for dtype in STORAGE:
            assert REDUCTIONS[form_of(program_of(op, dtype))].op == op
    assert form_of(program_of("sum", "float16")) == "reduce.sum"
    assert form_of(program_of("nanmin", "float16")) == "reduce.min.suppress"
    assert form_of(program_of("nanmean", "float16")) == "map.divide_by_count.reduce.sum.suppress"
    assert form_of(program_of("scan", "float16")) == "prefix.sum"


def test_programs_of_different_meaning_have_different_digests() -> None:
    digests = [program_of(op, dtype).digest() for op in OPS for dtype in STORAGE]
    assert len(set(digests)) == len(digests)


def test_forms_of_a_family_share_it_and_a_scan_is_its_own() -> None:
    assert {family_of(form) for form in REDUCTIONS} == {"reduce"}
    assert family_of("prefix.sum") == "prefix.sum"
    assert family_of("nobody.knows") == "nobody.knows"
    assert "family" not in original_of("prefix.sum").facts()
    assert original_of("reduce.max").facts()["family"] == "reduce"


def test_a_result_row_has_one_element_or_as_many_as_the_row() -> None:
    assert out_width("prefix.sum", 513) == 513
    assert all(out_width(form, 513) == 1 for form in REDUCTIONS)


@pytest.mark.parametrize("op", REDUCING)
@pytest.mark.parametrize("shape", [(4, 0), (0, 0), (0,)], ids=str)
def test_rows_of_no_element_have_a_sum_and_nothing_else(op: str, shape: tuple[int, ...]) -> None:
    takes = op in ("sum", "nansum")
    assert takes_empty_rows(program_of(op, "float16")) == takes
    if takes:
        assert workload(op, shape, "float16").width == 0
        return
    with pytest.raises(WorkloadError, match=f"of which {op} has no result") as caught:
        workload(op, shape, "float16")
    assert (caught.value.code, caught.value.field) == ("empty_row", "shape")


@pytest.mark.parametrize("op", REDUCING)
def test_no_rows_at_all_are_legal(op: str) -> None:
    assert workload(op, (0, 8), "float32").rows == 0


def test_a_batch_says_which_rows_are_empty() -> None:
    works = workloads(program_of("sum", "float16"), [3, 4], [0, 5])
    assert works.width.tolist() == [0, 5]
    with pytest.raises(WorkloadError, match="4 x 0 at index 1") as caught:
        workloads(program_of("max", "float16"), [3, 4], [2, 0])
    assert caught.value.code == "empty_row"


def test_a_scan_of_empty_rows_stays_legal() -> None:
    assert workload("scan", (4, 0), "float16").width == 0
    assert takes_empty_rows(Program(Store(Map(Load("float16"), "abs"), "float16")))
