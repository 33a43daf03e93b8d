"""Records of experiments that nobody measured: every proved recipe of SUM with a time that a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from calibration.assemble import record
from calibration.measurement import Measurement
from calibration.planned import Planned
from calibration.records import Geometry
from features.proof import Proved, candidates
from features.workload import Workload
from kernels.recipe import ORIGINAL, Recipe
from kernels.source import identity
from tests.calibration.planted import CHECK

OP = "sum"
LAUNCHES = 100
# (recipe, planned) -> microseconds of a launch
Times = Callable[[Recipe, Planned], float]


def tried(
    geometries: Iterable[tuple[str, int, int]], us: Times, *, run: int = 0, without: frozenset[str] = frozenset()
) -> tuple[Geometry, ...]:
    """Return the record of each (dtype, rows, width): five samples a recipe, 0.5 % apart from the first to the last."""
    purpose = "validation" if run else "training"
    baseline = {"launches": LAUNCHES, "samples_ns": [LAUNCHES * 900] * 5}
    records = []
    for dtype, rows, width in geometries:
        planned = Planned(OP, dtype, rows, width, {})
        workload = Workload(planned.program, rows, width, width)
        taken = [
            _measured(row, planned, us)
            for row, proof in candidates(workload)
            if isinstance(proof, Proved) and row.id not in without
        ]
        records.append(record(planned, purpose, run, "hot", 7, 1, taken, baseline))
    return tuple(records)


def _measured(row: Recipe, planned: Planned, us: Times) -> Measurement:
    samples = tuple(round(us(row, planned) * LAUNCHES * (1000 + step)) for step in range(5))
    return Measurement(
        row.id,
        "recipe",
        "measured",
        LAUNCHES,
        samples,
        source=identity(row, planned.dtype).source,
        check=CHECK,
        recheck_ns=samples if row.role == ORIGINAL else None,
    )
