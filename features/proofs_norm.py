"""The proofs of row normalizations: that the expression is one that the kernels compute."""

from __future__ import annotations

from collections.abc import Callable

from features.claim import Claim
from features.program import normalization
from features.workload import Workload
from features.workloads import Workloads
from kernels.recipe import ORIGINAL, Recipe


def closed_softmax(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """exp(x - max x) over its sum, unordered, in FP32 over the whole row, and stored in the dtype that is loaded."""
    dtype = work.program.dtype
    return Claim(
        (
            (
                "not_closed_softmax",
                work.program == normalization(dtype, "softmax"),
                lambda: "the stored value is not exp(x - max x) / sum exp(x - max x) of one row in float32",
            ),
        ),
        lambda: {
            "state": "(largest element, sum of exponentials)",
            "state_bytes": 8,
            "arithmetic": "float32",
            "loads_per_element": 1 if recipe.role != ORIGINAL else 2,
            "stores_per_element": 1,
        },
    )


NORM_PROOFS: dict[str, Callable[[Workload | Workloads, Recipe], Claim]] = {"closed_softmax": closed_softmax}
