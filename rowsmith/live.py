"""Deciding and launching on the GPU at hand: the same `select`, fed by live receipts."""

from __future__ import annotations

import threading
from functools import cache

from attrs import define, field, frozen

from features.proof import Proved, candidates
from features.workload import Workload
from kernels import driver
from kernels.errors import LaunchError
from kernels.execute import Prepared, capturing, prepare
from kernels.guard import Span, Verdict
from kernels.operands import NO_OPERANDS, Operands
from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import original_of
from kernels.search import Found, Key, search
from kernels.target import Target
from policy.errors import ProfileError
from policy.profile import Profile
from policy.select import select
from policy.selection import Selection
from rowsmith.profiles import profile_on

# A decision holds some kilobytes; programs with ragged batches ask for ever new shapes.
MAX_DECIDED = 4096


@frozen(eq=False)
class Ready:
    """A workload that can be launched. `selection` is None where there is no profile; `found` is the live search."""

    workload: Workload
    selection: Selection | None
    found: Found | None
    prepared: Prepared


@define(eq=False)
class Dispatcher:
    """The kernels, receipts and decisions of one device. What is installed stays loaded: graphs may hold it."""

    device: int
    target: Target
    profile: Profile | None
    receipts: dict[Key, Receipt] = field(factory=dict)
    installed: dict[Key, driver.Kernel] = field(factory=dict)
    decided: dict[tuple[Workload, str | None], Ready] = field(factory=dict)
    lock: threading.Lock = field(factory=threading.Lock)

    def run(self, workload: Workload, x: Span, y: Span, stream: int, given: Operands = NO_OPERANDS) -> Verdict:
        """Launch a workload; inside a capture, what is not ready beforehand runs the original."""
        if y.bytes == 0:
            return Verdict.RECIPE
        ready = self.decided.get((workload, None))
        if ready is not None:
            return ready.prepared.run(x, y, stream, given)
        if capturing(stream):
            return self._unprepared(workload).run(x, y, stream, given)
        return self.ready(workload).prepared.run(x, y, stream, given)

    def ready(self, workload: Workload, forced: str | None = None) -> Ready:
        """Return the decision for a workload with its kernels loaded, deciding and compiling on the first call."""
        key = (workload, forced)
        with self.lock:
            if key not in self.decided:
                self._forget()
                self.decided[key] = self._decide(workload, forced)
            return self.decided[key]

    def _forget(self) -> None:
        """Make room for a decision: the oldest goes, but for those whose scratch a captured graph may hold."""
        if len(self.decided) >= MAX_DECIDED:
            kept = self.decided
            oldest = next((key for key, ready in kept.items() if ready.prepared.scratch is None), None)
            if oldest is not None:
                del kept[oldest]

    def _decide(self, workload: Workload, forced: str | None) -> Ready:
        original = self._original(workload)
        profile = self.profile
        if profile is None:
            if forced is not None:
                raise ProfileError(f"recipe {forced} cannot be judged without a profile; calibrate this machine first")
            return Ready(workload, None, None, self._prepared(workload, original, original))
        # On another target than the profile's nothing is scored, so only a forced recipe is worth loading.
        worth_visiting = forced is not None or not profile.target.differences(self.target)
        # Nor is a recipe that the profile was made without: whatever its receipt says, it is not calibrated.
        proved = [
            recipe
            for recipe, proof in candidates(workload)
            if worth_visiting
            and recipe.role != ORIGINAL
            and isinstance(proof, Proved)
            and (recipe.id == forced or (recipe.id, workload.dtype) in profile.recorded)
        ]

        def rank(recipe: Recipe, receipt: Receipt) -> float | None:
            """Let the decision itself say whether it would run this recipe if there were no other."""
            if forced is not None:
                return 0.0 if recipe.id == forced else None
            alone = {recipe.id: receipt, original.recipe.id: original.receipt}
            made = select(workload, self.target, profile, lambda row, dtype: alone.get(row.id))
            return made.candidate(recipe.id).score_us if made.decision.recipe == recipe.id else None

        found = search(proved, workload.dtype, self.device, rank, self.receipts, self.installed)
        selection = select(workload, self.target, profile, self._receipt, forced=forced)
        chosen = original if found.kernel is None else found.kernel
        if selection.decision.recipe != chosen.recipe.id:
            raise LaunchError(f"search installed {chosen.recipe.id} and the decision is {selection.decision.recipe}")
        return Ready(workload, selection, found, self._prepared(workload, original, chosen))

    def _receipt(self, recipe: Recipe, dtype: str) -> Receipt | None:
        return self.receipts.get((recipe.id, dtype))

    def _original(self, workload: Workload) -> driver.Kernel:
        recipe = original_of(candidates(workload)[0][0].form)
        key = (recipe.id, workload.dtype)
        if key not in self.installed:
            self.installed[key] = driver.load(recipe, workload.dtype, self.device)
            self.receipts[key] = self.installed[key].receipt
        return self.installed[key]

    def _unprepared(self, workload: Workload) -> Prepared:
        recipe = candidates(workload)[0][0]
        kernel = self.installed.get((recipe.id, workload.dtype))
        if kernel is None:
            raise LaunchError(
                f"{recipe.id} for {workload.dtype} is not loaded and a capture must not compile; "
                "call rowsmith.prepare, or run once, before the capture"
            )
        return self._prepared(workload, kernel, kernel)

    def _prepared(self, workload: Workload, original: driver.Kernel, chosen: driver.Kernel) -> Prepared:
        return prepare(original, chosen, workload.rows, max(workload.width, 1), self.target.sm_count)


@cache
def dispatcher(device: int) -> Dispatcher:
    """Return the dispatcher of a device, with the bundled hot profile if there is one."""
    target = driver.live_target(device)
    return Dispatcher(device, target, profile_on(target, "hot"))
