"""The feature schema of row normalizations: `rownorm/1`.

Kernels of one way of moving rows share a line, whatever their lanes: each alone is legal at a few shapes, and a fit of
those alone answers for nothing beside them. On 676 training geometries of an H200 (2026-12-01; a fifth held out at a
time) a line a recipe left a regret of 1.18 in the geometric mean, and these 1.015 (docs/facts.md).

R rows of N elements of b bytes, S SMs, A the queried capacity; L lanes of each of p CTAs take a row, T threads a CTA.
"""

from __future__ import annotations

from features.schema import MIB, Feature, Number, Point, Schema
from features.schemas_reduce import (
    BATCH_BYTES,
    BATCH_ELEMENTS,
    BATCH_STEPS,
    CONSTANT,
    MASKED,
    PROGRAMS,
    stages,
    steps,
)
from features.schemas_scan import is_far
from kernels.norms import CLUSTERINGS, FAMILY, HOLDINGS, STREAMS
from kernels.recipe import ORIGINAL

_VECTOR_BYTES = 16
# What is read again comes from L2 where CTAs read no more than this share of it meanwhile, and from DRAM where they
# read that and the second share; between, some of it does. A single threshold, from 0.2 to 0.75, left more regret.
NEAR_SHARE, FAR_SHARE = 0.2, 0.5
KILO = 2**14


def covered(p: Point) -> Number:
    """Elements that steps cover: C P T f."""
    return p.ctas * steps(p) * p.threads * p.row_phases * p.lane_bytes // p.storage_bytes


def ragged(p: Point) -> Number:
    """1 where rows are no whole 16-byte vectors: g."""
    return 1 * (p.width * p.storage_bytes % _VECTOR_BYTES != 0)


def resident_bytes(p: Point) -> Number:
    """Bytes of the rows that are taken at once: b N min(R, rows of all CTAs that run at once)."""
    at_once = p.resident_clusters or p.sm_count * p.resident_ctas_per_sm * p.rows_per_cta
    held = p.rows + (at_once - p.rows) * (at_once < p.rows)
    return p.storage_bytes * held * p.width


def reread_far(p: Point) -> Number:
    """MiB over SMs that are read again from DRAM: E b R N / (S 2^20)."""
    beyond = resident_bytes(p) / p.l2_bytes - NEAR_SHARE
    beyond = beyond * (beyond > 0)
    share = (beyond + (FAR_SHARE - beyond) * (beyond > FAR_SHARE)) / FAR_SHARE
    return share * p.traffic / 2 + 0.0  # not -0.0


def batch_elements(p: Point) -> Number:
    """Elements that a lane takes, over batches."""
    return BATCH_ELEMENTS.of(p)


_HELD = (
    CONSTANT,
    Feature("traffic", "MiB/SM", "bytes read and written over SMs", "2 b R N / (S 2^20)", lambda p: p.traffic),
    Feature(
        "far_traffic",
        "MiB/SM",
        "the traffic again where it does not stay in L2; F = 1 if 2 b R N > 0.75 L2, else 0",
        "F 2 b R N / (S 2^20)",
        lambda p: is_far(p) * p.traffic,
    ),
    BATCH_STEPS,
    BATCH_ELEMENTS,
    BATCH_BYTES,
    PROGRAMS,
    MASKED,
    Feature(
        "weight_traffic",
        "MiB/SM",
        "bytes of g weights that CTAs, p of which share a row, read over SMs, from L2 or nearer",
        "C g b N / (p S 2^20)",
        lambda p: p.ctas * p.weights * p.storage_bytes * p.width / (p.row_parts * p.sm_count * MIB),
    ),
    Feature(
        "combining",
        "stages",
        "stages from a row's lanes to one over batches, for each of k words that they combine",
        "H k log2 L",
        lambda p: p.resident_batches * p.combined * stages(p),
    ),
    Feature(
        "work",
        "2^14 instructions/SM",
        "instructions on elements, i on each, masked ones too, over SMs",
        "i C P T f / (S 2^14)",
        lambda p: p.work * covered(p) / (p.sm_count * KILO),
    ),
)
# Weights of a covered row lie otherwise between boundaries than it does, and are read element by element.
_COVERED = (
    *_HELD,
    Feature(
        "batch_weighed",
        "elements",
        "elements of weights that a lane reads, one after the other, over batches",
        "g H V J q / b",
        lambda p: p.weights * batch_elements(p),
    ),
    Feature(
        "weighed",
        "2^14 elements/SM",
        "elements of weights that are read, masked ones too, over SMs",
        "g C P T f / (S 2^14)",
        lambda p: p.weights * covered(p) / (p.sm_count * KILO),
    ),
)
_CLUSTERED = (
    *_HELD,
    Feature(
        "ragged_elements",
        "elements",
        "elements that a lane takes, over batches, where rows are no whole vectors; G = 1 there, else 0",
        "G H V J q / b",
        lambda p: ragged(p) * batch_elements(p),
    ),
    Feature(
        "ragged_weighed",
        "elements",
        "elements of weights that a lane reads there, one after the other, over batches",
        "G g H V J q / b",
        lambda p: ragged(p) * p.weights * batch_elements(p),
    ),
)
_TWICE = (
    *_CLUSTERED,
    Feature("reread", "MiB/SM", "bytes read again over SMs", "b R N / (S 2^20)", lambda p: p.traffic / 2),
    Feature(
        "reread_far",
        "MiB/SM",
        "those that come from DRAM; K rows are taken at once, and E rises from 0 at 0.2 L2 to 1 at 0.7 L2",
        "E b R N / (S 2^20), E = min(1, max(0, b N min(R, K) / L2 - 0.2) / 0.5)",
        reread_far,
    ),
)
_TWICE_ROLES = (ORIGINAL, *(f"streamed{threads}" for threads, _ in STREAMS))
_ROLES = {
    **dict.fromkeys(_TWICE_ROLES, _TWICE),
    **{way.role: _HELD if way.moves == "vectors" else _COVERED for way in HOLDINGS},
    **{way.role: _CLUSTERED if way.held else _TWICE for way in CLUSTERINGS},
}
ROWNORM_1 = Schema(id="rownorm/1", family=FAMILY, roles=_ROLES, needs_capacity=frozenset(_ROLES))
