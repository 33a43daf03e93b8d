"""What a right answer is: FP64 references by form, the error bound, the comparison. NumPy or CuPy, whichever is given.

|out - ref| <= half a unit in the last place of the storage dtype at ref + g scale, g = (d + 2) 2^-24, where scale is
the sum of the magnitudes that enter an element and d the recipe's longest chain of FP32 additions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from kernels.dtypes import Storage, storage
from kernels.errors import KernelError
from kernels.recipes import TEMPLATES, Recipe

# Rows are compared in blocks of about this many elements, 128 MiB as FP64, so that a tensor of any size fits.
BLOCK_ELEMENTS = 2**24


def _prefix_sum(xp: Any, x: Any) -> tuple[Any, Any]:
    return xp.cumsum(x, axis=-1), xp.cumsum(xp.abs(x), axis=-1)


# (array module, FP64 rows) -> (reference, scale), both FP64 and of the output's shape
REFERENCES: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {"prefix.sum": _prefix_sum}


@frozen
class Comparison:
    """How a result compares with its reference.

    `worst_share` is the largest error as a share of the bound; `bad_finite` counts elements past it, `bad_special`
    those whose NaN or infinity differs from the reference's.
    """

    elements: int
    worst_share: float
    bad_finite: int
    bad_special: int

    @property
    def right(self) -> bool:
        """Whether every element is within the bound."""
        return self.bad_finite == 0 and self.bad_special == 0


def reference(form: str, xp: Any, rows: Any) -> tuple[Any, Any]:
    """Return the FP64 reference and scale of FP64 `rows` for programs of a form."""
    if form not in REFERENCES:
        raise KernelError(f"no FP64 reference for programs of form {form!r}")
    return REFERENCES[form](xp, rows)


def chain(recipe: Recipe, width: int) -> int:
    """Return d, the longest chain of FP32 additions of a recipe at a width."""
    return TEMPLATES[recipe.template].chain(recipe, width)


def half_ulp(xp: Any, value: Any, dtype: Storage) -> Any:
    """Return half a unit in the last place of `dtype` at FP64 `value`; subnormals share the least normal's unit."""
    _, exponent = xp.frexp(xp.where(value == 0, 1.0, value))
    exponent = xp.where(value == 0, dtype.exponent_min + 1, exponent)
    return xp.ldexp(xp.ones_like(value), xp.maximum(exponent - 1, dtype.exponent_min) - dtype.bits)


def compare(xp: Any, form: str, recipe: Recipe, dtype: str, x: Any, out: Any) -> Comparison:
    """Compare `out` with the FP64 reference of `x`, both of shape (rows, width), in blocks of rows.

    The arrays hold values that FP64 represents: pass BF16 widened to FP32.
    """
    kind = storage(dtype)
    rows, width = x.shape
    growth = (chain(recipe, width) + 2) * 2.0**-24
    step = max(1, BLOCK_ELEMENTS // max(width, 1))
    worst, bad_finite, bad_special = 0.0, 0, 0
    for first in range(0, rows, step):
        got = out[first : first + step].astype(xp.float64)
        expected, scale = reference(form, xp, x[first : first + step].astype(xp.float64))
        limit = half_ulp(xp, expected, kind) + growth * scale
        overflow = xp.abs(expected) + limit > kind.largest  # the cast may give either the largest value or infinity
        finite = xp.isfinite(expected) & xp.isfinite(got)
        same_special = (xp.isnan(expected) & xp.isnan(got)) | (expected == got)
        allowed = overflow & xp.isinf(got) & (xp.sign(got) == xp.sign(expected))
        bad_special += int(xp.sum(~finite & ~same_special & ~allowed))
        share = xp.where(finite, xp.abs(got - expected) / limit, 0.0)
        worst = max(worst, float(xp.max(share)) if share.size else 0.0)
        bad_finite += int(xp.sum(share > 1.0))
    return Comparison(rows * width, worst, bad_finite, bad_special)
