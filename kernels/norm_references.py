"""FP64 references of row normalizations, each with the scale that its error grows with.

A kernel's error is at most d + 2 roundings of u = 2^-24, each of at most the scale, which is worked out here to first
order in u. Weights multiply results, so they multiply scales; what is added to a result adds its own magnitude. `eps`
is the FP32 number that a kernel is given.
"""

from __future__ import annotations

from ctypes import c_float
from typing import Any


def softmax(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return softmax, and what scales the error of a result: itself, and how far exponents lie from zero.

    An exponent x - m is rounded to 2^-24 of itself, which is exp's relative error; the sum has those of its terms, each
    by its share.
    """
    below = x - x.max(-1, keepdims=True)
    raised = xp.exp(below)
    result = raised / raised.sum(-1, keepdims=True)
    far = xp.where(result > 0, xp.abs(below), 0.0)
    return result, result * (1.0 + far + (result * far).sum(-1, keepdims=True))


def rms(xp: Any, x: Any, *operands: Any) -> tuple[Any, Any]:
    """Return x / sqrt(mean x^2 + eps), weighed, and its scale, the magnitude of the result before a sum.

    Squares are positive, so their sum has the relative error of its longest chain; the root halves it. Everything after
    is a product.
    """
    *weights, eps = operands
    result = x / xp.sqrt(xp.square(x).mean(-1, keepdims=True) + c_float(eps).value)
    return _weighed(xp, result, xp.abs(result), weights)


def layer(xp: Any, x: Any, *operands: Any) -> tuple[Any, Any]:
    """Return (x - m) / sqrt(v + eps), weighed, of m the mean and v the mean square of differences from it.

    With a the mean of |x| and r = 1 / sqrt(v + eps): the mean is off by up to d u a, and so is each x - m, by which a
    result is off by d u a r. The sum of squares has the relative error of its chain, as do its terms; merged means
    that are off by d u a change it by up to 2 d u a / sqrt(v) of itself (Cauchy-Schwarz), and r by half of that. So
    the scale is a r + |result| (1 + a r): where rows lie far from zero for what they vary by, a r is large and few
    digits are left.
    """
    *weights, eps = operands
    apart = x - x.mean(-1, keepdims=True)
    root = xp.sqrt(xp.square(apart).mean(-1, keepdims=True) + c_float(eps).value)
    far = xp.abs(x).mean(-1, keepdims=True) / root
    result = apart / root
    return _weighed(xp, result, far + xp.abs(result) * (1.0 + far), weights)


def _weighed(xp: Any, result: Any, scale: Any, weights: list[Any]) -> tuple[Any, Any]:
    """Multiply by the first weight and add the second."""
    for place, weight in enumerate(weights):
        if place == 0:
            result, scale = result * weight, scale * xp.abs(weight)
        else:
            result, scale = result + weight, scale + xp.abs(weight)
    return result, scale


ALGEBRAS = {"softmax": softmax, "rms": rms, "layer": layer}
