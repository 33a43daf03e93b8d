"""Device tensors for the tests: rows at any base and pitch inside guard bytes, filled with values or with poison."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import cupy
import numpy as np
from attrs import frozen
from cupy.lib.stride_tricks import as_strided

from calibration.inputs import uniform
from features.usual import PARAMETERS
from kernels.driver import Kernel
from kernels.dtypes import STORAGE, storage
from kernels.execute import Prepared, prepare
from kernels.guard import Span, Verdict, span
from kernels.operands import Operands
from kernels.recipe import RECIPE, SPLIT, Recipe
from kernels.recipes import original_of, recipes_of
from kernels.reductions import out_width
from kernels.reference import Comparison, compare
from tests.gpu.geometries import takes_somewhere

FORM = "prefix.sum"
ORIGINAL = original_of(FORM)
DTYPES = tuple(STORAGE)
SCANS = recipes_of(FORM)
OTHERS = SCANS[1:]
SPLITS = tuple(row for row in OTHERS if row.role == SPLIT)
CUBS = tuple(row for row in OTHERS if row.role == RECIPE)
FURTHER = tuple(row for row in OTHERS if row.role not in (RECIPE, SPLIT))
GUARD_BYTES = 256
POISON = 0xFF  # every storage dtype reads it as NaN
Kernels = dict[tuple[str, str], Kernel]


@frozen(eq=False, slots=False)
class Tensor:
    """`rows` x `width` storage elements, rows `pitch` elements apart, from byte `first` of `raw` on."""

    raw: Any
    dtype: str
    rows: int
    width: int
    pitch: int
    first: int

    @property
    def span(self) -> Span:
        """What a launch takes."""
        return span(int(self.raw.data.ptr) + self.first, self.rows, self.width, self.pitch, self.dtype)

    @cached_property
    def bits(self) -> Any:
        """The elements as unsigned integers, in place."""
        return _strided(self.raw, self)

    def values(self) -> Any:
        """Return the elements as numbers that FP64 arithmetic takes; BF16 comes widened to FP32."""
        if self.dtype == "bfloat16":
            return (self.bits.astype(cupy.uint32) << 16).view(cupy.float32)
        return self.bits.view(self.dtype)

    def outside_equals(self, before: Any) -> bool:
        """Whether every byte that is no element of this tensor is what `before` (a byte, or bytes) says."""
        elements = cupy.zeros_like(self.raw)
        _strided(elements, self)[...] = np.iinfo(_bits(self.dtype)).max
        return bool(cupy.all((self.raw == before) | (elements != 0)))


def _bits(dtype: str) -> Any:
    return np.uint16 if storage(dtype).bytes == 2 else np.uint32


def _strided(raw: Any, tensor: Tensor) -> Any:
    size = storage(tensor.dtype).bytes
    length = span(0, tensor.rows, tensor.width, tensor.pitch, tensor.dtype).bytes
    flat = raw[tensor.first : tensor.first + length].view(_bits(tensor.dtype))
    return as_strided(flat, (tensor.rows, tensor.width), (tensor.pitch * size, size))


def blank(dtype: str, rows: int, width: int, *, offset: int = 0, pitch: int | None = None) -> Tensor:
    """Return a poisoned tensor whose base lies `offset` elements past a 256-byte boundary."""
    size, pitch = storage(dtype).bytes, width if pitch is None else pitch
    raw = cupy.empty(2 * GUARD_BYTES + (offset + rows * pitch) * size, dtype=cupy.uint8)
    raw.fill(POISON)
    return Tensor(raw, dtype, rows, width, pitch, GUARD_BYTES + offset * size)


def results(recipe: Recipe, x: Tensor, *, offset: int = 0, pitch: int | None = None) -> Tensor:
    """Return a poisoned tensor for what a recipe makes of x: as wide, or one element a row."""
    return blank(x.dtype, x.rows, out_width(recipe.form, x.width), offset=offset, pitch=pitch)


def random(dtype: str, rows: int, width: int, *, seed: int = 0, offset: int = 0, pitch: int | None = None) -> Tensor:
    """Return a tensor of fresh values uniform in [-1, 1)."""
    made = blank(dtype, rows, width, offset=offset, pitch=pitch)
    refill(made, seed)
    return made


def refill(tensor: Tensor, seed: int) -> None:
    """Put other random values into a tensor."""
    drawn = uniform(tensor.dtype, tensor.rows, tensor.width, seed * 1_000_003 + tensor.rows * 131 + tensor.width)
    tensor.bits[...] = drawn.body.view(_bits(tensor.dtype)).reshape(tensor.rows, tensor.width)


def holding(dtype: str, values: Any, *, offset: int = 0, pitch: int | None = None) -> Tensor:
    """Return a tensor of these NumPy values, rounded to the storage dtype."""
    rows, width = values.shape
    made = blank(dtype, rows, width, offset=offset, pitch=pitch)
    made.bits[...] = cupy.asarray(host_bits(values, dtype))
    return made


def host_bits(values: Any, dtype: str) -> Any:
    """Return NumPy values rounded to nearest even in a storage dtype, as unsigned integers."""
    single = np.ascontiguousarray(values, np.float32)
    with np.errstate(over="ignore"):
        if dtype != "bfloat16":
            return single.astype(dtype).view(_bits(dtype))
    bits = single.view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(single), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def host_values(bits: Any, dtype: str) -> Any:
    """Return what storage bits stand for, as FP32 NumPy values."""
    if dtype == "bfloat16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(dtype).astype(np.float32)


def prepared(kernels: Kernels, recipe: Recipe, dtype: str, rows: int, width: int, sm_count: int) -> Prepared:
    """Return a forced recipe with the original behind it, as the live path prepares them.

    A recipe that takes rows of this shape in no layout would show nothing, right or wrong, so no test may ask for it.
    """
    assert takes_somewhere(recipe, dtype, rows, width), f"{recipe.id} takes no {rows} x {width} of {dtype}"
    made = [kernels[row.id, dtype] for row in (original_of(recipe.form), recipe)]
    ready = prepare(*made, rows, width, sm_count)
    ready.expect_captures()
    return ready


def whole_width(recipe: Recipe, times: int = 2) -> int:
    """Return some whole steps of the CTA of a recipe that takes any number of them."""
    return times * recipe.lanes * recipe.items * recipe.phases


@frozen(eq=False)
class Given:
    """What launches take besides x and y: weights inside guard bytes, as they were made, and parameters."""

    weights: tuple[Tensor, ...] = ()
    parameters: tuple[float, ...] = ()
    before: tuple[Any, ...] = ()

    @property
    def operands(self) -> Operands:
        """What a launch takes."""
        return Operands(tuple(weight.span for weight in self.weights), self.parameters)

    @property
    def values(self) -> list[Any]:
        """What a reference takes."""
        return [*(weight.values()[0].astype(cupy.float64) for weight in self.weights), *self.parameters]

    @property
    def intact(self) -> bool:
        """Whether no byte of the weights, nor around them, has changed."""
        return all(bool(cupy.array_equal(w.raw, before)) for w, before in zip(self.weights, self.before, strict=True))


NOTHING = Given()


def given_for(
    recipe: Recipe, dtype: str, width: int, *, seed: int = 0, offset: int = 0, eps: float | None = None
) -> Given:
    """Return what a recipe's programs take at a width: random weights past a boundary, eps or the usual one."""
    made = tuple(random(dtype, 1, width, seed=seed + 7 * place + 1, offset=offset) for place in range(recipe.weights))
    parameters = tuple(PARAMETERS[name] if eps is None else eps for name in recipe.parameters)
    return Given(made, parameters, tuple(weight.raw.copy() for weight in made))


