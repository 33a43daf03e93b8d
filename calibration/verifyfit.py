"""Re-doing a fit: points, features and times from records and receipts, the solve, its certificate and the picks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from calibration.cohort import accepted
from calibration.compare import EXACT, RESOLVED, Finding, differences
from calibration.crossval import SIZED, SolvedBlock, pick, price, solve_blocks
from calibration.design import Design, by_recipe, design, schema
from calibration.errors import CalibrationError
from calibration.fit import FIT_SCHEMA, block_document, choose_sharing, sharing_table, ways_of
from calibration.nnls import certify, objective
from calibration.records import Geometry
from calibration.residuals import blocks_of
from kernels.receipt import Receipt
from kernels.target import Target
from policy.profile import Block
from policy.select import ADMISSION

PART = "fits.jsonl"
# An active-set solve ends with gradients of a few parts in 10^15 of the scale on designs of these sizes; a coefficient
# changed in its seventh digit leaves 10^-8 and more.
CERTIFICATE = 1e-9
_REDONE = ("points", "design", "target_us", "weights", "scales", "ranges")


def verify_fit(
    fit_document: Mapping[str, Any], records: Iterable[Geometry], receipts: Iterable[Receipt], target: Target
) -> tuple[Finding, ...]:
    """Return every difference between a stored fit and the same fit done again; empty means verified.

    Compared exactly: the schema digest, points, ranges. Within 10^-12: design, times, weights, scales. Within 10^-6, as
    coefficients are not bit-portable: the objective, predictions and held-out figures; the stored coefficients must
    fulfil the certificate to 10^-9 of its scale and make the same picks.
    """
    try:
        again = design(schema(fit_document["feature_schema"]), accepted(records), by_recipe(receipts), target)
        return tuple(_verify(fit_document, again))
    except (CalibrationError, KeyError, TypeError, ValueError, IndexError) as error:
        reason = f"{type(error).__name__} {error}"
        return (
            Finding(PART, str(fit_document.get("feature_schema", "fit")), "a fit that can be solved again", reason),
        )


def _verify(stored: Mapping[str, Any], again: Design) -> Iterator[Finding]:
    where = str(stored["feature_schema"])
    facts = {"schema": FIT_SCHEMA, "form": again.family, "feature_schema_digest": again.schema.digest}
    for name, value in facts.items():
        yield from differences(PART, f"{where} {name}", value, stored[name])
    ways, possible = tuple(row["sharing"] for row in stored["dtype_sharing_table"]), ways_of(again)
    # Before dtypes could share by storage size, the table had the other two, judged by the rule of their time.
    if ways not in (possible, tuple(way for way in possible if way != SIZED)):
        yield Finding(PART, f"{where} dtype_sharing_table", list(possible), list(ways))
        return
    table = sharing_table(again, ways)
    yield from differences(PART, f"{where} dtype_sharing_table", table, stored["dtype_sharing_table"], RESOLVED)
    if choose_sharing(stored["dtype_sharing_table"]) != stored["dtype_sharing"]:
        chosen = choose_sharing(stored["dtype_sharing_table"])
        yield Finding(PART, f"{where} dtype_sharing", chosen, stored["dtype_sharing"])
    solved = solve_blocks(again, again.rows, stored["dtype_sharing"])
    expected = [[part.block.role, part.block.dtype] for part in solved]
    found = [[block["role"], block["dtype"]] for block in stored["blocks"]]
    if expected != found:
        yield Finding(PART, f"{where} blocks", expected, found)
        return
    for part, block in zip(solved, stored["blocks"], strict=True):
        yield from _verify_block(f"{where} block {part.block.role} {part.block.dtype}", part, block)
    yield from _verify_picks(where, again, blocks_of(stored), [part.block for part in solved])


def _verify_block(where: str, solved: SolvedBlock, stored: Mapping[str, Any]) -> Iterator[Finding]:
    again = block_document(solved)
    moved = tuple(_moved_points(where, solved, stored["points"]))
    yield from moved
    for name in _REDONE[1:]:
        yield from differences(PART, f"{where} {name}", again[name], stored[name])
    matrix, target_us = np.array(again["design"], dtype=float), np.array(again["target_us"], dtype=float)
    coefficients = np.array(stored["coefficients"], dtype=float)
    if coefficients.shape != matrix.shape[1:]:
        yield Finding(PART, f"{where} coefficients", matrix.shape[1], len(coefficients))
        return
    yield from differences(PART, f"{where} active", [bool(c > 0) for c in coefficients], stored["active"])
    yield from differences(
        PART, f"{where} objective", objective(matrix, target_us, coefficients), stored["objective"], 1e-9
    )
    yield from differences(PART, f"{where} objective", again["objective"], stored["objective"], RESOLVED)
    yield from _verify_condition(where, again["condition"], stored["condition"])
    yield from _verify_certificate(where, matrix, target_us, coefficients, stored["kkt"])
    yield from _verify_predictions(where, matrix, coefficients, np.array(again["coefficients"]))


def _moved_points(where: str, solved: SolvedBlock, stored: Sequence[Sequence[str]]) -> Iterator[Finding]:
    """Name each measured point that the fit does not hold, and each that it holds and nobody measured."""
    ours = {(row.geometry.digest, row.recipe.id): row.geometry.label for row in solved.rows}
    theirs = {(str(point[0]), str(point[1])) for point in stored}
    strange = sorted(theirs - ours.keys())
    for key, label in ours.items():
        if key not in theirs:
            # In canonical order the stored point in this one's place is what its record was when the fit was made.
            place = list(ours).index(key)
            was = stored[place][0] if place < len(stored) and tuple(stored[place]) in strange else "a point of the fit"
            yield Finding("cohort.jsonl", f"{label} {key[1]}, digest of the record", was, key[0])
    for geometry, recipe in strange:
        if len(ours) != len(theirs):
            yield Finding(PART, f"{where} points", "a measured point", f"{geometry} {recipe}")
    if ours.keys() == theirs and [tuple(point) for point in stored] != list(ours):
        yield Finding(PART, f"{where} points", "canonical order", "another order")


def _verify_condition(where: str, again: float | None, stored: float | None) -> Iterator[Finding]:
    """A condition number is loose where it is large: its own rounding grows with it."""
    loose = again is not None and stored is not None and min(again, stored) > 1e10
    if not loose:
        yield from differences(PART, f"{where} condition", again, stored, RESOLVED)


def _verify_certificate(
    where: str, matrix: Any, target_us: Any, coefficients: Any, stored: Mapping[str, float]
) -> Iterator[Finding]:
    again = certify(matrix, target_us, coefficients)
    for name, value in (
        ("negative", again.negative / again.scale),
        ("gradient", again.gradient),
        ("slackness", again.slackness),
    ):
        if value > CERTIFICATE:
            yield Finding(PART, f"{where} kkt.{name} of the stored coefficients", f"at most {CERTIFICATE}", value)
        if not abs(stored[name] - getattr(again, name)) <= CERTIFICATE * again.scale:
            yield Finding(PART, f"{where} kkt.{name}", getattr(again, name), stored[name])
    yield from differences(PART, f"{where} kkt.scale", again.scale, stored["scale"], EXACT)


def _verify_predictions(where: str, matrix: Any, stored: Any, again: Any) -> Iterator[Finding]:
    """Compare predictions, which nearly collinear columns leave alone, and name the coefficient that moved most."""
    ours, theirs = matrix @ again, matrix @ stored
    relative = np.abs(theirs - ours) / np.maximum(np.abs(ours), 1e-300)
    worst = int(np.argmax(relative))
    if relative[worst] > RESOLVED:
        yield Finding(PART, f"{where} prediction[{worst}] in microseconds", float(ours[worst]), float(theirs[worst]))
        moved = int(np.argmax(np.abs(stored - again) * np.max(np.abs(matrix), axis=0)))
        yield Finding(PART, f"{where} coefficients[{moved}]", float(again[moved]), float(stored[moved]))


def _verify_picks(where: str, again: Design, stored: Sequence[Block], solved: Sequence[Block]) -> Iterator[Finding]:
    """Compare the pick at every training geometry, but where a score lies within the tolerance of turning it."""
    for rows in again.by_geometry():
        ours = [h for row in rows if (h := price(row, solved)) is not None]
        theirs = [h for row in rows if (h := price(row, stored)) is not None]
        one, other = pick(ours), pick(theirs)
        if one is None or other is None or one is other:
            continue
        scores = {id(h.row): h.predicted_us for h in ours}
        original = next(h.predicted_us for h in ours if h.row.recipe.id == rows[0].recipe.id)
        levels = [
            ADMISSION * original if row.recipe.id == rows[0].recipe.id else scores[id(row)] for row in (one, other)
        ]
        if abs(levels[0] - levels[1]) > RESOLVED * max(levels):
            yield Finding(PART, f"{where} pick at {rows[0].geometry.label}", one.recipe.id, other.recipe.id)
