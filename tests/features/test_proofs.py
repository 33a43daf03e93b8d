"""What makes a recipe legal: facts of program and layout, refused by code where one fails."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from features.errors import ProgramError, Refused
from features.expression import Cast, Expression, Load, Map, Prefix, Store
from features.program import Program
from features.proof import Proved, candidates, form_of, prove
from features.workload import Workload, workload
from kernels.errors import KernelError
from kernels.recipes import recipe

CUB128, ORIGINAL = recipe("scan.cub128"), recipe("scan.original")


def refusal(work: Workload, recipe_id: str = "scan.cub128") -> Refused:
    """Return the refusal of a recipe that must be refused."""
    verdict = prove(work, recipe(recipe_id))
    assert isinstance(verdict, Refused)
    return verdict


def of(expression: Expression, rows: int = 4, width: int = 1024) -> Workload:
    """Return a workload that stores a float16 expression."""
    return Workload(Program(Store(expression, "float16")), rows, width, width)


LOAD = Load("float16")
WIDE = Cast(LOAD, "float32")


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        (Cast(Prefix(WIDE, ordered=True), "float16"), "ordered"),
        (Cast(Prefix(WIDE, "xor"), "float16"), "identity_unknown"),
        (Prefix(LOAD), "arithmetic_unsupported"),
        (Cast(Prefix(Map(WIDE, "square")), "float16"), "not_closed_prefix"),
        (Cast(Map(Prefix(WIDE), "abs"), "float16"), "not_closed_prefix"),
        (Cast(Prefix(Prefix(WIDE)), "float16"), "not_closed_prefix"),
        (LOAD, "not_closed_prefix"),
        (Cast(Prefix(Cast(Load("bfloat16"), "float32")), "float16"), "dtype_unsupported"),
    ],
    ids=["ordered", "unknown algebra", "half arithmetic", "mapped row", "mapped prefix", "twice", "copy", "two dtypes"],
)
def test_a_program_that_is_no_closed_prefix_is_refused_by_code(expression: Expression, code: str) -> None:
    """Recipe and original refuse alike, and the program is an error that says why."""
    assert refusal(of(expression)).code == code
    assert refusal(of(expression), "scan.original").code == code
    with pytest.raises(ProgramError):
        candidates(of(expression))


def test_an_expression_that_is_not_well_typed_is_an_error() -> None:
    """A store of half precision needs a cast from single."""
    with pytest.raises(ProgramError, match="needs a cast"):
        form_of(Program(Store(Prefix(WIDE), "float16")))
    with pytest.raises(KernelError, match="float8"):
        form_of(Program(Store(Load("float8"), "float8")))


def test_casts_of_a_float32_row_are_optional() -> None:
    """A prefix of float32 is closed with or without them."""
    bare = Workload(Program(Store(Prefix(Load("float32")), "float32")), 4, 1024, 1024)
    assert isinstance(prove(bare, CUB128), Proved)


@pytest.mark.parametrize(
    ("shape", "recipe_id", "code", "fact"),
    [
        (
            (4, 3584),
            "scan.cub128",
            "width_not_divisible",
            "width 3584 is not a multiple of 1024 (8 elements x 128",
        ),
        ((4, 513), "scan.cub128", "width_too_small", "width 513 is less than 1024"),
        ((4, 4096), "scan.cub1024", "width_too_small", "width 4096 is less than 8192"),
        ((0, 1024), "scan.cub128", "empty", "0 x 1024 has no element"),
        ((4, 0), "scan.cub128", "empty", "4 x 0 has no element"),
        ((4, 2048), "scan.split2048", "width_too_small", "width 2048 is not more than the 8192 elements that"),
        ((1, 8192), "scan.split8192", "width_too_small", "width 8192 is not more than the 8192 elements that"),
        ((49, 9000), "scan.split2048", "too_many_rows", "49 rows are more than the 48"),
        ((48, 350_208), "scan.split2048", "too_many_parts", "48 rows of 172 parts are more CTAs than the 8192"),
        ((0, 4096), "scan.split2048", "empty", "0 x 4096 has no element"),
        ((2**31, 1024), "scan.cub128", "index_overflow", "2147483648 CTAs"),
        ((1, 2**41), "scan.cub128", "index_overflow", "2147483648 chunks a row"),
    ],
)
def test_a_shape_that_a_recipe_cannot_take_is_refused_with_the_numbers(
    shape: tuple[int, int], recipe_id: str, code: str, fact: str
) -> None:
    """The original takes each of them."""
    work = workload("scan", shape, "float16")
    assert refusal(work, recipe_id).code == code
    assert fact in refusal(work, recipe_id).fact
    assert isinstance(prove(work, ORIGINAL), Proved)


@pytest.mark.parametrize(
    ("layout", "fact"),
    [
        ({"alignment_bytes": 2}, "bases are 2-byte aligned"),
        ({"alignment_bytes": 8}, "bases are 8-byte aligned"),
        ({"strides": (1025, 1)}, "row pitch 1025 is not a multiple of 8 elements (16 bytes)"),
        ({"strides": (1028, 1)}, "row pitch 1028 is not a multiple of 8 elements (16 bytes)"),
    ],
)
def test_rows_off_a_16_byte_boundary_are_refused(layout: dict[str, Any], fact: str) -> None:
    """Whether it is the base or the row pitch that is off."""
    found = refusal(workload("scan", (4, 1024), "float16", **layout))
    assert found.code == "misaligned"
    assert fact in found.fact


def test_a_pitch_of_whole_vectors_is_proved_with_its_span() -> None:
    """Four rows 1032 elements apart: the last chunk starts at 3 x 1032 and the span ends 1024 elements later."""
    verdict = prove(workload("scan", (4, 1024), "float16", strides=(1032, 1)), CUB128)
    assert isinstance(verdict, Proved)
    assert verdict.facts["aligned_load"]["last_origin_elements"] == 3096
    assert verdict.facts["aligned_load"]["span_bytes"] == (3096 + 1024) * 2
    assert verdict.facts["whole_chunks"] == {"chunk_elements": 1024, "chunks_per_row": 1, "masked_lanes": 0}


def test_bit_equal_numerics_refuse_a_recipe_that_reorders() -> None:
    """The original is bit-equal to itself."""
    work = workload("scan", (4, 1024), "float16", numerics="bit_equal")
    assert refusal(work).code == "numerics_not_permitted"
    assert isinstance(prove(work, ORIGINAL), Proved)
    assert isinstance(prove(work, evolve(CUB128, numerics="bit_equal")), Proved)


def test_a_dtype_without_a_kernel_is_refused() -> None:
    """A recipe's row lists its dtypes."""
    verdict = prove(workload("scan", (4, 1024), "float32"), evolve(CUB128, dtypes=("float16",)))
    assert verdict == Refused("dtype_unsupported", "scan.cub128 has no float32 kernel")


def test_the_original_comes_first_and_is_proved() -> None:
    """For every legal workload, empty and unaligned ones included."""
    for shape in ((0, 0), (1, 1), (3, 50257), (10**6, 127)):
        first, proof = candidates(workload("scan", shape, "bfloat16", alignment_bytes=2))[0]
        assert first is ORIGINAL
        assert isinstance(proof, Proved)
