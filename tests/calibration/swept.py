"""The real `calibrate`, from plan to packet in a folder, where only the GPU is made up: times are planted."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define, evolve, field

from calibration import measure as measuring
from calibration import sweep
from calibration.assemble import record
from calibration.joining import Want
from calibration.measure import Point
from calibration.packet import Packet, read
from calibration.plan import Plan, Planned, draw_plan
from calibration.records import FLOOR, PEER, PLAIN, POLICY, RECIPE, Geometry, Measurement
from calibration.rounds import Bench
from kernels.recipe import ORIGINAL
from kernels.recipes import original_of
from kernels.recipes import recipe as row_of
from policy.profile import Profile
from policy.select import recorded, select
from tests.calibration.planted import ENVIRONMENT, planted_record, receipts
from tests.made import H200

NOISE = 0.003
ASKED = (POLICY, PLAIN)


@define
class Gpu:
    """A GPU whose times are planted. `asked` lists what was measured: purpose, run, and the names of each point.

    Attributes
    ----------
    without : recipes that the catalogue of this call does not hold yet.
    slower : a factor on every time, as of a clock that changed.
    sources : source digests that this call measures from, where they are not today's.
    """

    without: frozenset[str] = frozenset()
    slower: float = 1.0
    sources: dict[str, str] = field(factory=dict)
    commit: str = "0" * 40
    regime: str = "hot"
    profile: Profile | None = None
    asked: list[tuple[str, int, tuple[str, ...]]] = field(factory=list)
    seed: int = 0

    def measure(self, bench: Bench, point: Point, want: Want, attempt: int) -> Geometry:
        """Stand in for the GPU's round: what is wanted, the original beside it."""
        self.seed += 1
        rng = random.Random(self.seed)
        judging = self.profile if bench.pick is not None else None
        whole, _ = planted_record(
            point.planned, NOISE, rng, run=point.run, profile=judging, plain=True, regime=point.regime
        )
        original = original_of(whole.form).id
        picked = whole.by_name[POLICY].picked if POLICY in whole.by_name and want.pick else None

        def taken(m: Measurement) -> bool:
            if m.kind == RECIPE:
                known = m.name not in self.without
                return known and (want.recipes is None or m.name in {original, picked, *want.recipes})
            if m.kind in (PEER, FLOOR):
                return want.peers and bench.peers is not None and point.planned.peers
            return want.pick

        measured = [self._changed(m) for m in whole.measurements if taken(m)]
        self.asked.append((point.purpose, point.run, tuple(m.name for m in measured if m.kind == RECIPE)))
        baseline = {"launches": 100, "samples_ns": [90_000] * 5}
        return record(point.planned, point.purpose, point.run, point.regime, point.seed, attempt, measured, baseline)

    def _changed(self, m: Measurement) -> Measurement:
        samples = tuple(round(s * self.slower) for s in m.samples_ns)
        recheck = None if m.recheck_ns is None else samples
        return evolve(m, samples_ns=samples, recheck_ns=recheck, source=self.sources.get(m.name, m.source))

    def dispatch(self, profile: Profile) -> Any:
        """Stand in for the live dispatch: the same decision, from recorded receipts."""
        self.profile = profile
        return lambda workload: SimpleNamespace(selection=select(workload, H200, profile, recorded(profile)))

    def bench(self, plan: Plan, target: object, device: int) -> tuple[Bench, Any]:
        pool = SimpleNamespace(free_all_blocks=lambda: None)
        session = SimpleNamespace(cupy=SimpleNamespace(get_default_memory_pool=lambda: pool))
        known = tuple(r for r in receipts() if r.recipe not in self.without)
        return Bench(cast(Any, session), {}, {}, cast(Any, None), H200.sm_count, lambda: False), known


SHORT = 1501  # the widths up to here are all there: few recipes take them, and their roles must be fitted, too


def few(points: Iterable[Planned], count: int) -> tuple[Planned, ...]:
    """Return points that are spread over a plan."""
    held = tuple(points)
    return held[:: max(1, len(held) // count)]


@contextmanager
def at(gpu: Gpu, training: int = 60, validation: int = 12) -> Iterator[None]:
    """Let `calibrate` run on a planted GPU, on a small part of its plan."""

    def small(*arguments: Any, **options: Any) -> Plan:
        whole = draw_plan(*arguments, **options)
        some = {p.key for p in few(whole.training, training)}
        trained = tuple(p for p in whole.training if p.key in some or p.width <= SHORT)
        return evolve(whole, training=trained, validation=few(whole.validation, validation))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "draw_plan", small)
        patch.setattr(sweep, "_memory_bytes", lambda device: 64 * 2**30)
        patch.setattr(sweep.driver, "current_device", lambda: 0)
        patch.setattr(sweep.driver, "live_target", lambda device: H200)
        patch.setattr(sweep, "environment", lambda target, seed, device: {**ENVIRONMENT, "commit": gpu.commit})
        patch.setattr(sweep, "_bench", gpu.bench)
        patch.setattr(sweep, "_peers", lambda validation: object())
        patch.setattr(measuring, "_measure", gpu.measure)
        yield


def calibrated(folder: Path, gpu: Gpu, *, peers: bool = True, training: int = 60, **options: Any) -> Packet:
    """Calibrate into a folder, or go on with what is there, and return the packet."""
    options = {"inventory": "documented", **options}
    asked = sweep.Options(("scan",), "swept", folder, folder / "packet.zip", seed=7, peers=peers, **options)
    with at(gpu, training):
        written = sweep.calibrate(asked, gpu.dispatch)
    assert written is not None
    return read(written)


def proved(record: Geometry, name: str) -> bool:
    """Whether a record holds a recipe, which it does wherever that is legal."""
    return row_of(name).role == ORIGINAL or name in record.by_name
