"""From measurements to a record, and from everything that a sweep leaves to the contents of its packet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibration.crossval import crossvalidation_document
from calibration.fit import designs_of
from calibration.judge import judge
from calibration.measurement import ordered
from calibration.packet import Contents
from calibration.plan import Plan, Planned
from calibration.records import (
    Geometry,
    Measurement,
    geometry_status,
    is_ambiguous,
    original_drift,
)
from calibration.residuals import residuals
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.recipes import RECIPES, original_of
from kernels.source import OPTIONS, sources
from kernels.target import Target


def record(
    planned: Planned,
    purpose: str,
    run: int,
    regime: str,
    seed: int,
    attempt: int,
    measurements: Iterable[Measurement],
    baseline: Mapping[str, Any] | None,
) -> Geometry:
    """Return the record of a planned geometry, recipes first and the original before them; its status is computed."""
    original = original_of(planned.form).id
    held = ordered(measurements, original)
    first = next(m for m in held if m.name == original)
    return Geometry(
        purpose=purpose,
        run=run,
        regime=regime,
        form=planned.form,
        program=planned.program.tree(),
        rows=planned.rows,
        width=planned.width,
        dtype=planned.dtype,
        stratum=planned.stratum,
        seed=seed,
        attempt=attempt,
        drift=original_drift(first),
        status=geometry_status(first),
        ambiguous=is_ambiguous(held),
        baseline=baseline,
        measurements=held,
        inner=planned.inner,
    )


def contents(
    plan: Plan,
    environment: Mapping[str, Any],
    target: Target,
    receipts: tuple[Receipt, ...],
    cohort: tuple[Geometry, ...],
    fits: Sequence[Mapping[str, Any]],
    profile: Mapping[str, Any],
    judged: tuple[Geometry, ...],
    selections: tuple[Mapping[str, Any], ...],
    search_ns: Sequence[int],
) -> Contents:
    """Return the contents of the packet: held-out figures, validation and residuals are computed here."""
    forms = {planned.form for planned in plan.training}
    templates = {recipe.template for recipe in RECIPES if recipe.form in forms}
    return Contents(
        plan=plan,
        environment=environment,
        sources={name: text for template in sorted(templates) for name, text in sources(template).items()},
        options=OPTIONS,
        receipts=receipts,
        cohort=cohort,
        fits=tuple(fits),
        crossvalidation=crossvalidation_document(designs_of(cohort, receipts, target), fits),
        profile=profile,
        validation_records=judged,
        validation=judge(digest(profile), judged, selections, search_ns),
        selections=selections,
        residuals=tuple(residuals((*cohort, *judged), receipts, target, fits)),
    )
