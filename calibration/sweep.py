"""The sweep: receipts, training, fit, freeze, validation and packet, each step resumed from the journal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from calibration import peers as torch_peers
from calibration.assemble import contents
from calibration.cohort import canonical, canonical_receipts
from calibration.environment import environment, throttle_probe
from calibration.errors import CalibrationError
from calibration.fit import fit_cohort
from calibration.freeze import freeze
from calibration.gpu import Session
from calibration.journal import Journal
from calibration.measure import judge_regime, measure
from calibration.packet import write
from calibration.packetjson import from_json, to_json
from calibration.plan import Plan, Planned, draw_plan
from calibration.progress import tracked
from calibration.records import RUNS, TRAINING, VALIDATION, Geometry
from calibration.rounds import Bench, Pick
from features.workload import Workload
from kernels import driver
from kernels.errors import CompileError
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.recipes import ORIGINAL, RECIPES, Recipe
from kernels.source import identity
from policy.exclusion import exclusion
from policy.profile import Profile, profile_from_document

MEMORY_SHARE = 0.5
# Makes the real dispatch path for a frozen profile: rowsmith.live hands it in, since imports go the other way.
Dispatch = Callable[[Profile], Callable[[Workload], Pick]]
EMPTY = Recipe("baseline.empty", "none", "baseline", "empty.cu", 1, 1, 1, (), "bit_equal")


@frozen
class Options:
    """What a user may say about a calibration."""

    ops: tuple[str, ...]
    name: str
    folder: Path
    out: Path
    seed: int = 20261130
    peers: bool = True
    budget_s: float | None = None


class OutOfTimeError(CalibrationError):
    """The budget of this call is spent; the same command goes on where it stopped."""


def calibrate(options: Options, dispatch: Dispatch) -> Path | None:
    """Run a calibration from plan to packet and return the packet's path.

    Everything measured is in the folder's journal: a call that was killed, or that raised `OutOfTimeError` at the end
    of its budget, is continued by the same call.
    """
    device = driver.current_device()
    target = driver.live_target(device)
    plan = draw_plan(options.ops, options.seed, target, _memory_bytes(device))
    judge_regime(plan.regime)
    journal = Journal(options.folder / "journal.jsonl", plan.digest)
    where = _kept(options.folder / "environment.json", lambda: environment(target, options.seed, device))
    if where["target"] != {**target.facts(), "label": target.label}:
        raise CalibrationError(
            f"{options.folder} was begun on another target; another GPU is another cohort and folder"
        )
    kernels, receipts, excluded = load_all(plan, device)
    known = canonical_receipts(receipts)
    bench = Bench(
        session=Session(),
        kernels=kernels,
        excluded=excluded,
        empty=driver.load(EMPTY, "float32", device),
        sm_count=target.sm_count,
        throttled=throttle_probe(device),
    )
    clock = _Clock(options.budget_s)
    _measure_all(journal, bench, plan.training, TRAINING, 0, plan, clock)
    cohort = canonical(journal.of(TRAINING, RUNS[TRAINING]))
    fits = fit_cohort(cohort, known, target, environment=digest(where), source_commit=where["commit"])
    document = freeze(options.name, plan.regime, target, fits, known)
    document = _kept(options.folder / "profile.json", lambda: document)
    profile = profile_from_document(document)
    pick = dispatch(profile)
    judging = evolve(bench, pick=pick, peers=_peers(options, plan, journal))
    for run in RUNS[VALIDATION]:
        _measure_all(journal, judging, plan.validation, VALIDATION, run, plan, clock)
    judged = canonical(journal.of(VALIDATION, RUNS[VALIDATION]))
    selections, search_ns = _selections(judged, pick)
    searched = _kept(options.folder / "searches.json", lambda: {"samples_ns": search_ns})
    found = contents(plan, where, target, known, cohort, fits, document, judged, selections, searched["samples_ns"])
    write(options.out, options.name, found)
    return options.out


def load_all(
    plan: Plan, device: int
) -> tuple[dict[tuple[str, str], driver.Kernel], list[Receipt], dict[tuple[str, str], tuple[str, str]]]:
    """Load and query every recipe of the plan's forms: kernels, every receipt, and why the unusable ones are."""
    kernels: dict[tuple[str, str], driver.Kernel] = {}
    receipts: list[Receipt] = []
    excluded: dict[tuple[str, str], tuple[str, str]] = {}
    target = driver.live_target(device)
    for recipe in _recipes(plan):
        for dtype in recipe.dtypes:
            try:
                kernel = driver.load(recipe, dtype, device)
            except CompileError as error:
                receipts.append(driver.failed_receipt(recipe, dtype, device, error))
                excluded[recipe.id, dtype] = ("failed_compile", str(error))
                continue
            receipts.append(kernel.receipt)
            made_from = identity(recipe, dtype)
            unclean = exclusion(recipe, dtype, kernel.receipt, kernel.receipt, made_from, target)
            if unclean is None or recipe.role == ORIGINAL:
                kernels[recipe.id, dtype] = kernel
            else:
                excluded[recipe.id, dtype] = ("excluded", f"{unclean.code}: {unclean.fact}")
    return kernels, receipts, excluded


