"""The sweep: receipts, training, fit, freeze, validation and packet, each step resumed from the journal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from calibration import peers as torch_peers
from calibration.assemble import contents
from calibration.cohort import canonical_receipts
from calibration.environment import environment, throttle_probe
from calibration.errors import CalibrationError
from calibration.estimate import estimate
from calibration.fit import fit_cohort
from calibration.folder import Document, documents, kept
from calibration.freeze import freeze
from calibration.gpu import Session
from calibration.journal import Journal
from calibration.loading import EMPTY, load_all
from calibration.packet import write
from calibration.peers_libraries import absent, library_peers
from calibration.plan import INVENTORY, Plan, draw_plan
from calibration.progress import say
from calibration.records import RUNS, TRAINING, VALIDATION, Geometry
from calibration.rounds import Bench, Pick
from calibration.work import Clock, Work
from features.workload import Workload
from kernels import driver
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.target import Target
from policy.profile import Profile, profile_from_document

MEMORY_SHARE = 0.5
# Makes the real dispatch path for a frozen profile: rowsmith.live hands it in, since imports go the other way.
Dispatch = Callable[[Profile], Callable[[Workload], Pick]]
# What an environment says of one call beyond the target, which all calls in a folder share.
_OF_CALL = ("commit", "libraries", "driver_cuda", "runtime_cuda")


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
    regime: str = "hot"
    inventory: str = INVENTORY
    inventory_seed: int | None = None
    learnt_seeds: tuple[int, ...] = ()


def calibrate(options: Options, dispatch: Dispatch) -> Path | None:
    """Run a calibration from plan to packet and return the packet's path.

    Everything measured is in the folder's journal: a call that was killed, or that raised `OutOfTimeError` at the end
    of its budget, is continued by the same call. A call with more ops, or after recipes were added or changed, measures
    what the journal lacks and makes another profile.
    """
    clock = Clock(options.budget_s)
    device = driver.current_device()
    target = driver.live_target(device)
    plan = _plan(options, target, device)
    say(str(estimate(plan, options.peers)))
    journal = Journal(options.folder / "journal.jsonl", {"seed": plan.seed, "regime": plan.regime})
    training = Work(journal, plan, plan.training, TRAINING)
    where = _environment(options.folder, environment(target, options.seed, device), bool(training.left(0)))
    bench, known = _bench(plan, target, device)
    training.do(bench, 0, clock)
    cohort = training.records()
    fits = fit_cohort(cohort, known, target, environment=digest(where), source_commit=where["commit"])
    document = _frozen(options, plan, target, fits, known)
    pick = dispatch(profile_from_document(document))
    validation = Work(journal, plan, plan.validation, VALIDATION, pick, options.peers)
    judging = evolve(bench, pick=pick, peers=_peers(validation) if options.peers else None)
    for run in RUNS[VALIDATION]:
        validation.do(judging, run, clock)
    judged = validation.records()
    selections, search_ns = _selections(judged, pick, options.folder, digest(document))
    found = contents(plan, where, target, known, cohort, fits, document, judged, selections, search_ns)
    write(options.out, options.name, found)
    return options.out


def _plan(options: Options, target: Target, device: int) -> Plan:
    return draw_plan(
        options.ops,
        options.seed,
        target,
        _memory_bytes(device),
        regime=options.regime,
        inventory_name=options.inventory,
        inventory_seed=options.inventory_seed,
        learnt_seeds=options.learnt_seeds,
    )


def _bench(plan: Plan, target: Target, device: int) -> tuple[Bench, tuple[Receipt, ...]]:
    """Return what training is measured with, and every receipt."""
    kernels, receipts, excluded = load_all(plan, device)
    bench = Bench(
        session=Session(),
        kernels=kernels,
        excluded=excluded,
        empty=driver.load(EMPTY, "float32", device),
        sm_count=target.sm_count,
        throttled=throttle_probe(device),
        l2_bytes=target.l2_bytes,
    )
    return bench, canonical_receipts(receipts)


def _frozen(
    options: Options, plan: Plan, target: Target, fits: list[dict[str, Any]], receipts: tuple[Receipt, ...]
) -> Document:
    """Return the profile of this cohort: the folder's own where it has one."""

    def holds(frozen: Document) -> bool:
        return bool(frozen["name"] == options.name and {f["cohort"] for f in frozen["fits"]} == {fits[0]["cohort"]})

    return kept(options.folder, "profile", holds, lambda: freeze(options.name, plan.regime, target, fits, receipts))


def _environment(folder: Path, now: Document, measuring: bool) -> dict[str, Any]:
    """Return the environment of the cohort: that of the last call which measured for it, with the earlier ones.

    A call that finds the cohort whole changes nothing of it, whatever the commit is meanwhile.
    """
    earlier = documents(folder, "environment")
    if any(document["target"] != now["target"] for document in earlier):
        raise CalibrationError(f"{folder} was begun on another target; another GPU is another cohort and folder")

    def holds(document: Document) -> bool:
        same_call = _board(document) == _board(now) and all(document.get(name) == now.get(name) for name in _OF_CALL)
        same_kernels = document["catalogue"] == now["catalogue"]
        return document == earlier[-1] and same_kernels and (same_call or not measuring)

    where = kept(folder, "environment", holds, lambda: now)
    before = [document for document in documents(folder, "environment") if document != where]
    # A document that came out of a packet holds those of the calls before it.
    told = list(where.get("earlier", ()))
    for document in before:
        call = {name: document.get(name) for name in (*_OF_CALL, "nvml", "started")}
        told += [*document.get("earlier", ()), call]
    return {**where, **({"earlier": told} if told else {})}


def _board(document: Document) -> Any:
    return document.get("nvml", {}).get("board")


def _peers(validation: Work) -> torch_peers.TorchPeers:
    if (missing := torch_peers.available()) is not None:
        raise CalibrationError(f"{missing}; install torch, or leave the peers out with --no-peers")
    for name, reason in (left_out := absent()).items():
        say(f"{name} does not join: {reason}")
    left = {p.key: p for run in RUNS[VALIDATION] for p, want in validation.left(run) if p.peers and want.peers}
    torch_peers.warm(left.values(), processes=min(16, os.cpu_count() or 1))
    return torch_peers.TorchPeers(library_peers(left_out))


def _selections(
    judged: Iterable[Geometry], pick: Callable[[Workload], Pick], folder: Path, profile: str
) -> tuple[tuple[Any, ...], list[int]]:
    """Return the facts of every selection that the records name, and what each live search took on the host.

    Searches of an earlier call for the same profile stand: a later one finds its kernels loaded.
    """
    facts: dict[str, Any] = {}
    search_ns: list[int] = []
    for record in judged:
        ready = pick(record.workload)
        if ready.selection.id not in facts:
            facts[ready.selection.id] = ready.selection.facts
            found = getattr(ready, "found", None)
            if found is not None:
                search_ns.append(found.elapsed_ns)
    searched = kept(
        folder,
        "searches",
        lambda stored: stored.get("profile") == profile,
        lambda: {"profile": profile, "samples_ns": search_ns},
    )
    return tuple(facts.values()), searched["samples_ns"]


def _memory_bytes(device: int) -> int:
    import cupy

    with cupy.cuda.Device(device):
        return int(cupy.cuda.runtime.memGetInfo()[1] * MEMORY_SHARE)
