"""What a channel norm cannot take is refused before anything is launched, by the argument's name, with what to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import rowsmith
from features.errors import WorkloadError
from kernels.errors import KernelError, LaunchError


class Foreign:
    """An array of some library, on device 0."""

    device = SimpleNamespace(id=0)

    def __init__(self, shape: tuple[int, ...], typestr: str = "<f4", **interface: Any) -> None:
        usual = {"shape": shape, "typestr": typestr, "data": (2**16, False), "version": 3}
        self.__cuda_array_interface__ = {**usual, **interface}


FUNCTIONS = (rowsmith.channel_rms, rowsmith.channel_mean_abs, rowsmith.channel_l2)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_layouts_are_refused(function: Any) -> None:
    with pytest.raises(WorkloadError, match=r"^x: stride 8 on axis 3 is not 1; .* copy to a contiguous array first"):
        function(Foreign((2, 8, 2, 3), strides=(192, 4, 96, 32)))  # channels last
    with pytest.raises(WorkloadError, match=r"^x: shape \(8,\) has no channels"):
        function(Foreign((8,)))
    with pytest.raises(LaunchError, match=r"strides .* not whole float32 elements"):
        function(Foreign((2, 8), strides=(34, 4)))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_outputs_are_refused(function: Any) -> None:
    x = Foreign((2, 8, 6))
    for out in (Foreign((2, 8, 7)), Foreign((2, 8, 6), "<f2")):
        with pytest.raises(LaunchError, match=r"^out is .* it must be float32 \(2, 8, 6\) on device 0, like x"):
            function(x, out=out)
    with pytest.raises(WorkloadError, match=r"^out: stride"):
        function(x, out=Foreign((2, 8, 6), strides=(192, 4, 32)))
    with pytest.raises(LaunchError, match="read-only"):
        function(x, out=Foreign((2, 8, 6), data=(2**20, True)))


@pytest.mark.parametrize("eps", [-1e-6, float("nan"), float("inf"), "1e-5", None, True])
def test_an_eps_that_is_no_finite_number_is_refused(eps: Any) -> None:
    with pytest.raises(LaunchError, match=r"^eps .* is not a finite number of at least 0"):
        rowsmith.channel_rms(Foreign((2, 8, 6)), eps=eps)


def test_other_dtypes_and_arrays_are_refused() -> None:
    with pytest.raises(KernelError, match="use one of float16, bfloat16, float32"):
        rowsmith.channel_l2(Foreign((2, 8), "<f8"))
    with pytest.raises(LaunchError, match="x is a list"):
        rowsmith.channel_l2([[1.0]])
