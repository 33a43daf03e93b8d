"""About how long measuring a plan takes, told before it begins."""

from __future__ import annotations

from attrs import frozen

from calibration.plan import Plan
from calibration.records import RUNS, VALIDATION

# H200, 2026-11-30: 513 training geometries of the wide plan, of scan, SUM and MAX with eight recipes each, took 166 s.
# torch eager, torch.compile and a copy added 0.4 s to each of 144 runs; compiling 72 shapes in eight processes took 25.
RUN_S, PEERS_RUN_S, PEERS_COMPILE_S = 0.33, 0.4, 0.35
# What loading some twenty kernels and fitting take.
FIXED_S = 30.0


@frozen
class Estimate:
    """How often geometries are measured, and about how many seconds that takes on an H200."""

    training: int
    validation: int
    with_peers: int

    @property
    def measuring_s(self) -> float:
        """Recipes alone."""
        return RUN_S * (self.training + len(RUNS[VALIDATION]) * self.validation)

    @property
    def peers_s(self) -> float:
        """What peers add."""
        return self.with_peers * (PEERS_COMPILE_S + len(RUNS[VALIDATION]) * PEERS_RUN_S)

    def __str__(self) -> str:
        runs = len(RUNS[VALIDATION])
        peers = f", {self.peers_s:.0f} s more for peers on {self.with_peers} of them" if self.with_peers else ""
        return (
            f"{self.training} training geometries and {runs} runs of {self.validation} to judge them: about "
            f"{FIXED_S + self.measuring_s:.0f} s on an H200{peers}; what the journal holds is not measured again"
        )


def estimate(plan: Plan, peers: bool) -> Estimate:
    """Return the estimate of a whole plan, with peers or without."""
    joined = sum(planned.peers for planned in plan.validation) if peers else 0
    return Estimate(len(plan.training), len(plan.validation), joined)
