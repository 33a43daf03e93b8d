"""The ways through a row that the reduction kernels document, over any numbers and any combination.

They follow `kernels/device/reduce*.cu` index for index: with weights as numbers and plain addition a model shows that
every element enters once; with zeros and `deeper` it shows the longest chain of combinations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Combine = Callable[[Any, Any], Any]
Numbers = NDArray[Any]
WARP = 32


def tree(values: Numbers, combine: Combine) -> Numbers:
    """Halve the last axis until one is left, as `reduce::tree` does."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        values = combine(values[..., :half], values[..., half:])
    return values[..., 0]


def across(state: Numbers, lanes: int, combine: Combine) -> Numbers:
    """Combine each `lanes` neighbours by shuffles; all of them get the result."""
    index = np.arange(state.size)
    distance = lanes // 2
    while distance:
        state = combine(state, state[index ^ distance])
        distance //= 2
    return state


def cut(width: int, offset: int, vector: int) -> tuple[int, int, int]:
    """Return head, whole vectors and tail of a row that starts `offset` elements past a 16-byte boundary."""
    head = min((vector - offset) % vector, width)
    return head, (width - head) // vector, (width - head) % vector


def gather(
    x: Numbers,
    combine: Combine,
    lanes: int,
    unroll: int,
    vector: int,
    part: tuple[int, int, int, int, int],
    first_head: int = 0,
) -> Numbers:
    """Return what each lane knows of a part of a row: (head, body's first element, vectors, tail's first, tail)."""
    head, body, vectors, last, tail = part
    state = np.zeros(lanes, x.dtype)
    mine = np.arange(lanes)
    for first in range(0, max(vectors, 0), lanes * unroll):
        partial = np.zeros(lanes, x.dtype)
        for u in range(unroll):
            there = mine[first + u * lanes + mine < vectors]
            origins = body + (first + u * lanes + there) * vector
            partial[there] = combine(partial[there], tree(x[origins[:, None] + np.arange(vector)], combine))
        took = mine[first + mine < vectors]
        state[took] = combine(state[took], partial[took])
    for end in range(-(-(vector - 1) // lanes)):
        for start, count in ((first_head, head), (last, tail)):
            there = mine[mine + end * lanes < count]
            state[there] = combine(state[there], x[start + there + end * lanes])
    return state


def combined(state: Numbers, combine: Combine) -> Any:
    """Combine the lanes of a row: shuffles in a warp, then over the warps' results."""
    lanes = state.size
    state = across(state, min(lanes, WARP), combine)
    return state[0] if lanes <= WARP else across(state[::WARP].copy(), lanes // WARP, combine)[0]


def lanes_order(x: Numbers, combine: Combine, lanes: int, unroll: int, vector: int, offset: int) -> Any:
    """Reduce a row as a group of lanes does."""
    head, vectors, tail = cut(x.size, offset, vector)
    part = (head, head, vectors, head + vectors * vector, tail)
    return combined(gather(x, combine, lanes, unroll, vector, part), combine)


def cover_order(
    x: Numbers, combine: Combine, lanes: int, unroll: int, vector: int, offset: int, surrounded: bool
) -> Any:
    """Reduce a row as a group of lanes does by the vectors that cover it; what is not the row's is the identity.

    Where the tensor does not surround the row, the vectors that the row does not fill enter last, as elements.
    """
    head, _, tail = (0, 0, 0) if surrounded else cut(x.size, offset, vector)
    padded = np.zeros(-(-(offset + x.size) // vector) * vector, x.dtype)
    padded[offset + head : offset + x.size - tail] = x[head : x.size - tail]
    ends = np.concatenate([x[:head], x[x.size - tail :]])
    part = (head, 0, padded.size // vector, padded.size + head, tail)
    return combined(gather(np.concatenate([padded, ends]), combine, lanes, unroll, vector, part, padded.size), combine)


def alone_order(x: Numbers, combine: Combine) -> Any:
    """Reduce a row of at most eight elements as one lane of the original does."""
    padded = np.zeros(8, x.dtype)
    padded[: x.size] = x
    return tree(padded, combine)


def held_order(x: Numbers, combine: Combine, lanes: int, pieces: int, size: int) -> Any:
    """Reduce a row that `lanes` lanes hold whole, in pieces of `size` elements."""
    padded = np.zeros((pieces, lanes, size), x.dtype)
    padded.reshape(-1)[: x.size] = x
    state = np.zeros(lanes, x.dtype)
    for piece in padded:
        state = combine(state, tree(piece, combine))
    return combined(state, combine)


def flat_order(x: Numbers, combine: Combine) -> Any:
    """Reduce a row as one of the eight that a thread has: from the first element to the last."""
    total = x[0]
    for value in x[1:]:
        total = combine(total, value)
    return total


def split_order(
    x: Numbers, combine: Combine, lanes: int, unroll: int, vector: int, offset: int, parts: int, units: int
) -> Any:
    """Reduce a row as the CTAs of a split do, the last to arrive combining the parts."""
    head, vectors, tail = cut(x.size, offset, vector)
    size = units * (8 // vector)
    slots = np.zeros(parts, x.dtype)
    for part in range(parts):
        start = part * size
        mine = 0 if start >= vectors else min(vectors - start, size)
        ends = (head if part == 0 else 0, head + start * vector, mine)
        last = (head + vectors * vector, tail if part == parts - 1 else 0)
        slots[part] = combined(gather(x, combine, lanes, unroll, vector, (*ends, *last)), combine)
    state = np.zeros(WARP, x.dtype)
    for turn in range(-(-parts // WARP)):
        there = np.arange(min(WARP, parts - turn * WARP))
        state[there] = combine(state[there], slots[turn * WARP + there])
    return across(state, WARP, combine)[0]


def staged_order(x: Numbers, combine: Combine) -> Any:
    """Reduce a row as one thread does from shared memory."""
    part = np.zeros(4, x.dtype)
    whole = x.size // 4 * 4
    for first in range(0, whole, 4):
        part = combine(part, x[first : first + 4])
    for value in x[whole:]:
        part[0] = combine(part[0], value)
    return tree(part, combine)


def streamed_order(x: Numbers, combine: Combine, lanes: int, items: int, unroll: int, carry: str) -> Any:
    """Reduce a row in chunks of lanes x items, past whose end elements read as nothing."""
    chunk = lanes * items
    padded = np.zeros(-(-x.size // (chunk * unroll)) * chunk * unroll, x.dtype)
    padded[: x.size] = x
    carried = np.zeros((lanes, items), x.dtype)
    for values in padded.reshape(-1, lanes, items):
        if carry == "chunk_shaped":
            carried = combine(carried, values)
        elif carry == "lane":
            carried[:, 0] = combine(carried[:, 0], tree(values, combine))
        else:
            carried[:, 0] = combine(carried[:, 0], _together(tree(values, combine), combine))
    total = tree(carried, combine) if carry == "chunk_shaped" else carried[:, 0]
    return total[0] if carry == "scalar" else _together(total, combine)


def _together(state: Numbers, combine: Combine) -> Any:
    state = across(state, WARP, combine)
    if state.size == WARP:
        return state[0]
    total = state.dtype.type(0)
    for warp in state[::WARP]:
        total = combine(total, warp)
    return total
