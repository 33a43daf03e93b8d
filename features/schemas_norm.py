"""The feature schema of row normalizations: `rownorm/1`, a first one that no cohort has judged yet."""

from __future__ import annotations

from features.schema import Feature, Schema
from features.schemas_reduce import BATCH_BYTES, BATCH_ELEMENTS, BATCH_STEPS, COMBINING, CONSTANT, MASKED, PROGRAMS
from features.schemas_scan import is_far
from kernels.norms import FAMILY, HOLDINGS, STREAMS
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
    COMBINING,
)
_ROLES = dict.fromkeys(
    (ORIGINAL, *(way.name for way in HOLDINGS), *(f"streamed{threads}" for threads, _ in STREAMS)), _COLUMNS
)
ROWNORM_1 = Schema(id="rownorm/1", family=FAMILY, roles=_ROLES, needs_capacity=frozenset(_ROLES))
