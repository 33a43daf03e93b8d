"""The feature schemas of row reductions: what a launch moves, waits for, asks for, masks and combines.

R rows of N elements of b bytes, S SMs, A the queried capacity, w = 32; L lanes of each of p CTAs take a row, B rows a
CTA of T threads, f pieces of q bytes a lane at a step. Lanes are powers of two.
"""

from __future__ import annotations

from features.schema import MIB, Feature, Number, Point, Schema, ceil_div
from kernels.recipes import ORIGINAL, RECIPE
from kernels.reductions import CHUNK, FLAT, HELD, LEAN, SCALAR, SEVERAL, SHORT, SPLIT, STAGED, SUBGROUP

KIB = 2**10
# As of scan/2: bytes that an SM moves while one step of a CTA waits, and the share of L2 that keeps what is read again.
STEP_BYTES = 14 * 2**10
L2_SHARE = 0.75
_MOST_LANES = 10  # 2^10 threads are the most that a CTA has


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
    """Rows that a lane takes one after the other: ceil(B L / T)."""
    return ceil_div(p.rows_per_cta * p.row_lanes, p.threads)


def steps(p: Point) -> Number:
    """Steps that a lane takes: P = ceil(B L / T) ceil(J / f)."""
    return turns(p) * ceil_div(row_pieces(p), p.row_phases)


def waiting(p: Point) -> Number:
    """MiB that an SM could have moved while its CTAs wait at steps, beyond what it moves."""
    step = p.lane_bytes * p.threads * p.row_phases
    step = step + (STEP_BYTES - step) * (step < STEP_BYTES)
    excess = p.resident_batches * steps(p) * step / MIB - traffic(p)
    return excess * (excess > 0) + 0.0  # not -0.0


def loads(p: Point) -> Number:
    """Loads that warps issue, over SMs: C ceil(B L / T) J (q / load) (T / w) / S."""
    a_piece = p.lane_bytes // p.load_bytes
    return p.ctas * turns(p) * row_pieces(p) * a_piece * (p.threads / p.warp_threads) / p.sm_count


def masked(p: Point) -> Number:
    """KiB past the ends of rows, and past the last row, that steps cover, over SMs."""
    covered = p.ctas * steps(p) * p.threads * p.row_phases * p.lane_bytes
    return (covered - p.storage_bytes * p.rows * p.width) / (p.sm_count * KIB)


def stages(p: Point) -> Number:
    """Halvings from a row's lanes to one: log2 L, of whole numbers alone so that arrays agree with numbers."""
    return sum(1 * (p.row_lanes >= 2**k) for k in range(1, _MOST_LANES + 1)) + 0 * p.rows


def combining(p: Point) -> Number:
    """Stages one after the other over capacity batches: H log2 L."""
    return p.resident_batches * stages(p)


def combined(p: Point) -> Number:
    """Stages of the busiest SM's warps: ceil(C / S) ceil(B L / T) (T / w) log2 L."""
    return ceil_div(p.ctas, p.sm_count) * turns(p) * (p.threads / p.warp_threads) * stages(p)


_WAYS = (
    Feature("constant", "1", "what every launch costs", "1", constant),
    Feature("traffic", "MiB/SM", "bytes read and written over SMs", "b R (N + 1) / (S 2^20)", traffic),
    Feature(
        "far_traffic",
        "MiB/SM",
        "the traffic again where it does not stay in L2; F = 1 if b R (N + 1) > 0.75 L2, else 0",
        "F b R (N + 1) / (S 2^20)",
        lambda p: is_far(p) * traffic(p),
    ),
    Feature(
        "waiting",
        "MiB/SM",
        "what an SM could have moved while its CTAs wait at steps, beyond what it moves",
        "max(0, H P max(14336, q T f) - b R (N + 1) / S) / 2^20",
        waiting,
    ),
    Feature(
        "batches",
        "batches",
        "capacity batches of C = ceil(R / B) p CTAs",
        "H = ceil(C / (S A))",
        lambda p: p.resident_batches,
    ),
    Feature(
        "batch_steps",
        "steps",
        "steps of a lane over all batches; J = ceil(ceil(b N / q) / (p L)) pieces, f a step",
        "H P, P = ceil(B L / T) ceil(J / f)",
        lambda p: p.resident_batches * steps(p),
    ),
    Feature("programs", "CTAs/SM", "CTAs that an SM starts", "C / S", lambda p: p.ctas / p.sm_count),
    Feature("loads", "loads/SM", "loads that warps issue, over SMs", "C ceil(B L / T) J (q / load) (T / w) / S", loads),
    Feature("masked", "KiB/SM", "what steps cover and no row has, over SMs", "(C P q T f - b R N) / (S 2^10)", masked),
    Feature("combining", "stages", "stages of combination over all batches", "H log2 L", combining),
    Feature(
        "combined",
        "stages",
        "stages that the warps of the busiest SM combine in",
        "ceil(C / S) ceil(B L / T) (T / w) log2 L",
        combined,
    ),
)
_PARTS = Feature(
    "parts",
    "CTAs",
    "CTAs that arrive at each row, over all rows of an SM's share",
    "p ceil(R / S)",
    lambda p: p.row_parts * ceil_div(p.rows, p.sm_count),
)
_ROLES = (ORIGINAL, RECIPE, LEAN, SHORT, HELD, STAGED, SUBGROUP, SCALAR, CHUNK)
# Very many rows of a few elements, of which a lane takes several at once: no masks, and hardly a stage to combine in.
_OF_SPANS = tuple(f for f in _WAYS if f.name in ("constant", "traffic", "far_traffic", "batch_steps", "programs"))

REDUCE_1 = Schema(
    id="reduce/1",
    family="reduce",
    roles={**dict.fromkeys(_ROLES, _WAYS), FLAT: _OF_SPANS, SEVERAL: _OF_SPANS, SPLIT: (*_WAYS, _PARTS)},
    needs_capacity=frozenset((*_ROLES, FLAT, SEVERAL, SPLIT)),
)
