"""The points of one purpose of a plan: what the journal lacks of them, and measuring that within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import frozen

from calibration.cohort import canonical
from calibration.errors import CalibrationError
from calibration.joining import Want, current, wanted
from calibration.journal import Journal, planned_key
from calibration.measure import Point, measure
from calibration.plan import Plan, Planned
from calibration.progress import tracked
from calibration.records import RUNS, Geometry
from calibration.rounds import Bench, Pick
from features.workload import Workload
from kernels.identity import digest


class OutOfTimeError(CalibrationError):
    """The budget of this call is spent; the same command goes on where it stopped."""


class Clock:
    """The budget of one call, in seconds of wall time; None is no limit."""

    def __init__(self, budget_s: float | None) -> None:
        self._end = None if budget_s is None else time.monotonic() + budget_s

    def check(self, what: str) -> None:
        """Raise `OutOfTimeError` where the budget is spent."""
        if self._end is not None and time.monotonic() > self._end:
            raise OutOfTimeError(f"the budget of this call is spent; {what}; run the same command again to go on")


@frozen(eq=False)
class Work:
    """The points of one purpose: what the journal lacks of them, and measuring that."""

    journal: Journal
    plan: Plan
    points: tuple[Planned, ...]
    purpose: str
    pick: Callable[[Workload], Pick] | None = None
    peers: bool = False

    def left(self, run: int) -> list[tuple[Planned, Want]]:
        """Return the points whose record lacks something in a run, and what."""
        found = []
        for planned in self.points:
            stored = self.journal.records.get(planned_key(planned, self.purpose, run))
            selection = None
            if stored is not None and self.pick is not None:
                selection = self.pick(stored.workload).selection.id
            want = wanted(planned, stored, selection, self.peers and planned.peers)
            if want is not None:
                found.append((planned, want))
        return found

    def do(self, bench: Bench, run: int, clock: Clock) -> None:
        """Measure what is left of a run, each point on disk before the next begins."""
        left = self.left(run)
        what = self.purpose if run == 0 else f"{self.purpose} run {run}"
        for planned, want in tracked(left, len(left), what):
            clock.check(f"{what} has {len(left)} points left at most")
            seed = int(digest([self.plan.seed, run, *planned.key])[:8], 16)
            stored = self.journal.records.get(planned_key(planned, self.purpose, run))
            record = measure(bench, Point(planned, self.plan.regime, self.purpose, run, seed), want, stored)
            if stored is None:
                self.journal.append(record)
            else:
                self.journal.supersede(record)
            bench.session.cupy.get_default_memory_pool().free_all_blocks()

    def records(self) -> tuple[Geometry, ...]:
        """Return the records of all runs in canonical order, without what was measured from another source."""
        stored = self.journal.of(self.points, self.purpose, RUNS[self.purpose])
        return canonical(record for held in stored if (record := current(held)) is not None)
