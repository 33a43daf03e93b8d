"""Weights and parameters of a launch: what is not the kernel's is an error that names it; arguments have an order."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from kernels.arrays import buffer
from kernels.errors import LaunchError
from kernels.guard import Verdict, judge, span
from kernels.launch import LaunchShape
from kernels.operands import NO_OPERANDS, Operands, arguments, judge_operands, weight
from kernels.recipe import Recipe
from rowsmith.operands import NOTHING, Given

X, Y = span(4096, 3, 8, 8, "float16"), span(8192, 3, 8, 10, "float16")
GAMMA, BETA = weight(2**16, 8, "float16"), weight(2**17, 8, "float16")
BOTH = Operands((GAMMA, BETA), (0.25,))


def taking(weights: int, *parameters: str) -> Recipe:
    plain = Recipe("test.weighed", "none", "recipe", "empty.cu", 32, 8, 1, (), "reordered")
    return evolve(plain, weights=weights, parameters=parameters)


def test_a_recipe_tells_its_operands_where_it_has_any() -> None:
    facts = taking(2, "eps").facts()
    assert (facts["weights"], facts["parameters"]) == (2, ["eps"])
    assert not {"weights", "parameters"} & set(taking(0).facts())


def test_operands_that_fit_pass() -> None:
    judge_operands(taking(0), X, Y, NO_OPERANDS)
    judge_operands(taking(2, "eps"), X, Y, BOTH)
    judge_operands(taking(2, "eps"), X, X, BOTH)
    judge_operands(taking(1), X, Y, Operands((weight(X.address, 8, "float16"),)))  # within x: both are read


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (NO_OPERANDS, "takes 2 weights and the parameters .'eps'., and is given 0 weights and 0 parameters"),
        (Operands((GAMMA, BETA)), "given 2 weights and 0 parameters"),
        (Operands((GAMMA,), (1.0,)), "given 1 weights and 1 parameters"),
        (evolve(BOTH, weights=(GAMMA, weight(2**17, 7, "float16"))), "beta has 7 elements of 2 bytes; it must have 8"),
        (evolve(BOTH, weights=(weight(2**16, 8, "float32"), BETA)), "gamma has 8 elements of 4 bytes"),
        (evolve(BOTH, weights=(weight(Y.address + 2, 8, "float16"), BETA)), "gamma overlaps out"),
        (evolve(BOTH, weights=(GAMMA, weight(Y.address - 2, 8, "float16"))), "beta overlaps out"),
        (evolve(BOTH, weights=(GAMMA, weight(Y.address + Y.bytes - 2, 8, "float16"))), "beta overlaps out"),
    ],
)
def test_what_does_not_fit_is_named(given: Operands, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        judge_operands(taking(2, "eps"), X, Y, given)


def test_weights_need_the_boundaries_that_rows_of_x_need() -> None:
    x, y = span(4096, 3, 8, 8, "float16"), span(8192, 3, 8, 8, "float16")
    beside = weight(2**16 + 2, 8, "float16")
    for demand in ("rows", "span"):
        assert judge(x, y, (demand, demand), (GAMMA, BETA)) is Verdict.RECIPE
        assert judge(x, y, (demand, demand), (GAMMA, beside)) is Verdict.MISALIGNED
    assert judge(x, y, ("any", "any"), (beside,)) is Verdict.RECIPE
    assert judge(x, x, ("rows", "rows"), (beside,)) is Verdict.IN_PLACE


def test_arguments_come_in_the_documented_order() -> None:
    found = arguments(X, Y, BOTH, LaunchShape(1, 32, (7, 9)), workspace=2**20)
    assert [type(value) for value in found] == [
        *[ctypes.c_void_p] * 5,
        *[ctypes.c_longlong] * 4,
        ctypes.c_float,
        *[ctypes.c_int] * 2,
    ]
    addresses = [X.address, Y.address, GAMMA.address, BETA.address, 2**20]
    assert [value.value for value in found] == [*addresses, 3, 8, 8, 10, 0.25, 7, 9]
    plain = arguments(X, Y, NO_OPERANDS, LaunchShape(1, 32), workspace=None)
    assert [value.value for value in plain] == [X.address, Y.address, 3, 8, 8, 10]


class Foreign:
    """An array of some library, on device 1."""

    device = SimpleNamespace(id=1)

    def __init__(self, shape: tuple[int, ...], typestr: str = "<f2", **interface: Any) -> None:
        usual = {"shape": shape, "typestr": typestr, "data": (2**16, False), "version": 3}
        self.__cuda_array_interface__ = {**usual, **interface}


ROWS = buffer(Foreign((3, 8), data=(4096, False)), "x")


def test_what_a_call_gives_becomes_operands() -> None:
    found = Given({"gamma": Foreign((8,)), "beta": Foreign((8,), data=(2**17, False))}, {"eps": 1}).operands(ROWS)
    assert found == Operands((GAMMA, BETA), (1.0,))
    assert NOTHING.operands(ROWS) == NO_OPERANDS
    single = buffer(Foreign((3, 1)), "x")
    assert Given({"gamma": Foreign((1,), strides=(6,))}, {}).operands(single).weights[0].width == 1


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (Foreign((7,)), r"gamma is float16 \(7,\) on device 1; it must be float16 \(8,\) on device 1"),
        (Foreign((1, 8)), r"gamma is float16 \(1, 8\)"),
        (Foreign((8,), "<f4"), r"gamma is float32 \(8,\) on device 1; it must be float16 \(8,\)"),
        (Foreign((8,), strides=(4,)), "gamma has stride 2"),
        (Foreign((8,), strides=(0,)), "gamma has stride 0"),
        ([1.0], "gamma is a list; pass a CuPy array or a torch CUDA tensor"),
    ],
    ids=range(6),
)
def test_vectors_of_another_length_dtype_or_stride_are_refused(array: Any, message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        Given({"gamma": array}, {}).operands(ROWS)


def test_a_vector_of_another_device_is_refused() -> None:
    elsewhere = Foreign((8,))
    elsewhere.device = SimpleNamespace(id=0)
    with pytest.raises(LaunchError, match=r"on device 0; it must be float16 .* on device 1"):
        Given({"beta": elsewhere}, {}).operands(ROWS)


@pytest.mark.parametrize("eps", [-1e-6, float("nan"), float("inf"), 1e39, 10**400, True, "1e-6", None, 1j])
def test_a_parameter_is_a_finite_number_that_is_not_negative(eps: Any) -> None:
    with pytest.raises(LaunchError, match=r"^eps .* is not a finite number of at least 0"):
        Given({}, {"eps": eps}).operands(ROWS)


@pytest.mark.parametrize("eps", [0, 0.0, -0.0, 1e-10, 1e-3, 3.4e38])
def test_any_other_is_taken(eps: float) -> None:
    assert Given({}, {"eps": eps}).operands(ROWS).parameters == (float(eps),)
