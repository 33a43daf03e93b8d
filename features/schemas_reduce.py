"""The feature schemas of row reductions: what a launch moves, starts, masks and combines.

R rows of N elements of b bytes, S SMs, A the queried capacity, w = 32; L lanes of each of p CTAs take a row, B rows a
CTA of T threads, f pieces of q bytes a lane at a step. Lanes are powers of two. docs/decisions/0012 has the columns
that were tried, and how these came out ahead.
"""

from __future__ import annotations

from features.schema import MIB, Feature, Number, Point, Schema, ceil_div
from kernels.recipe import ORIGINAL
from kernels.reductions import CHUNK, FLAT, SCALAR, SEVERAL, SHORT, SPLIT, STAGED, SUBGROUP

KIB = 2**10
# As of scan/2: the share of L2 that keeps what is read again.
L2_SHARE = 0.75
_MOST_LANES = 10  # 2^10 threads are the most that a CTA has
_BANKS, _BANK_BYTES = 32, 4


def constant(p: Point) -> Number:
    """1, whatever the shape."""
    return 1 + 0 * p.rows


def read_bytes(p: Point) -> Number:
    """Bytes read and written: b R (N + 1)."""
    return p.storage_bytes * p.rows * (p.width + 1)


def traffic(p: Point) -> Number:
    """MiB over SMs: b R (N + 1) / (S 2^20)."""
    return read_bytes(p) / (p.sm_count * MIB)


def is_far(p: Point) -> Number:
    """1 where what is read does not stay in L2: F."""
    return 1 * (read_bytes(p) > L2_SHARE * p.l2_bytes)


def row_pieces(p: Point) -> Number:
    """Pieces that a lane takes of its part of a row: J = ceil(ceil(b N / q) / (p L))."""
    return ceil_div(ceil_div(p.storage_bytes * p.width, p.lane_bytes), p.row_parts * p.row_lanes)


def turns(p: Point) -> Number:
    """Rows that a lane takes one after the other: V = ceil(min(B, R) L / T)."""
    at_once = p.rows_per_cta + (p.rows - p.rows_per_cta) * (p.rows < p.rows_per_cta)
    return ceil_div(at_once * p.row_lanes, p.threads)


def pieces(p: Point) -> Number:
    """Pieces that a lane takes: V J."""
    return turns(p) * row_pieces(p)


def steps(p: Point) -> Number:
    """Steps that a lane takes: P = V ceil(J / f)."""
    return turns(p) * ceil_div(row_pieces(p), p.row_phases)


def masked(p: Point) -> Number:
    """KiB past the ends of rows, and past the last row, that steps cover, over SMs."""
    covered = p.ctas * steps(p) * p.threads * p.row_phases * p.lane_bytes
    return (covered - p.storage_bytes * p.rows * p.width) / (p.sm_count * KIB)


def stages(p: Point) -> Number:
    """Halvings from a row's lanes to one: log2 L, of whole numbers alone so that arrays agree with numbers."""
    return sum(1 * (p.row_lanes >= 2**k) for k in range(1, _MOST_LANES + 1)) + 0 * p.rows


def conflicts(p: Point) -> Number:
    """Lanes of a warp that meet in a bank of shared memory, rows being bN bytes apart: c, a power of two up to w."""
    row_bytes = p.storage_bytes * p.width
    words = (row_bytes & -row_bytes) // _BANK_BYTES
    words = words + (1 - words) * (words < 1)
    return words + (_BANKS - words) * (words > _BANKS)


