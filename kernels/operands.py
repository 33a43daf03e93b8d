"""What a launch is given besides x and y, and the order of a kernel's arguments.

A kernel takes, in this order:

    x, y, the weights by their places, the workspace where its template has one      pointers
    rows, width, row pitch of x, row pitch of y, rows that interleave where any do   64-bit integers
    the parameters in the program's order                                            float
    the numbers that its launch adds, such as the form of an original                32-bit integers
"""

from __future__ import annotations

import ctypes
from typing import Any

from attrs import frozen

from kernels.errors import LaunchError
from kernels.guard import Span, span
from kernels.launch import LaunchShape
from kernels.recipe import Recipe

# What people call the weights, by place.
WEIGHT_NAMES = ("gamma", "beta")


@frozen
class Operands:
    """Vectors that all rows share, each a span of one row, and scalars.

    A graph that is captured holds the parameters as they are, and the weights' addresses.
    """

    weights: tuple[Span, ...] = ()
    parameters: tuple[float, ...] = ()


NO_OPERANDS = Operands()


def weight(address: int, width: int, dtype: str) -> Span:
    """Return the span of a vector of `width` elements."""
    return span(address, 1, width, width, dtype)


def judge_operands(recipe: Recipe, x: Span, y: Span, given: Operands) -> None:
    """Raise `LaunchError` for operands that are not those of the recipe, of another length than a row, or written over.

    The kernel writes y and reads weights whenever it likes, so y must not overlap them.
    """
    if (recipe.weights, len(recipe.parameters)) != (len(given.weights), len(given.parameters)):
        raise LaunchError(
            f"{recipe.id} takes {recipe.weights} weights and the parameters {list(recipe.parameters)}, and is given "
            f"{len(given.weights)} weights and {len(given.parameters)} parameters"
        )
    for place, vector in enumerate(given.weights):
        name = WEIGHT_NAMES[place]
        if (vector.rows, vector.width, vector.element_bytes) != (1, x.width, x.element_bytes):
            raise LaunchError(
                f"{name} has {vector.width} elements of {vector.element_bytes} bytes; it must have {x.width} of "
                f"{x.element_bytes}, one for each of a row"
            )
        if vector.overlaps(y):
            raise LaunchError(
                f"{name} overlaps out, which is written while {name} is read; write the result to memory of its own"
            )


def arguments(
    x: Span, y: Span, given: Operands, shape: LaunchShape, workspace: int | None, *, interleaved: bool = False
) -> list[ctypes.c_void_p | ctypes.c_longlong | ctypes.c_float | ctypes.c_int]:
    """Return a launch's arguments, in the order that this module's first lines give."""
    addresses: list[int] = [x.address, y.address, *(vector.address for vector in given.weights)]
    if workspace is not None:
        addresses.append(workspace)
    values: list[Any] = [
        *map(ctypes.c_void_p, addresses),
        *map(ctypes.c_longlong, (x.rows, x.width, x.pitch, y.pitch, *([x.inner] if interleaved else []))),
        *map(ctypes.c_float, given.parameters),
        *map(ctypes.c_int, shape.extra),
    ]
    return values
