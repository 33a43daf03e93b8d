"""What a right answer is: FP64 references by form, the error bound, the comparison. NumPy or CuPy, whichever is given.

|out - ref| <= half a unit in the last place of the storage dtype at ref + g scale, g = (d + 2) 2^-24, where scale is
the sum of the magnitudes that enter an element and d the recipe's longest chain of FP32 additions. A mean's scale is
that sum over the count; g holds its two further roundings, by the division and of a count past 2^24. MAX and MIN are
exact, and -0.0 is less than +0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from attrs import frozen

from kernels import norm_references
from kernels.channel_references import CHANNEL_REFERENCES
from kernels.channels import CHANNEL_NORMS
from kernels.dtypes import Storage, storage
from kernels.errors import KernelError
from kernels.norms import NORMS
from kernels.recipe import Recipe
from kernels.reductions import REDUCTIONS, Reduction
from kernels.templates import TEMPLATES

# Rows are compared in blocks of about this many elements, 128 MiB as FP64, so that a tensor of any size fits.
BLOCK_ELEMENTS = 2**24


def _prefix_sum(xp: Any, x: Any) -> tuple[Any, Any]:
    return xp.cumsum(x, axis=-1), xp.cumsum(xp.abs(x), axis=-1)


def _added(xp: Any, x: Any, reduction: Reduction) -> tuple[Any, Any]:
    """Return sum, or mean, of the elements that enter. A mean of none is NaN."""
    entering = ~xp.isnan(x) if reduction.suppress else xp.ones(x.shape, dtype=bool)
    x = xp.where(entering, x, 0.0)
    total, scale = x.sum(-1, keepdims=True), xp.abs(x).sum(-1, keepdims=True)
    if not reduction.mean:
        return total, scale
    count = entering.sum(-1, keepdims=True)
    return xp.where(count == 0, xp.nan, total / xp.maximum(count, 1)), scale / xp.maximum(count, 1)


def _extreme(xp: Any, x: Any, reduction: Reduction) -> tuple[Any, Any]:
    """Return the largest or least element; of zeros the one whose sign is asked for, whatever order they come in."""
    sign = 1.0 if reduction.algebra == "max" else -1.0
    x = xp.where(xp.isnan(x), -xp.inf, sign * x) if reduction.suppress else sign * x
    found = x.max(-1, keepdims=True)
    positive_zero = ((x == 0) & ~xp.signbit(x)).any(-1, keepdims=True)
    found = xp.where(found == 0, xp.where(positive_zero, 0.0, -0.0), found)
    return sign * found, xp.zeros_like(found)


def _reduced(reduction: Reduction) -> Callable[[Any, Any], tuple[Any, Any]]:
    of = _extreme if reduction.exact else _added
    return lambda xp, x: of(xp, x, reduction)


# (array module, FP64 rows, the program's operands) -> (reference, scale), both FP64 and of the output's shape
REFERENCES: dict[str, Callable[..., tuple[Any, Any]]] = {
    "prefix.sum": _prefix_sum,
    **{form: norm_references.ALGEBRAS[norm.algebra] for form, norm in NORMS.items()},
    **{form: CHANNEL_REFERENCES[norm.norm] for form, norm in CHANNEL_NORMS.items()},
    **{form: _reduced(reduction) for form, reduction in REDUCTIONS.items()},
}


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

    def __add__(self, other: Comparison) -> Comparison:
        """Return the comparison of both parts together."""
        return Comparison(
            self.elements + other.elements,
            max(self.worst_share, other.worst_share),
            self.bad_finite + other.bad_finite,
            self.bad_special + other.bad_special,
        )

    @property
    def right(self) -> bool:
        """Whether every element is within the bound."""
        return self.bad_finite == 0 and self.bad_special == 0


def reference(form: str, xp: Any, rows: Any, operands: Sequence[Any] = ()) -> tuple[Any, Any]:
    """Return the FP64 reference and scale of FP64 `rows` for programs of a form.

    `operands` are the program's weights, FP64 vectors, and then its parameters.
    """
    if form not in REFERENCES:
        raise KernelError(f"no FP64 reference for programs of form {form!r}")
    return REFERENCES[form](xp, rows, *operands)


def chain(recipe: Recipe, width: int) -> int:
    """Return d, the longest chain of FP32 additions of a recipe at a width."""
    return TEMPLATES[recipe.template].chain(recipe, width)


def half_ulp(xp: Any, value: Any, dtype: Storage) -> Any:
    """Return half a unit in the last place of `dtype` at FP64 `value`; subnormals share the least normal's unit."""
    _, exponent = xp.frexp(xp.where(value == 0, 1.0, value))
    exponent = xp.where(value == 0, dtype.exponent_min + 1, exponent)
    return xp.ldexp(xp.ones_like(value), xp.maximum(exponent - 1, dtype.exponent_min) - dtype.bits)


