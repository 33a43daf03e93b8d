"""Vectors and scalars that a launch gives are leaves of a program, and a program is read back from its tree."""

from __future__ import annotations

import pytest

from features.errors import ProgramError
from features.expression import Cast, Combine, Expression, Load, Map, Parameter, Reduce, Store, Weight
from features.expression import expression_from_tree as read
from features.program import OPS, Program, parameters_of, program_of, takes_empty_rows, weights_of
from features.proof import form_of
from kernels.dtypes import STORAGE

WIDE = Cast(Load("float16"), "float32")
GAMMA, BETA = (Cast(Weight("float16", place), "float32") for place in (0, 1))
EPS = Parameter("eps")


def program(expression: Expression) -> Program:
    return Program(Store(Cast(expression, "float16"), "float16"))


def test_a_weight_is_a_row_and_a_parameter_a_scalar_of_fp32() -> None:
    assert Weight("bfloat16", 1).type() == ("bfloat16", "row")
    assert EPS.type() == ("float32", "scalar")
    assert Combine(Reduce(WIDE), EPS, "add").type() == ("float32", "scalar")
    with pytest.raises(ProgramError, match="operands of one dtype, and has float32 and float16"):
        Combine(WIDE, Weight("float16", 0), "multiply").type()


def test_forms_are_written_out_from_the_tree() -> None:
    scaled = Combine(WIDE, Map(Combine(Reduce(Map(WIDE, "square")), EPS, "add"), "rsqrt"), "multiply")
    assert form_of(program(scaled)) == "multiply(x,map.rsqrt.add(reduce.sum.map.square,eps))"
    weighed = Combine(Combine(WIDE, GAMMA, "multiply"), BETA, "add")
    assert form_of(program(weighed)) == "add(multiply(x,w0),w1)"
    assert form_of(program(Combine(Map(WIDE, "abs"), Map(GAMMA, "abs"), "add"))) == "add(map.abs,map.abs.w0)"


def test_weights_are_told_by_place_and_parameters_outermost_first() -> None:
    first = Combine(Combine(WIDE, BETA, "add"), Parameter("shift"), "add")
    found = program(Combine(Combine(first, GAMMA, "multiply"), Combine(BETA, EPS, "multiply"), "add"))
    assert weights_of(found) == (Weight("float16", 0), Weight("float16", 1))
    assert parameters_of(found) == ("eps", "shift")
    assert weights_of(program_of("scan", "float16")) == parameters_of(program_of("scan", "float16")) == ()
    assert takes_empty_rows(found)


@pytest.mark.parametrize("weights", [[Weight("float16", 1)], [Weight("float16", 0), Weight("bfloat16", 0)]], ids=str)
def test_places_are_numbered_from_0_and_one_each(weights: list[Weight]) -> None:
    expression: Expression = WIDE
    for weight in weights:
        expression = Combine(expression, Cast(weight, "float32"), "add")
    with pytest.raises(ProgramError, match="number them from 0"):
        weights_of(program(expression))


def test_a_weight_or_a_parameter_makes_another_program() -> None:
    made = [
        program(Combine(WIDE, other, function))
        for other in (GAMMA, BETA, EPS, Parameter("p"), WIDE)
        for function in ("add", "multiply")
    ]
    assert len({found.digest() for found in made}) == len(made)


@pytest.mark.parametrize("op", OPS)
def test_a_program_is_read_back_from_its_tree(op: str) -> None:
    """As a stored decision is replayed."""
    for dtype in STORAGE:
        found = program_of(op, dtype)
        assert read(found.tree()) == found.expression


def test_a_tree_of_nothing_known_is_an_error() -> None:
    every = program(Combine(Combine(WIDE, GAMMA, "multiply"), EPS, "add"))
    assert read(every.tree()) == every.expression
    for tree in (["permute", "x"], ["load"], []):
        with pytest.raises((KeyError, IndexError)):
            read(tree)
