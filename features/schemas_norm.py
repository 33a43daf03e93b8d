"""The feature schema of row normalizations: `rownorm/1`, a first one that no cohort has judged yet."""

from __future__ import annotations

from features.schema import MIB, Feature, Number, Point, Schema
from features.schemas_reduce import pieces, stages, steps
from features.schemas_scan import is_far
from kernels.norms import FAMILY, HOLDINGS, STREAMS
from kernels.recipe import ORIGINAL

KIB = 2**10


def _masked(p: Point) -> Number:
    covered = p.ctas * steps(p) * p.threads * p.row_phases * p.lane_bytes
    return (covered - p.storage_bytes * p.rows * p.width) / (p.sm_count * KIB)


_COLUMNS = (
    Feature("constant", "1", "what every launch costs", "1", lambda p: 1 + 0 * p.rows),
    Feature("traffic", "MiB/SM", "bytes read and written over SMs", "2 b R N / (S 2^20)", lambda p: p.traffic),
    Feature(
        "far_traffic",
        "MiB/SM",
        "the traffic again where it does not stay in L2; F = 1 if 2 b R N > 0.75 L2, else 0",
        "F 2 b R N / (S 2^20)",
        lambda p: is_far(p) * p.traffic,
    ),
    Feature(
        "batch_steps",
        "steps",
        "steps of a lane over capacity batches of C = ceil(R / B) CTAs; J = ceil(ceil(b N / q) / L) pieces of a row, V "
        "rows one after the other, f pieces a step",
        "H P, H = ceil(C / (S A)), P = V ceil(J / f), V = ceil(min(B, R) L / T)",
        lambda p: p.resident_batches * steps(p),
    ),
    Feature(
        "batch_elements",
        "elements",
        "elements that a lane takes, one after the other, over batches",
        "H V J q / b",
        lambda p: p.resident_batches * pieces(p) * p.lane_bytes // p.storage_bytes,
    ),
    Feature(
        "batch_bytes",
        "MiB",
        "what a CTA asks for, over batches",
        "H V J q T / 2^20",
        lambda p: p.resident_batches * pieces(p) * p.lane_bytes * p.threads / MIB,
    ),
    Feature("programs", "CTAs/SM", "CTAs that an SM starts", "C / S", lambda p: p.ctas / p.sm_count),
    Feature("masked", "KiB/SM", "what steps cover and no row has", "(C P q T f - b R N) / (S 2^10)", _masked),
    Feature(
        "combining",
        "stages",
        "stages from a row's lanes to one, over batches",
        "H log2 L",
        lambda p: p.resident_batches * stages(p),
    ),
)
_ROLES = dict.fromkeys(
    (ORIGINAL, *(way.name for way in HOLDINGS), *(f"streamed{threads}" for threads, _ in STREAMS)), _COLUMNS
)
ROWNORM_1 = Schema(id="rownorm/1", family=FAMILY, roles=_ROLES, needs_capacity=frozenset(_ROLES))
