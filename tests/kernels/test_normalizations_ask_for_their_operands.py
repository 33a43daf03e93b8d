"""`rowsmith.rmsnorm` and `layernorm` name what is wrong before they look at a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rowsmith
from features.errors import WorkloadError
from kernels.errors import LaunchError


class Foreign:
    """An array of some library, on device 0."""

    device = SimpleNamespace(id=0)

    def __init__(
        self,
        shape: tuple[int, ...],
        typestr: str = "<f2",
        strides: tuple[int, ...] | None = None,
        address: int = 2**16,
    ) -> None:
        interface = {"shape": shape, "typestr": typestr, "data": (address, False), "version": 3, "strides": strides}
        self.__cuda_array_interface__ = interface


X, GAMMA = Foreign((3, 8)), Foreign((8,))


def test_beta_needs_a_gamma() -> None:
    with pytest.raises(LaunchError, match="beta is given without gamma"):
        rowsmith.layernorm(X, beta=GAMMA)


@pytest.mark.parametrize("eps", [-1.0, float("nan"), float("inf"), np.float16("inf"), 10**500, "1e-6", None, True])
def test_eps_is_a_finite_number_of_at_least_0(eps: Any) -> None:
    for call in (rowsmith.rmsnorm, rowsmith.layernorm):
        with pytest.raises(LaunchError, match=r"^eps .* is not a finite number of at least 0"):
            call(X, eps=eps)


def test_an_eps_that_fp32_rounds_to_0_is_refused() -> None:
    """A row of zeros would be NaN in spite of it."""
    with pytest.raises(LaunchError, match=r"^eps 1e-46 is 0 in FP32"):
        rowsmith.rmsnorm(X, eps=1e-46)


def test_an_array_off_its_elements_boundary_is_refused() -> None:
    """A view of bytes may begin anywhere."""
    with pytest.raises(LaunchError, match=r"^x begins at 0x1001, off a boundary of 4 bytes"):
        rowsmith.rmsnorm(Foreign((3, 8), "<f4", address=0x1001))


def test_weights_are_named() -> None:
    for wrong in (Foreign((7,)), Foreign((8,), "<f4"), Foreign((8, 1))):
        with pytest.raises(LaunchError, match=r"^gamma is float.*it must be float16 \(8,\) on device 0"):
            rowsmith.rmsnorm(X, wrong)
        with pytest.raises(LaunchError, match=r"^beta is float"):
            rowsmith.layernorm(X, GAMMA, wrong)
    with pytest.raises(LaunchError, match="gamma has stride 2"):
        rowsmith.layernorm(X, Foreign((8,), strides=(4,)))


def test_x_is_judged_first() -> None:
    for call in (rowsmith.softmax, rowsmith.rmsnorm, rowsmith.layernorm):
        with pytest.raises(WorkloadError, match="x: inner stride 2 is not 1"):
            call(Foreign((3, 8), strides=(32, 4)))
        with pytest.raises(LaunchError, match="x is a list"):
            call([1.0])