CONSTANT = Feature("constant", "1", "what every launch costs", "1", constant)
_TRAFFIC = Feature("traffic", "MiB/SM", "bytes read and written over SMs", "b R (N + 1) / (S 2^20)", traffic)
_FAR_TRAFFIC = Feature(
    "far_traffic",
    "MiB/SM",
    "the traffic again where it does not stay in L2; F = 1 if b R (N + 1) > 0.75 L2, else 0",
    "F b R (N + 1) / (S 2^20)",
    lambda p: is_far(p) * traffic(p),
)
BATCH_STEPS = Feature(
    "batch_steps",
    "steps",
    "steps of a lane over capacity batches of C = ceil(R / B) p CTAs; J = ceil(ceil(b N / q) / (p L)) pieces of a row, "
    "V rows one after the other, f pieces a step",
    "H P, H = ceil(C / (S A)), P = V ceil(J / f), V = ceil(min(B, R) L / T)",
    lambda p: p.resident_batches * steps(p),
)
PROGRAMS = Feature("programs", "CTAs/SM", "CTAs that an SM starts", "C / S", lambda p: p.ctas / p.sm_count)
MASKED = Feature(
    "masked", "KiB/SM", "what steps cover and no row has, over SMs", "(C P q T f - b R N) / (S 2^10)", masked
)
BATCH_ELEMENTS = Feature(
    "batch_elements",
    "elements",
    "elements that a lane takes, one after the other, over batches",
    "H V J q / b",
    lambda p: p.resident_batches * pieces(p) * p.lane_bytes // p.storage_bytes,
)
BATCH_BYTES = Feature(
    "batch_bytes",
    "MiB",
    "what a CTA asks for, over batches: one alone moves less than its SM could",
    "H V J q T / 2^20",
    lambda p: p.resident_batches * pieces(p) * p.lane_bytes * p.threads / MIB,
)
COMBINING = Feature(
    "combining",
    "stages",
    "stages from a row's lanes to one, over batches",
    "H log2 L",
    lambda p: p.resident_batches * stages(p),
)
_WAYS = (
    CONSTANT,
    _TRAFFIC,
    _FAR_TRAFFIC,
    BATCH_STEPS,
    BATCH_ELEMENTS,
    BATCH_BYTES,
    PROGRAMS,
    MASKED,
    COMBINING,
)
_PARTS = Feature(
    "parts",
    "CTAs",
    "CTAs that arrive at each row, over all rows of an SM's share",
    "p ceil(R / S)",
    lambda p: p.row_parts * ceil_div(p.rows, p.sm_count),
)
# Rows of a few elements, of which a lane takes several at once: no masks, and hardly a stage to combine in.
_OF_SPANS = (CONSTANT, _TRAFFIC, _FAR_TRAFFIC, BATCH_STEPS, PROGRAMS)
_OF_STAGES = (
    *_OF_SPANS,
    MASKED,
    Feature(
        "bank_turns",
        "turns/SM",
        "turns that warps take at shared memory, over SMs: an element a lane, c lanes at a bank; c is the largest "
        "power of two in b N / 4, from 1 to w",
        "C (T / w) N c / S",
        lambda p: p.ctas * (p.threads // p.warp_threads) * p.width * conflicts(p) / p.sm_count,
    ),
)
_ROLES = {
    **dict.fromkeys((ORIGINAL, "aligned", "rows4", "rows2", "rows1", "rows1t128"), _WAYS),
    **dict.fromkeys((f"lean{lanes}" for lanes in (8, 32, 64, 128, 256, 512, 1024)), _WAYS),
    **dict.fromkeys((SHORT, SUBGROUP, SCALAR, CHUNK), _WAYS),
    **dict.fromkeys((SEVERAL, FLAT), _OF_SPANS),
    STAGED: _OF_STAGES,
    SPLIT: (*_WAYS, _PARTS),
}
# Rows held by lanes were one role when reduce/1 was made, which no recipe has any more.
_ONE_LINE = {**_ROLES, "held": _WAYS}
REDUCE_1 = Schema(id="reduce/1", family="reduce", roles=_ONE_LINE, needs_capacity=frozenset(_ONE_LINE))

# reduce/2 has a line of coefficients for each number of lanes that hold a row.
_BY_LANES = {
    **_ROLES,
    **dict.fromkeys((f"lanes{held}" for held in ("1x4", "1x8", "8x4", "32x4", "32x8", "128x8", "256x16")), _WAYS),
}
REDUCE_2 = Schema(id="reduce/2", family="reduce", roles=_BY_LANES, needs_capacity=frozenset(_BY_LANES))
