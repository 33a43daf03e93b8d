"""What a channel norm is: FP64 references of rows of channels, what scales their error, and an evaluator's predicate.

All additions are of magnitudes, so a sum errs by the roundings of its chain relative to itself, as every result does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ATOL = RTOL = 1e-4


def _over(x: Any, divisor: Any) -> tuple[Any, Any]:
    """Return x / divisor, of rows of zeros NaN where that is 0, and the scale: the magnitude of the result."""
    result = x / divisor
    return result, abs(result)


def _rms(xp: Any, x: Any, eps: float = 1e-5) -> tuple[Any, Any]:
    return _over(x, xp.sqrt((x * x).mean(-1, keepdims=True) + eps))


def _mean_abs(xp: Any, x: Any) -> tuple[Any, Any]:
    return _over(x, abs(x).mean(-1, keepdims=True))


def _l2(xp: Any, x: Any) -> tuple[Any, Any]:
    return _over(x, xp.sqrt((x * x).sum(-1, keepdims=True)))


# By what templates are compiled with: (array module, FP64 rows, its parameters) -> (reference, scale).
CHANNEL_REFERENCES: dict[str, Callable[..., tuple[Any, Any]]] = {"rms": _rms, "mean_abs": _mean_abs, "l2": _l2}


def is_close(xp: Any, reference: Any, candidate: Any, *, equal_nan: bool = False) -> bool:
    """Tell whether |reference - candidate| <= 1e-4 + 1e-4 |candidate| holds everywhere, of FP32 results.

    The relative term scales with the second argument. Infinities must be equal, and NaN meet nothing unless asked to
    meet each other. A channel norm of zeros is NaN, so that by default not even the reference is close to itself.
    """
    same = reference == candidate  # infinities, whose difference is none
    if equal_nan:
        same = same | (xp.isnan(reference) & xp.isnan(candidate))
    finite = xp.isfinite(reference) & xp.isfinite(candidate)
    near = abs(reference - candidate) <= ATOL + RTOL * abs(candidate)
    return bool(xp.all(same | (finite & near)))
