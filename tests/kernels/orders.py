"""The orders of addition that the scan kernels document, over any numbers: FP32 values, or the depth of a chain.

They follow the comments at the head of `kernels/device/scan_*.cu`.
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


def flat_order(x: Any, add: Add, warps: int, items: int, offset: int = 0) -> Any:
    """Scan rows that a CTA of `warps` warps takes as one run, its first element `offset` past a vector boundary."""
    run = np.zeros(warps * LANES * items, x.dtype)
    run[offset : offset + x.size] = x.ravel()
    starts = np.zeros(run.size, bool)
    starts[offset :: x.shape[1]] = True
    value, start = run.reshape(-1, items), starts.reshape(-1, items)
    sums, cuts = np.zeros(len(value), x.dtype), np.zeros(len(value), bool)
    for item in range(items):
        sums = np.where(start[:, item], value[:, item], add(sums, value[:, item]))
        cuts = cuts | start[:, item]
        value[:, item] = sums
    for distance in (1, 2, 4, 8, 16):
        below = np.roll(sums, distance), np.roll(cuts, distance)
        joined = _joined(add, *below, sums, cuts)
        takes = np.arange(len(value)) % LANES >= distance
        sums, cuts = np.where(takes, joined[0], sums), np.where(takes, joined[1], cuts)
    zero, nothing = x.dtype.type(0), np.False_
    earlier, before = (zero, nothing), []
    for first in range(0, len(value), LANES):
        before += [_joined(add, *earlier, zero, nothing)[0]]
        before += [_joined(add, *earlier, sums[t], cuts[t])[0] for t in range(first, first + LANES - 1)]
        earlier = _joined(add, *earlier, sums[first + LANES - 1], cuts[first + LANES - 1])
    carried = add(value, np.array(before, x.dtype)[:, None])
    scanned = np.where(np.cumsum(start, axis=1) == 0, carried, value).ravel()
    return scanned[offset : offset + x.size].reshape(x.shape)


def _joined(add: Add, sum_before: Any, cut_before: Any, total: Any, cut: Any) -> tuple[Any, Any]:
    """Return what a run makes of the sum since the last row start, and whether there was one."""
    return np.where(cut, total, add(sum_before, total)), cut | cut_before


def lanes_order(x: Any, add: Add, lanes: int, piece: int, pieces: int, offset: int = 0) -> Any:
    """Scan a row that `lanes` lanes hold in pieces, all lanes' side by side; it begins `offset` elements into one."""
    value = np.zeros(lanes * piece * pieces, x.dtype)
    value[offset : offset + x.size] = x
    value = value.reshape(pieces, lanes, piece)
    for item in range(1, piece):
        value[:, :, item] = add(value[:, :, item], value[:, :, item - 1])
    if lanes == 1:
        return value.ravel()[offset : offset + x.size]
    group = min(lanes, LANES)
    total = value[:, :, -1].reshape(pieces, -1, group).copy()
    distance = 1
    while distance < group:
        total[..., distance:] = add(total[..., distance:], total[..., :-distance].copy())
        distance *= 2
    before = np.zeros_like(total)
    before[..., 1:] = total[..., :-1]
    carry = x.dtype.type(0)
    for p in range(pieces):
        for warp in range(lanes // group):
            if lanes > LANES or p > 0:
                before[p, warp] = add(before[p, warp], carry)
            carry = add(carry, total[p, warp, -1])
    return add(value, before.reshape(pieces, lanes)[:, :, None]).ravel()[offset : offset + x.size]


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
