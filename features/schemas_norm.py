"""The feature schema of row normalizations: `rownorm/1`, a first one that no cohort has judged yet."""

from __future__ import annotations

from features.schema import MIB, Feature, Schema
from features.schemas_reduce import BATCH_BYTES, BATCH_ELEMENTS, BATCH_STEPS, CONSTANT, MASKED, PROGRAMS, stages
from features.schemas_scan import is_far
from kernels.norms import CLUSTERINGS, FAMILY, HOLDINGS, STREAMS
from kernels.recipe import ORIGINAL

_COLUMNS = (
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
        "stages from a row's lanes to one over batches, for each of k values combined one after the other: reductions "
        "of lanes that hold a row, or words of a state that steps carry",
        "H k log2 L",
        lambda p: p.resident_batches * p.combined * stages(p),
    ),
)
# Batches of what clusters take are of clusters. That the CTAs of one meet costs as much every time: it is in the
# constant of a launch, and in the steps of a batch.
_ROLES = dict.fromkeys(
    (
        ORIGINAL,
        *(way.name for way in HOLDINGS),
        *(f"streamed{threads}" for threads, _ in STREAMS),
        *(way.name for way in CLUSTERINGS),
    ),
    _COLUMNS,
)
ROWNORM_1 = Schema(id="rownorm/1", family=FAMILY, roles=_ROLES, needs_capacity=frozenset(_ROLES))
