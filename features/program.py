"""Programs: what is computed, as small typed expressions over one row, with no name that a decision could look at."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from attrs import frozen

from features.errors import ProgramError, show
from features.expression import (
    CHANNELS,
    DIVIDE_BY_COUNT,
    LAST,
    Cast,
    Combine,
    Expression,
    Load,
    Map,
    Parameter,
    Prefix,
    Reduce,
    Store,
    Weight,
    every_node,
    operands,
)
from kernels.channels import CHANNEL_NORMS
from kernels.dtypes import STORAGE
from kernels.identity import digest
from kernels.norms import NORMS
from kernels.reductions import REDUCTIONS, Reduction


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


def normalization(dtype: str, algebra: str, weights: int = 0) -> Program:
    """A row normalized by one of `NORMALIZED`, times the first weight and plus the second, as many as there are.

    In FP32 and in any order, one cast at the end.
    """
    if not 0 <= weights <= 2:
        raise ProgramError(f"a row is normalized with 0 to 2 weights, not {weights}")
    row = NORMALIZED[algebra](Cast(Load(dtype), "float32"))
    for place, function in zip(range(weights), ("multiply", "add"), strict=False):
        row = Combine(row, Cast(Weight(dtype, place), "float32"), function)
    return Program(Store(Cast(row, dtype), dtype))


def _softmax(row: Expression) -> Expression:
    """exp(x - max x) over its sum."""
    raised = Map(Combine(row, Reduce(row, "max"), "subtract"), "exp")
    return Combine(raised, Reduce(raised), "divide")


def _over_root_mean_square(row: Expression) -> Expression:
    """x times 1 / sqrt(mean x^2 + eps)."""
    mean_square = _mean(Map(row, "square"))
    return Combine(row, Map(Combine(mean_square, Parameter("eps"), "add"), "rsqrt"), "multiply")


def _standardized(row: Expression) -> Expression:
    """x - mean x times 1 / sqrt(mean (x - mean x)^2 + eps)."""
    return _over_root_mean_square(Combine(row, _mean(row), "subtract"))


def _mean(row: Expression) -> Expression:
    return Map(Reduce(row), DIVIDE_BY_COUNT)


# By the algebra that kernels are compiled with.
NORMALIZED: dict[str, Callable[[Expression], Expression]] = {
    "softmax": _softmax,
    "rms": _over_root_mean_square,
    "layer": _standardized,
}


def channel_normalization(dtype: str, norm: str) -> Program:
    """The channels of a position over one of `DIVISORS`, in FP32 and in any order, one cast at the end."""
    row = Cast(Load(dtype, CHANNELS), "float32")
    return Program(Store(Cast(Combine(row, DIVISORS[norm](row), "divide"), dtype), dtype))


# What channels are divided by, by the name that kernels are compiled with.
DIVISORS: dict[str, Callable[[Expression], Expression]] = {
    "rms": lambda row: Map(Combine(_mean(Map(row, "square")), Parameter("eps"), "add"), "sqrt"),
    "mean_abs": lambda row: _mean(Map(row, "abs")),
    "l2": lambda row: Map(Reduce(Map(row, "square")), "sqrt"),
}


# Names for people and requests. Nothing below the request looks at them.
OPS: dict[str, Callable[[str], Program]] = {
    "scan": scan,
    **{found.op: partial(_reduction, reduction=found) for found in REDUCTIONS.values()},
    **{norm.op: partial(normalization, algebra=norm.algebra, weights=norm.weights) for norm in NORMS.values()},
    **{found.op: partial(channel_normalization, norm=found.norm) for found in CHANNEL_NORMS.values()},
}


@cache
def weights_of(program: Program) -> tuple[Weight, ...]:
    """Return the vectors that all rows share, in the order of their places.

    Raises
    ------
    ProgramError : the places are not 0, 1, … each of one dtype.
    """
    found = sorted({node for node in every_node(program.expression) if isinstance(node, Weight)}, key=_place)
    if [weight.place for weight in found] != list(range(len(found))):
        raise ProgramError(f"weights are at places {[weight.place for weight in found]}; number them from 0, one each")
    return tuple(found)


def _place(weight: Weight) -> tuple[int, str]:
    return weight.place, weight.dtype


@cache
def parameters_of(program: Program) -> tuple[str, ...]:
    """Return the names of the scalars that the launch is given, the outermost first."""
    nodes = every_node(program.expression)
    return tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, Parameter)))


@cache
def axis_of(program: Program) -> str:
    """Return what the rows of a program lie along, or raise `ProgramError` where its loads disagree."""
    found = {node.along for node in every_node(program.expression) if isinstance(node, Load)}
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
