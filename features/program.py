"""Programs: what is computed, as small typed expressions over one row, with no name that a decision could look at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from attrs import frozen

from features.errors import ProgramError, show
from kernels.dtypes import STORAGE, storage
from kernels.identity import digest
from kernels.reductions import REDUCTIONS, Reduction

DIVIDE_BY_COUNT = "divide_by_count"

# What the elements of a row are adjacent along: the last axis, or the second of images, channels and positions.
LAST, CHANNELS = "last", "channels"

type_of_row = tuple[str, str]  # (dtype, "row" or "scalar")


@frozen
class Load:
    """Every element of the row, once, as stored. Along channels a row is what the channels of an image have at one
    position, so that the rows of an image interleave.
    """

    dtype: str
    along: str = LAST

    def type(self) -> type_of_row:
        return storage(self.dtype).name, "row"

    def tree(self) -> list[Any]:
        return ["load", self.dtype, *([] if self.along == LAST else [self.along])]


@frozen
class Cast:
    """The operand in another dtype, rounded to nearest even."""

    operand: Expression
    dtype: str

    def type(self) -> type_of_row:
        return storage(self.dtype).name, self.operand.type()[1]

    def tree(self) -> list[Any]:
        return ["cast", self.dtype, self.operand.tree()]


@frozen
class Map:
    """An elementwise function of the operand, by its standard name (`abs`, `square`, `exp`).

    `divide_by_count` of a reduction divides by the elements that entered it: all of them, or those that are numbers.
    """

    operand: Expression
    function: str

    def type(self) -> type_of_row:
        return self.operand.type()

    def tree(self) -> list[Any]:
        return ["map", self.function, self.operand.tree()]


@frozen
class Prefix:
    """The inclusive prefix of the operand along the row. `ordered` demands strictly left-to-right additions."""

    operand: Expression
    algebra: str = "sum"
    ordered: bool = False

    def type(self) -> type_of_row:
        dtype, extent = self.operand.type()
        if extent != "row":
            raise ProgramError(f"a prefix needs a row, and its operand is a {extent}")
        return dtype, extent

    def tree(self) -> list[Any]:
        return ["prefix", self.algebra, "ordered" if self.ordered else "unordered", self.operand.tree()]


@frozen
class Reduce:
    """One number from a row. `ordered` demands strictly left-to-right combination.

    Of MAX and MIN -0.0 is less than +0.0. A NaN is the result (`propagate`), or is left out (`suppress`): a row of NaN
    alone, or of nothing, then gives the identity.
    """

    operand: Expression
    algebra: str = "sum"
    nan: str = "propagate"
    ordered: bool = False

    def type(self) -> type_of_row:
        dtype, extent = self.operand.type()
        if extent != "row":
            raise ProgramError(f"a reduction needs a row, and its operand is a {extent}")
        return dtype, "scalar"

    def tree(self) -> list[Any]:
        order = "ordered" if self.ordered else "unordered"
        return ["reduce", self.algebra, self.nan, order, self.operand.tree()]


@frozen
class Combine:
    """An elementwise function of two operands (`subtract`, `divide`); one that is a scalar meets every element."""

    left: Expression
    right: Expression
    function: str

    def type(self) -> type_of_row:
        (dtype, extent), (other, _) = self.left.type(), self.right.type()
        if dtype != other:
            raise ProgramError(f"{self.function} needs operands of one dtype, and has {dtype} and {other}")
        return dtype, "row" if "row" in (extent, self.right.type()[1]) else "scalar"

    def tree(self) -> list[Any]:
        return ["combine", self.function, self.left.tree(), self.right.tree()]


@frozen
class Store:
    """The result, one element written for each element of the operand."""

    operand: Expression
    dtype: str

    def type(self) -> type_of_row:
        dtype, extent = self.operand.type()
        if dtype != self.dtype:
            raise ProgramError(f"a store of {self.dtype} needs a cast; its operand is {dtype}")
        return dtype, extent

    def tree(self) -> list[Any]:
        return ["store", self.dtype, self.operand.tree()]


Expression = Load | Cast | Map | Prefix | Reduce | Combine | Store


@frozen(cache_hash=True)
class Program:
    """A typed expression. Two programs with equal expressions are one program, whatever people call them."""

    expression: Store

    def tree(self) -> list[Any]:
        """Return the expression as nested lists, the form that is stored and digested."""
        return self.expression.tree()

    def digest(self) -> str:
        """Return the SHA-256 of the expression."""
        return _digest_of(self)

    @property
    def dtype(self) -> str:
        """The storage dtype of the result."""
        return self.expression.dtype


@cache
def _digest_of(program: Program) -> str:
    """There are as many programs as ops and dtypes: few."""
    return digest({"schema": "rowsmith.program/1", "expression": program.tree()})


def scan(dtype: str) -> Program:
    """Inclusive sum along the row: FP32 additions in any order, one cast at the end."""
    return Program(Store(Cast(Prefix(Cast(Load(dtype), "float32")), dtype), dtype))


def _reduction(dtype: str, reduction: Reduction) -> Program:
    """A reduction along the row in FP32 and in any order, one cast at the end. A mean of no numbers is NaN."""
    nan = "suppress" if reduction.suppress else "propagate"
    reduced: Expression = Reduce(Cast(Load(dtype), "float32"), reduction.algebra, nan)
    if reduction.mean:
        reduced = Map(reduced, DIVIDE_BY_COUNT)
    return Program(Store(Cast(reduced, dtype), dtype))


def softmax(dtype: str) -> Program:
    """exp(x - max x) over its sum along the row, in FP32 and in any order, one cast at the end."""
    row = Cast(Load(dtype), "float32")
    raised = Map(Combine(row, Reduce(row, "max"), "subtract"), "exp")
    return Program(Store(Cast(Combine(raised, Reduce(raised), "divide"), dtype), dtype))


# Names for people and requests. Nothing below the request looks at them.
OPS: dict[str, Callable[[str], Program]] = {
    "scan": scan,
    **{found.op: partial(_reduction, reduction=found) for found in REDUCTIONS.values()},
    "softmax": softmax,
}


def operands(node: Expression) -> tuple[Expression, ...]:
    """Return what a node is made of: nothing of a load, two of a combination."""
    if isinstance(node, Combine):
        return node.left, node.right
    return () if isinstance(node, Load) else (node.operand,)


@cache
def axis_of(program: Program) -> str:
    """Return what the rows of a program lie along, or raise `ProgramError` where its loads disagree."""
    found: set[str] = set()
    left: list[Expression] = [program.expression]
    while left:
        node = left.pop()
        if isinstance(node, Load):
            found.add(node.along)
        left += operands(node)
    if found not in ({LAST}, {CHANNELS}):
        raise ProgramError(f"the loads of a program are all along {LAST} or all along {CHANNELS}, not {sorted(found)}")
    return found.pop()


def takes_empty_rows(program: Program) -> bool:
    """Tell whether a row without elements has a result: not where a division by their count or an extreme is asked.

    Where the result is a row, that of an empty one is empty.
    """
    return program.expression.type()[1] == "row" or _is_there_of_nothing(program.expression)


def _is_there_of_nothing(node: Expression) -> bool:
    if isinstance(node, Map) and node.function == DIVIDE_BY_COUNT:
        return False
    if isinstance(node, Reduce) and node.algebra != "sum":
        return False
    return all(map(_is_there_of_nothing, operands(node)))


def program_of(op: str, dtype: str) -> Program:
    """Return the program that the op name stands for, or raise `ProgramError` listing the names there are."""
    if not isinstance(op, str) or op not in OPS:
        raise ProgramError(f"op {show(op)} is not known; use one of {', '.join(OPS)}")
    if not isinstance(dtype, str) or dtype not in STORAGE:
        raise ProgramError(f"dtype {show(dtype)} is not supported by {op}; use one of {', '.join(STORAGE)}")
    return _built(OPS[op], dtype)


@cache
def _built(build: Callable[[str], Program], dtype: str) -> Program:
    """Return one value for all requests: what is known of a program is found faster by identity than by comparison."""
    program = build(dtype)
    program.expression.type()
    return program
