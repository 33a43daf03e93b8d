"""The vectors and numbers that a call gives besides x, judged and as a launch takes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from ctypes import c_float
from numbers import Real
from typing import Any

from attrs import frozen

from features.errors import show
from kernels.arrays import Buffer, buffer
from kernels.errors import LaunchError
from kernels.operands import Operands, weight

_LARGEST = 3.4028234663852886e38  # of FP32, in which kernels take parameters


@frozen
class Given:
    """What a function was given by the names of its arguments: vectors, in the order of their places, and numbers."""

    weights: Mapping[str, Any]
    parameters: Mapping[str, float]

    def operands(self, x: Buffer) -> Operands:
        """Return them as a launch on x takes them; `LaunchError` says which is not what it must be."""
        vectors = tuple(_vector(array, name, x) for name, array in self.weights.items())
        return Operands(vectors, tuple(_parameter(value, name) for name, value in self.parameters.items()))


NOTHING = Given({}, {})


def _vector(array: Any, name: str, x: Buffer) -> Any:
    found, width = buffer(array, name), x.shape[-1]
    if (found.shape, found.dtype, found.device) != ((width,), x.dtype, x.device):
        raise LaunchError(
            f"{name} is {found.dtype} {found.shape} on device {found.device}; it must be {x.dtype} ({width},) on "
            f"device {x.device}, an element for each of a row of x"
        )
    if width > 1 and found.strides != (1,):
        raise LaunchError(f"{name} has stride {found.strides[0]}; kernels read adjacent elements, so copy first")
    return weight(found.address, width, found.dtype)


def _parameter(value: Any, name: str) -> float:
    """Return a number that FP32 holds as a finite one, and as more than 0 where it is."""
    number = _float(value)
    if not 0 <= number <= _LARGEST:
        raise LaunchError(f"{name} {show(value)} is not a finite number of at least 0; pass one such as 1e-6")
    if number > 0 and c_float(number).value == 0:
        raise LaunchError(f"{name} {show(value)} is 0 in FP32; pass 0, or at least 1e-45")
    return math.fabs(number)


def _float(value: Any) -> float:
    """Return a real number, NumPy's included, as a float; NaN for a bool and for what is no number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number of many digits
        return math.inf
