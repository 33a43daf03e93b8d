"""The orders of addition that the scan kernels document, over any numbers: FP32 values, or the depth of a chain.

They follow the comments at the head of `kernels/device/scan_original.cu`, `scan_cub.cu` and `scan_split.cu`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Add = Callable[[Any, Any], Any]
LANES = 32


def fp32(one: Any, other: Any) -> Any:
    """Add as the kernels do."""
    return np.add(one, other, dtype=np.float32)


def deeper(one: Any, other: Any) -> Any:
    """Count an addition: one more than the longer of the chains that led to its operands."""
    return np.maximum(one, other) + 1


def original_order(x: Any, add: Add, warps: int, items: int, offset: int = 0) -> Any:
    """Scan a row as a group of `warps` warps does, its first element `offset` elements past a vector boundary."""
    chunks = _chunks(x, warps, items, offset)
    zero = chunks.dtype.type(0)
    carry, done = zero, []
    for chunk in chunks:
        value, inclusive = _warps(chunk, add)
        before = np.zeros_like(inclusive)
        before[:, 1:] = inclusive[:, :-1]
        if warps == 1:
            before, carry = add(before, carry), add(carry, inclusive[0, -1])
        else:
            total, earlier = zero, []
            for warp in range(warps):
                earlier.append(total)
                total = add(total, inclusive[warp, -1])
            before = add(before, add(np.array(earlier, chunks.dtype)[:, None], carry))
            carry = add(carry, total)
        done.append(add(value, before[:, :, None]))
    return np.concatenate([part.ravel() for part in done])[offset : offset + x.size]


def cub_order(x: Any, add: Add, warps: int, items: int) -> Any:
    """Scan a row as a CTA of `warps` warps does with CUB's warp scans; the row is a whole number of chunks."""
    chunks = _chunks(x, warps, items, 0)
    zero = chunks.dtype.type(0)
    carry, done = zero, []
    for chunk in chunks:
        value, inclusive = _warps(chunk, add)
        prefixes, total = [zero], inclusive[0, -1]
        for warp in range(1, warps):
            prefixes.append(add(zero, total))
            total = add(total, inclusive[warp, -1])
        prefix = np.array(prefixes, chunks.dtype)[:, None]
        before = np.repeat(prefix, LANES, axis=1)
        before[:, 1:] = add(prefix, inclusive[:, :-1])
        offset, carry = add(before, carry), add(carry, total)
        done.append(add(value, offset[:, :, None]))
    return np.concatenate([part.ravel() for part in done])[: x.size]


def split_order(x: Any, add: Add, warps: int, items: int, phases: int, offset: int = 0) -> Any:
    """Scan a row as CTAs of `warps` warps do, `phases` chunks each; its first element is `offset` past a vector."""
    part = phases * warps * LANES * items
    padded = np.zeros(-(-(x.size + offset) // part) * part, x.dtype)
    padded[offset : offset + x.size] = x
    alone = [original_order(padded[first : first + part], add, warps, items) for first in range(0, padded.size, part)]
    done = []
    for number, scanned in enumerate(alone):
        earlier = _sum_earlier([one[-1] for one in alone[:number]], add, warps)
        done.append(scanned if number == 0 else add(scanned, earlier))
    return np.concatenate(done)[offset : offset + x.size]


def _sum_earlier(totals: list[Any], add: Add, warps: int) -> Any:
    """Add the sums of earlier parts: those of a thread in turn, 32 threads by butterflies, warps in turn."""
    zero = totals[0].dtype.type(0) if totals else 0
    threads = warps * LANES
    mine = np.full(threads, zero)
    for first in range(0, len(totals), threads):
        row = np.array(totals[first : first + threads])
        mine[: row.size] = add(mine[: row.size], row)
    by_warp = mine.reshape(warps, LANES)
    for distance in (16, 8, 4, 2, 1):
        by_warp = add(by_warp, by_warp[:, np.arange(LANES) ^ distance])
    total = by_warp[0, 0]
    for warp in range(1, min(warps, -(-len(totals) // LANES))):
        total = add(total, by_warp[warp, 0])
    return total


def _chunks(x: Any, warps: int, items: int, offset: int) -> Any:
    """Return the row as (chunk, warp, lane, item), zeros where a chunk reaches past it."""
    chunk = warps * LANES * items
    padded = np.zeros(-(-(x.size + offset) // chunk) * chunk, x.dtype)
    padded[offset : offset + x.size] = x
    return padded.reshape(-1, warps, LANES, items)


def _warps(chunk: Any, add: Add) -> tuple[Any, Any]:
    """Scan serially in a thread, then the thread totals by shuffles in a warp."""
    value = chunk.copy()
    for item in range(1, value.shape[2]):
        value[:, :, item] = add(value[:, :, item], value[:, :, item - 1])
    inclusive = value[:, :, -1].copy()
    for distance in (1, 2, 4, 8, 16):
        below = inclusive[:, :-distance].copy()
        inclusive[:, distance:] = add(inclusive[:, distance:], below)
    return value, inclusive
