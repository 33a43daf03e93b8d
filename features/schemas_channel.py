"""The feature schema of channel norms: `channelnorm/1`, a first one that no cohort has judged yet.

R positions of N channels of b bytes, I of them an image, S SMs, A the queried capacity; a CTA of T threads takes B
positions, G threads each of them, V adjacent ones a thread and K channels at once.
"""

from __future__ import annotations

from features.schema import MIB, Feature, Number, Point, Schema, ceil_div
from features.schemas_reduce import COMBINING, CONSTANT, KIB, L2_SHARE, PROGRAMS
from features.schemas_scan import BATCHES, FAR_TRAFFIC, TRAFFIC
from kernels.channels import FAMILY, REREAD, RETAINED, VECTOR, WAYS, WIDE
from kernels.recipe import ORIGINAL

SECTOR_BYTES = 32


def positions(p: Point) -> Number:
    """Adjacent positions that a thread takes: V = B G / T."""
    return p.rows_per_cta * p.row_lanes // p.threads


def serial(p: Point) -> Number:
    """Channels that a thread takes of a position, one after the other: J = ceil(N / G)."""
    return ceil_div(p.width, p.row_lanes)


def steps(p: Point) -> Number:
    """Times that a thread waits for what it asks for: P = ceil(J / K)."""
    return ceil_div(serial(p), p.row_phases // positions(p))


def run_bytes(p: Point) -> Number:
    """Adjacent bytes of a channel that a CTA reads together: q = b min(I, B)."""
    shorter = p.inner + (p.rows_per_cta - p.inner) * (p.rows_per_cta < p.inner)
    return p.storage_bytes * shorter


def sector_bytes(p: Point) -> Number:
    """Bytes of the sectors that such a run lies in, one more where channels do not begin on a boundary of them."""
    ragged = 1 * (p.storage_bytes * p.inner % SECTOR_BYTES != 0)
    return SECTOR_BYTES * (ceil_div(run_bytes(p), SECTOR_BYTES) + ragged)


def resident_bytes(p: Point) -> Number:
    """What the CTAs that run at once read, of all SMs and at most all of x: what is read again has to stay in L2."""
    at_once = p.sm_count * p.resident_ctas_per_sm * p.rows_per_cta
    held = p.rows + (at_once - p.rows) * (at_once < p.rows)
    return p.storage_bytes * held * p.width


def reread(p: Point) -> Number:
    """MiB read again over SMs: b R N / (S 2^20)."""
    return p.traffic / 2


def masked(p: Point) -> Number:
    """KiB that steps cover and no position or channel has, over SMs."""
    covered = p.ctas * p.threads * positions(p) * steps(p) * (p.row_phases // positions(p))
    return p.storage_bytes * (covered - p.rows * p.width) / (p.sm_count * KIB)


_ONCE = (
    CONSTANT,
    TRAFFIC,
    FAR_TRAFFIC,
    Feature(
        "ragged",
        "MiB/SM",
        "what sectors hold beside the traffic: a CTA reads q = b min(I, B) adjacent bytes of a channel, in s sectors",
        "2 b R N (32 s - q) / q / (S 2^20), s = ceil(q / 32) + (1 if b I is no multiple of 32)",
        lambda p: p.traffic * (sector_bytes(p) - run_bytes(p)) / run_bytes(p),
    ),
    BATCHES,
    Feature(
        "batch_steps",
        "steps",
        "times that a thread waits for what it asks for, over capacity batches of C = ceil(R / B) CTAs",
        "H P, H = ceil(C / (S A)), P = ceil(J / K), J = ceil(N / G)",
        lambda p: p.resident_batches * steps(p),
    ),
    Feature(
        "batch_elements",
        "elements",
        "elements that a thread takes, one after the other, over batches",
        "H J V",
        lambda p: p.resident_batches * serial(p) * positions(p),
    ),
    Feature(
        "batch_bytes",
        "MiB",
        "what a CTA asks for at once, over the steps of batches: one alone moves less than its SM could",
        "H P T V K b / 2^20",
        lambda p: p.resident_batches * steps(p) * p.threads * p.row_phases * p.storage_bytes / MIB,
    ),
    PROGRAMS,
    Feature(
        "masked", "KiB/SM", "what steps cover and no position has, over SMs", "b (C T V P K - R N) / (S 2^10)", masked
    ),
)
_TWICE = (
    *_ONCE,
    Feature("reread", "MiB/SM", "bytes read again over SMs", "b R N / (S 2^20)", reread),
    Feature(
        "far_reread",
        "MiB/SM",
        "the bytes read again where CTAs read more at once than stays in L2; F = 1 if b min(R, S A B) N > 0.75 L2",
        "F b R N / (S 2^20)",
        lambda p: reread(p) * (resident_bytes(p) > L2_SHARE * p.l2_bytes),
    ),
)
_BY_TEMPLATE = {
    "channel_tile.cu": (*_ONCE, COMBINING),
    "channel_steps.cu": (*_TWICE, COMBINING),
}
_ROLES = {
    **dict.fromkeys((ORIGINAL, VECTOR, REREAD), _TWICE),
    **dict.fromkeys((RETAINED, WIDE), _ONCE),
    **{way.role: _BY_TEMPLATE[way.template] for way in WAYS if way.template in _BY_TEMPLATE},
}
CHANNELNORM_1 = Schema(id="channelnorm/1", family=FAMILY, roles=_ROLES, needs_capacity=frozenset(_ROLES))