def run(ready: Prepared, x: Tensor, y: Tensor, given: Given = NOTHING) -> Verdict:
    """Run on CuPy's current stream, between two waits for the device."""
    cupy.cuda.Device().synchronize()
    verdict = ready.run(x.span, y.span, int(cupy.cuda.get_current_stream().ptr), given.operands)
    cupy.cuda.Device().synchronize()
    return verdict


def judged(
    ready: Prepared, x: Tensor, y: Tensor, expected: Verdict = Verdict.RECIPE, given: Given = NOTHING
) -> Comparison:
    """Run on disjoint buffers and check all but the values: verdict, guard bytes, gaps and the inputs.

    Returns the comparison with the FP64 reference, under the bound of the recipe that ran.
    """
    before = x.raw.copy()
    y.raw.fill(POISON)
    assert run(ready, x, y, given) is expected
    assert bool(cupy.array_equal(x.raw, before)), "the input changed"
    assert given.intact, "a weight changed"
    assert y.outside_equals(POISON), "a byte outside the output changed"
    ran = ready.chosen.recipe if expected is Verdict.RECIPE else ready.original.recipe
    return compare(cupy, ran.form, ran, x.dtype, x.values(), y.values(), given.values)


def check(ready: Prepared, x: Tensor, y: Tensor, expected: Verdict = Verdict.RECIPE, given: Given = NOTHING) -> None:
    """Run on disjoint buffers and check everything."""
    found = judged(ready, x, y, expected, given)
    assert found.right, f"{ready.chosen.recipe.id} {x.dtype} {x.rows} x {x.width}, {expected.value}: {found}"