def _measure_all(
    journal: Journal, bench: Bench, points: Sequence[Planned], purpose: str, run: int, plan: Plan, clock: _Clock
) -> None:
    missing = [p for p in points if (purpose, run, p.form, p.dtype, p.rows, p.width) not in journal.records]
    what = purpose if run == 0 else f"{purpose} run {run}"
    for point in tracked(missing, len(missing), what):
        clock.check(f"{what} has {len(missing)} points left at most")
        seed = int(digest([plan.seed, run, *point.key])[:8], 16)
        journal.append(measure(bench, point, plan.regime, purpose, run, seed))
        bench.session.cupy.get_default_memory_pool().free_all_blocks()


class _Clock:
    """The budget of one call, in seconds of wall time; None is no limit."""

    def __init__(self, budget_s: float | None) -> None:
        self._end = None if budget_s is None else time.monotonic() + budget_s

    def check(self, what: str) -> None:
        if self._end is not None and time.monotonic() > self._end:
            raise OutOfTimeError(f"the budget of this call is spent; {what}; run the same command again to go on")


def _peers(options: Options, plan: Plan, journal: Journal) -> torch_peers.TorchPeers | None:
    if not options.peers:
        return None
    if (missing := torch_peers.available()) is not None:
        raise CalibrationError(f"{missing}; install torch, or leave the peers out with --no-peers")
    keys = {(r.run, *r.key) for r in journal.of(VALIDATION, RUNS[VALIDATION])}
    left = [p for p in plan.validation if any((run, p.form, p.dtype, p.rows, p.width) not in keys for run in (1, 2))]
    torch_peers.warm(left, processes=min(8, os.cpu_count() or 1))
    return torch_peers.TorchPeers()


def _selections(judged: Iterable[Geometry], pick: Callable[[Workload], Pick]) -> tuple[tuple[Any, ...], list[int]]:
    """Return the facts of every selection that the records name, and what each live search took on the host."""
    facts: dict[str, Any] = {}
    search_ns: list[int] = []
    for record in judged:
        ready = pick(record.workload)
        if ready.selection.id not in facts:
            facts[ready.selection.id] = ready.selection.facts
            found = getattr(ready, "found", None)
            if found is not None:
                search_ns.append(found.elapsed_ns)
    return tuple(facts.values()), search_ns


def _recipes(plan: Plan) -> tuple[Recipe, ...]:
    forms = {planned.form for planned in plan.training}
    return tuple(recipe for recipe in RECIPES if recipe.form in forms)


def _kept(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the document in the folder, writing it first where there is none: a resumed call goes on with the same."""
    if not path.exists():
        unfinished = path.with_name(path.name + ".part")
        unfinished.write_bytes(to_json(make()))
        unfinished.replace(path)
    document = from_json(path.read_bytes())
    assert isinstance(document, dict)
    return document


def _memory_bytes(device: int) -> int:
    import cupy

    with cupy.cuda.Device(device):
        return int(cupy.cuda.runtime.memGetInfo()[1] * MEMORY_SHARE)
