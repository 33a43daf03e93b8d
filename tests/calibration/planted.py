"""A whole sweep that nobody measured: times from known coefficients plus seeded noise, packed as a real one is."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from attrs import evolve

from calibration.assemble import contents, record
from calibration.fit import fit_cohort
from calibration.freeze import freeze
from calibration.packet import Contents
from calibration.plan import Plan, Planned, draw_plan
from calibration.records import (
    Geometry,
    Measurement,
    timed_status,
)
from calibration.sources import catalogue_facts
from features.proof import Proved, candidates
from features.schema import Point, point
from features.schemas import schemas_of
from features.workload import Workload
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL, RECIPE, SPLIT, Recipe
from kernels.recipes import RECIPES
from kernels.reductions import SHORT
from kernels.scans import ANY, BROAD, COVER, FLAT, NARROW, TINY
from kernels.source import identity
from policy.profile import Profile, profile_from_document
from policy.select import recorded, select
from tests.made import H200, made_receipt

ENVIRONMENT: dict[str, Any] = {
    "schema": "rowsmith.environment/1",
    "target": {**H200.facts(), "label": H200.label},
    "driver": "planted",
    "catalogue": catalogue_facts(),
}
# Microseconds a unit of the columns of the newest schema, which prices every role; each is enough to exceed the noise.
# What a launch computes costs the same near and far, and has a column for each.
_COMPUTED = ("batch_chunks", "warps_issued", "warp_totals", "masked_lanes", "busiest_ctas", "pieces")
_WHOLE_ROWS = {
    "constant": 1.1,
    "traffic": 22.0,
    "far_traffic": 5.8,
    "waiting": 17.0,
    "batches": 0.1,
    "batch_steps": 0.03,
    "far_batch_steps": 0.34,
    "ragged_batch_steps": 0.02,
    "batch_chunks": 0.01,
    "warps_issued": 0.01,
    "warp_totals": 0.00024,
    "masked_lanes": 0.00012,
    "busiest_ctas": 0.02,
    "pieces": 0.0005,
}
_HELD = {
    "constant": 1.1,
    "traffic": 24.0,
    "far_traffic": 6.0,
    "batches": 0.2,
    "batch_elements": 0.01,
    "batch_stages": 0.02,
    "busiest_elements": 0.002,
    "busiest_loads": 0.003,
    "busiest_stages": 0.004,
}


def _reaching(costs: dict[str, float]) -> dict[str, float]:
    """Return the costs of a schema that has a column for each of `_COMPUTED` in L2, and one beyond it."""
    plain = {name: cost for name, cost in costs.items() if name not in _COMPUTED}
    return plain | {f"{reach}_{name}": costs[name] for name in _COMPUTED if name in costs for reach in ("near", "far")}


PLANTED: dict[str, dict[str, float]] = {
    ORIGINAL: _reaching({**_WHOLE_ROWS, "constant": 1.4, "batches": 2.0, "batch_steps": 0.1, "warps_issued": 0.02}),
    RECIPE: _reaching(_WHOLE_ROWS),
    ANY: _reaching({**_WHOLE_ROWS, "constant": 1.6, "batches": 2.2, "batch_steps": 0.12, "warps_issued": 0.022}),
    NARROW: _reaching(
        {
            **{name: value for name, value in _WHOLE_ROWS.items() if name != "batch_chunks"},
            "constant": 1.5,
            "batches": 2.3,
            "batch_steps": 0.13,
            "warps_issued": 0.023,
        }
    ),
    BROAD: _reaching({**_WHOLE_ROWS, "constant": 1.7, "batches": 2.1, "batch_steps": 0.11, "warps_issued": 0.021}),
    SHORT: _HELD,
    FLAT: {**_HELD, "batches": 0.4},
    COVER: {**_HELD, "batches": 0.3, "busiest_elements": 0.004},
    TINY: {
        "constant": 1.1,
        "traffic": 22.0,
        "far_traffic": 6.0,
        "batches": 0.2,
        "batch_elements": 0.01,
        "busiest_warps": 0.01,
        "busiest_elements": 0.002,
    },
    SPLIT: {
        "constant": 1.5,
        "traffic": 20.0,
        "far_traffic": 6.0,
        "numbered": 0.004,
        "busiest_chunks": 0.25,
        "warp_totals": 0.004,
    },
}
NARROWER = {COVER, TINY}  # roles that take no width of the planted plan
SAMPLES = 25
CHECK = {
    "right": True,
    "worst_share": 0.4,
    "bad_finite": 0,
    "bad_special": 0,
    "bit_equal_share": 1.0,
    "guards_and_input_intact": True,
}
COMMIT = "0" * 40


@cache
def planted_plan(seed: int = 7) -> Plan:
    """Return the plan of the planted sweep: the real grid on the made-up H200."""
    return draw_plan(("scan",), seed, H200, 64 * 2**30, inventory_name="documented")


@cache
def receipts() -> tuple[Receipt, ...]:
    """Return a clean receipt of every recipe and dtype of the planned form."""
    form = planted_plan().training[0].form
    return tuple(made_receipt(row, dtype) for row in RECIPES if row.form == form for dtype in row.dtypes)


def planted_us(recipe: Recipe, at: Point) -> float:
    """Return the planted time of a recipe at a point, in microseconds."""
    schema = schemas_of(recipe.family)[-1]
    prices = [PLANTED[recipe.role][feature.name] for feature in schema.roles[recipe.role]]
    return float(sum(v * c for v, c in zip(schema.vector(recipe.role, at), prices, strict=True)))


def true_us(workload: Workload, capacity: Mapping[tuple[str, str], int | None]) -> dict[str, float]:
    """Return the planted time of every legal recipe of a workload, in microseconds."""
    times = {}
    for recipe, proof in candidates(workload):
        if isinstance(proof, Proved):
            times[recipe.id] = planted_us(recipe, point(workload, recipe, capacity[recipe.id, workload.dtype], H200))
    return times


def samples(rng: random.Random, true: float, launches: int, noise: float) -> tuple[int, ...]:
    """Return whole replays in nanoseconds around a level that is off by the noise, as one placement of buffers is."""
    level = true * launches * 1000 * (1 + rng.uniform(-noise, noise))
    return tuple(max(1, round(level * (1 + abs(rng.gauss(0, noise / 3))))) for _ in range(SAMPLES))


def planted_record(
    planned: Planned,
    noise: float,
    rng: random.Random,
    *,
    run: int = 0,
    profile: Profile | None = None,
    plain: bool = False,
    regime: str = "hot",
) -> tuple[Geometry, Mapping[str, Any] | None]:
    """Return the record of one planned geometry, and the selection where a profile picks for it."""
    workload = Workload(planned.program, planned.rows, planned.width, planned.width)
    capacity = {(r.recipe, r.dtype): r.resident_ctas_per_sm for r in receipts()}
    times = true_us(workload, capacity)
    launches = max(20, round(200 / min(times.values())))
    measurements = [
        _measurement(recipe.id, times[recipe.id], planned.dtype, recipe.role == ORIGINAL, launches, noise, rng)
        for recipe in RECIPES
        if recipe.id in times
    ]
    facts = None
    if profile is not None:
        chosen = select(workload, H200, profile, recorded(profile))
        facts = chosen.facts
        picked = chosen.decision.recipe
        of_picked = next(m for m in measurements if m.name == picked)
        automatic = tuple(max(1, sample + rng.randint(-200, 200)) for sample in of_picked.samples_ns)
        measurements += [
            Measurement(
                "policy",
                "policy",
                "measured",
                launches,
                automatic,
                source=of_picked.source,
                picked=picked,
                selection=chosen.id,
            ),
            Measurement(
                "copy", "floor", "measured", launches, samples(rng, min(times.values()) / 1.5, launches, noise)
            ),
            Measurement(
                "torch.compile", "peer", "measured", launches, samples(rng, times[picked] * 1.2, launches, noise)
            ),
        ]
        if plain:
            slower = tuple(sample + 5000 for sample in automatic)
            measurements += [
                Measurement("policy.plain", "plain", "measured", launches, slower[:15], source=of_picked.source),
                Measurement(f"{picked}.plain", "plain", "measured", launches, slower[-15:], source=of_picked.source),
            ]
    purpose = "training" if profile is None else "validation"
    baseline = {"launches": launches, "samples_ns": [launches * 900] * 5}
    return record(planned, purpose, run, regime, 7, 1, measurements, baseline), facts


def _measurement(
    name: str, true: float, dtype: str, is_original: bool, launches: int, noise: float, rng: random.Random
) -> Measurement:
    taken = samples(rng, true, launches, noise)
    recipe = next(row for row in RECIPES if row.id == name)
    return Measurement(
        name,
        "recipe",
        timed_status(taken, launches),
        launches,
        taken,
        source=identity(recipe, dtype).source,
        check=CHECK,
        recheck_ns=taken if is_original else None,
    )


def planted_cohort(noise: float = 0.01, seed: int = 7) -> tuple[Geometry, ...]:
    """Return the training records of the planted sweep."""
    rng = random.Random(seed)
    return tuple(sorted((planted_record(p, noise, rng)[0] for p in planted_plan().training), key=lambda r: r.key))


def _validation(
    profile: Profile, plan: Plan, noise: float, plain: bool
) -> Iterator[tuple[Geometry, Mapping[str, Any]]]:
    rng = random.Random(11)
    for planned in plan.validation:
        for run in (1, 2):
            record, facts = planted_record(planned, noise, rng, run=run, profile=profile, plain=plain)
            assert facts is not None
            yield record, facts


@cache
def planted_contents(noise: float = 0.01, plain: bool = False) -> Contents:
    """Return everything that a whole sweep leaves; with `plain`, plain launches were timed too."""
    plan, known = planted_plan(), receipts()
    known = tuple(sorted(known, key=lambda r: (r.recipe, r.dtype)))
    cohort = planted_cohort(noise)
    fits = fit_cohort(cohort, known, H200, environment=digest(ENVIRONMENT), source_commit=COMMIT)
    document = freeze("planted", "hot", H200, fits, known)
    profile = profile_from_document(document)
    pairs = sorted(_validation(profile, plan, noise, plain), key=lambda pair: (*pair[0].key, pair[0].run))
    judged = tuple(made for made, _ in pairs)
    selections = tuple({digest(facts): facts for _, facts in pairs}.values())
    return contents(
        plan, ENVIRONMENT, H200, known, cohort, fits, document, judged, selections, (150_000, 180_000, 160_000)
    )


def with_record(contents: Contents, part: str, place: int, record: Geometry) -> Contents:
    """Return contents with one record replaced."""
    records = list(getattr(contents, part))
    records[place] = record
    return evolve(contents, **{part: tuple(records)})