def compare(
    xp: Any, form: str, recipe: Recipe, dtype: str, x: Any, out: Any, operands: Sequence[Any] = ()
) -> Comparison:
    """Compare `out` with the FP64 reference of `x`, (rows, out_width) and (rows, width), in blocks of rows.

    The arrays hold values that FP64 represents: pass BF16 widened to FP32. `operands` are as `reference` takes them.
    """
    return _over(xp, form, recipe, dtype, x.shape[1], _blocks(xp, form, x, operands), out)


@frozen(eq=False)
class Answer:
    """The FP64 reference and scale of a whole tensor: made once, and compared with what each recipe gives."""

    form: str
    width: int
    blocks: tuple[tuple[Any, Any], ...]

    def compare(self, xp: Any, recipe: Recipe, dtype: str, out: Any) -> Comparison:
        """Compare `out`, of shape (rows, out_width), as `compare` does."""
        return _over(xp, self.form, recipe, dtype, self.width, self.blocks, out)


def answer(xp: Any, form: str, x: Any, operands: Sequence[Any] = ()) -> Answer:
    """Return the reference of `x`, of shape (rows, width); it takes 16 bytes an element of the result."""
    return Answer(form, x.shape[1], tuple(_blocks(xp, form, x, operands)))


def _blocks(xp: Any, form: str, x: Any, operands: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield reference and scale of one block of rows after the other."""
    rows, width = x.shape
    step = max(1, BLOCK_ELEMENTS // max(width, 1))
    for first in range(0, rows, step):
        yield reference(form, xp, x[first : first + step].astype(xp.float64), operands)


def _over(
    xp: Any, form: str, recipe: Recipe, dtype: str, width: int, blocks: Iterable[tuple[Any, Any]], out: Any
) -> Comparison:
    found, first = Comparison(0, 0.0, 0, 0), 0
    for expected, scale in blocks:
        last = first + expected.shape[0]
        found += against(xp, form, recipe, dtype, width, expected, scale, out[first:last])
        first = last
    return found


def against(
    xp: Any, form: str, recipe: Recipe, dtype: str, width: int, expected: Any, scale: Any, out: Any
) -> Comparison:
    """Compare results of rows of `width` with a reference and its scale, both as `reference` returns them.

    Of a result that must be exact any difference is twice the bound, the sign of a zero included.
    """
    got = out.astype(xp.float64)
    finite = xp.isfinite(expected) & xp.isfinite(got)
    same_special = (xp.isnan(expected) & xp.isnan(got)) | (expected == got)
    if form in REDUCTIONS and REDUCTIONS[form].exact:
        same = (expected == got) & (xp.signbit(expected) == xp.signbit(got))
        share, allowed = xp.where(finite & ~same, 2.0, 0.0), xp.zeros_like(finite)
    else:
        limit = half_ulp(xp, expected, storage(dtype)) + (chain(recipe, width) + 2) * 2.0**-24 * scale
        overflow = xp.abs(expected) + limit > storage(dtype).largest  # the cast may give the largest value or infinity
        allowed = overflow & xp.isinf(got) & (xp.sign(got) == xp.sign(expected))
        share = xp.where(finite, xp.abs(got - expected) / limit, 0.0)
    worst = float(xp.max(share)) if share.size else 0.0
    bad_special = int(xp.sum(~finite & ~same_special & ~allowed))
    return Comparison(got.size, worst, int(xp.sum(share > 1.0)), bad_special)
