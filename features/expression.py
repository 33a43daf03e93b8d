"""The nodes of a program: typed operators over one row, what a launch gives at the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

from features.errors import ProgramError
from kernels.dtypes import storage

DIVIDE_BY_COUNT = "divide_by_count"

# What the elements of a row are adjacent along: the last axis, or the second of images, channels and positions.
LAST, CHANNELS = "last", "channels"

type_of_row = tuple[str, str]  # (dtype, "row" or "scalar")


@frozen
class Load:
    """Every element of the row, once, as stored.

    Along channels a row is what the channels of an image have at one position, so that the rows of an image interleave.
    """

    dtype: str
    along: str = LAST

    def type(self) -> type_of_row:
        return storage(self.dtype).name, "row"

    def tree(self) -> list[Any]:
        return ["load", self.dtype, *([] if self.along == LAST else [self.along])]


@frozen
class Weight:
    """A vector of as many stored elements as a row has, which all rows share; `place` numbers it among the launch's."""

    dtype: str
    place: int

    def type(self) -> type_of_row:
        return storage(self.dtype).name, "row"

    def tree(self) -> list[Any]:
        return ["weight", self.dtype, self.place]


@frozen
class Parameter:
    """A float32 scalar that the launch is given (`eps`). Its value is no part of the program, its name is."""

    name: str

    def type(self) -> type_of_row:
        return "float32", "scalar"

    def tree(self) -> list[Any]:
        return ["parameter", self.name]


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
    """An elementwise function of the operand, by its standard name (`abs`, `square`, `exp`, `rsqrt`).

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
    """An elementwise function of two operands (`add`, `subtract`, `multiply`, `divide`).

    One that is a scalar meets every element.
    """

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


Expression = Load | Weight | Parameter | Cast | Map | Prefix | Reduce | Combine | Store
_LEAVES = (Load, Weight, Parameter)


def operands(node: Expression) -> tuple[Expression, ...]:
    """Return what a node is made of: nothing of what the launch gives, two of a combination."""
    if isinstance(node, Combine):
        return node.left, node.right
    return () if isinstance(node, _LEAVES) else (node.operand,)


def every_node(node: Expression) -> Iterator[Expression]:
    """Yield a node and all that it is made of, each as often as it stands there: outermost first, left to right."""
    level: tuple[Expression, ...] = (node,)
    while level:
        yield from level
        level = tuple(part for made in level for part in operands(made))


def expression_from_tree(tree: Any) -> Expression:
    """Read an expression back from its tree; a tree of nothing known raises `KeyError`, `IndexError` or `TypeError`."""
    return _READERS[tree[0]](tree)


def _is_ordered(word: str) -> bool:
    return word == "ordered"


_READERS: dict[str, Callable[[Any], Expression]] = {
    "load": lambda tree: Load(tree[1], *tree[2:]),
    "weight": lambda tree: Weight(tree[1], tree[2]),
    "parameter": lambda tree: Parameter(tree[1]),
    "cast": lambda tree: Cast(expression_from_tree(tree[2]), tree[1]),
    "map": lambda tree: Map(expression_from_tree(tree[2]), tree[1]),
    "prefix": lambda tree: Prefix(expression_from_tree(tree[3]), tree[1], _is_ordered(tree[2])),
    "reduce": lambda tree: Reduce(expression_from_tree(tree[4]), tree[1], tree[2], _is_ordered(tree[3])),
    "combine": lambda tree: Combine(expression_from_tree(tree[2]), expression_from_tree(tree[3]), tree[1]),
    "store": lambda tree: Store(expression_from_tree(tree[2]), tree[1]),
}
