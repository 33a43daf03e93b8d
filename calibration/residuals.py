"""Residuals: predicted minus measured, one line for every measured candidate of every set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calibration.cohort import canonical
from calibration.crossval import HeldOut, hold_out, price
from calibration.design import by_recipe, design
from calibration.fit import designs_of
from calibration.records import MEASURED, VALIDATION, Geometry
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.target import Target
from policy.profile import Block


def blocks_of(fit: Mapping[str, Any]) -> tuple[Block, ...]:
    """Return the blocks of a fit document as the policy prices with them."""
    return tuple(
        Block(
            part["role"],
            part["dtype"],
            tuple(float(value) for value in part["coefficients"]),
            tuple((float(low), float(high)) for low, high in part["ranges"]),
        )
        for part in fit["blocks"]
    )


def residuals(
    records: Iterable[Geometry], receipts: Iterable[Receipt], target: Target, fits: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the training, cross-validation (held out by geometry) and validation residuals, fit by fit."""
    records, receipts = tuple(records), tuple(receipts)
    known = by_recipe(receipts)
    judged = canonical(r for r in records if r.purpose == VALIDATION and r.status == MEASURED)
    trained = {part.schema.id: part for part in designs_of(records, receipts, target)}
    lines: list[dict[str, Any]] = []
    for fit in fits:
        blocks, name = blocks_of(fit), digest(fit)
        training = trained[fit["feature_schema"]]
        priced: dict[str, Iterable[HeldOut | None]] = {
            "training": (price(row, blocks) for row in training.rows),
            "crossvalidation": hold_out(training, fit["dtype_sharing"], "geometry"),
            "validation": (price(row, blocks) for row in design(training.schema, judged, known, target).rows),
        }
        for set_name, found in priced.items():
            lines += [_line(set_name, name, held) for held in found if held is not None]
    return lines


def _line(set_name: str, fit: str, held: HeldOut) -> dict[str, Any]:
    measured_us = held.row.measured_us
    return {
        "set": set_name,
        "geometry": held.row.geometry.digest,
        "recipe": held.row.recipe.id,
        "fit": fit,
        "predicted_us": held.predicted_us,
        "measured_us": measured_us,
        "residual_us": held.predicted_us - measured_us,
    }
