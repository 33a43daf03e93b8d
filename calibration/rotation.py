"""How many buffer pairs a launch rotates through, so that a cold one never finds its data in L2."""

from __future__ import annotations

from calibration.errors import PlanError
from policy.judging import COLD, HOT, REGIMES

__all__ = ["COLD", "HOT"]

# Smaller footprints are not measured cold: at 1 MiB it takes 121 pairs to move twice the 60 MiB of an H200's L2, and a
# graph holds 256 launches at most.
COLD_FOOTPRINT_BYTES = 2**20
# What a launch is kept away from its own data by, over the size of L2.
ROTATED_L2 = 2


def judge_regime(regime: str) -> None:
    """Raise `PlanError` for a regime that nothing is measured in."""
    if regime not in REGIMES:
        raise PlanError(f"regime {regime!r} is not measured; use {' or '.join(REGIMES)}")


def pairs_needed(regime: str, footprint_bytes: int, l2_bytes: int) -> int:
    """Return how many input and output pairs of a footprint a graph's launches take in turn; one where data stay hot.

    Between two uses of a pair all others are used, which together are twice L2 or larger.
    """
    if regime == HOT:
        return 1
    return 1 + -(-ROTATED_L2 * l2_bytes // footprint_bytes)


def whole_turns(launches: int, pairs: int) -> int:
    """Return the next number of launches that uses every pair equally often: a replay then begins with the next one."""
    return -(-launches // pairs) * pairs
