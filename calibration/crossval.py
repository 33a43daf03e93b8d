"""Cross-validation: what a fit would have done at geometries, whole widths and whole row counts that it never saw."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from calibration.design import Design, Row, block_of, original_row
from calibration.nnls import Solution, coefficients_of, solve
from calibration.stats import quantile, regresses, same, spread
from kernels.dtypes import storage
from policy.profile import ANY_DTYPE, Block
from policy.select import ADMISSION, score

CROSSVALIDATION_SCHEMA = "rowsmith.crossvalidation/1"
# Which dtypes share a block: all; those of one storage size, whose kernels move the same bytes; none.
SHARED, SIZED, SEPARATE = "shared", "storage_bytes", "separate"
FOLDS = 5
_QUANTILES = {"p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}


@frozen(eq=False)
class SolvedBlock:
    """One solve: its rows, the solution, and the block that the policy would price with."""

    rows: tuple[Row, ...]
    solution: Solution
    block: Block


@frozen(eq=False)
class HeldOut:
    """A row priced by a fit that did not see its group; `inside` tells whether the fit's ranges hold its features."""

    row: Row
    predicted_us: float
    inside: bool


# What dtypes of one block have in common.
_SHARERS: dict[str, Callable[[str], object]] = {
    SHARED: lambda dtype: ANY_DTYPE,
    SIZED: lambda dtype: storage(dtype).bytes,
    SEPARATE: lambda dtype: dtype,
}


def solve_blocks(design: Design, rows: Iterable[Row], sharing: str) -> tuple[SolvedBlock, ...]:
    """Solve one block for each role, and for each dtype unless all share one; each needs a row a column.

    Dtypes that share by storage size have each a block, of the same rows.
    """
    solved: list[SolvedBlock] = []
    share = _SHARERS[sharing]
    for role, features in design.schema.roles.items():
        of_role = [row for row in rows if row.recipe.role == role]
        made: dict[object, SolvedBlock] = {}
        for dtype in (ANY_DTYPE,) if sharing == SHARED else design.dtypes:
            key = share(dtype)
            chosen = tuple(row for row in of_role if share(row.geometry.dtype) == key)
            if len(chosen) < len(features):
                continue
            if key not in made:
                made[key] = _solve_block(role, dtype, chosen)
            solved.append(evolve(made[key], block=evolve(made[key].block, dtype=dtype)))
    return tuple(solved)


def _solve_block(role: str, dtype: str, rows: tuple[Row, ...]) -> SolvedBlock:
    matrix = np.array([row.features for row in rows], dtype=np.float64)
    solution = solve(matrix, [row.measured_us for row in rows])
    ranges = tuple((float(column.min()), float(column.max())) for column in matrix.T)
    block = Block(role, dtype, tuple(float(value) for value in solution.coefficients), ranges)
    return SolvedBlock(rows, solution, block)


# How geometries are grouped: a group is held out whole.
GROUPS: dict[str, Callable[[Row], object]] = {
    "geometry": lambda row: row.geometry.key,
    "width": lambda row: row.geometry.width,
    "rows": lambda row: row.geometry.rows,
}


def folds(design: Design, split: str) -> Sequence[int]:
    """Return the fold of each row: five of geometries by the digest of their key, one for each width or row count.

    Digests, and not a generator, deal the geometries out, so that every release and platform holds out the same ones.
    """
    groups = [GROUPS[split](row) for row in design.rows]
    if split == "geometry":
        order = sorted(set(groups), key=lambda key: hashlib.sha256(repr(key).encode()).hexdigest())
        fold = {key: place % FOLDS for place, key in enumerate(order)}
        return [fold[group] for group in groups]
    distinct = sorted(set(groups), key=repr)
    return [distinct.index(group) for group in groups]


def hold_out(design: Design, sharing: str, split: str) -> tuple[HeldOut, ...]:
    """Price every row by a fit on the other folds, rows in canonical order; rows that no block prices are left out."""
    fold = np.array(folds(design, split))
    priced: dict[int, HeldOut] = {}
    for together in _together(design, sharing):
        matrix = np.array([design.rows[i].features for i in together], dtype=np.float64)
        times = np.array([design.rows[i].measured_us for i in together])
        for out in np.unique(fold[together]):
            held = fold[together] == out
            if np.count_nonzero(~held) < matrix.shape[1]:
                continue
            coefficients = [float(value) for value in coefficients_of(matrix[~held], times[~held])]
            low, high = matrix[~held].min(axis=0), matrix[~held].max(axis=0)
            inside = ((low <= matrix) & (matrix <= high)).all(axis=1)
            for place in np.flatnonzero(held):
                row = design.rows[together[place]]
                priced[together[place]] = HeldOut(row, score(row.features, coefficients), bool(inside[place]))
    return tuple(priced[index] for index in sorted(priced))


def _together(design: Design, sharing: str) -> tuple[list[int], ...]:
    """Return the indices of the rows of each block: of one role, and of the dtypes that share."""
    groups: dict[tuple[str, object], list[int]] = defaultdict(list)
    for index, row in enumerate(design.rows):
        if row.recipe.role in design.schema.roles:
            groups[row.recipe.role, _SHARERS[sharing](row.geometry.dtype)].append(index)
    return tuple(groups.values())


def price(row: Row, blocks: Iterable[Block]) -> HeldOut | None:
    """Return a row's predicted time in microseconds, or None where no block prices it."""
    block = block_of(blocks, row)
    if block is None:
        return None
    inside = all(low <= value <= high for value, (low, high) in zip(row.features, block.ranges, strict=True))
    return HeldOut(row, score(row.features, block.coefficients), inside)


def pick(candidates: Sequence[HeldOut]) -> Row | None:
    """Return the row that the policy would run among the priced candidates of one geometry, None without an original.

    The rule is the policy's: nothing outside the ranges is scored, and a recipe is taken strictly below 95 % of the
    original only, the smaller id at a tie. An experimental recipe is not taken.
    """
    original_of_geometry = original_row(c.row for c in candidates)
    if original_of_geometry is None:
        return None
    original = next(c for c in candidates if c.row is original_of_geometry)
    others = [c for c in candidates if c is not original and c.inside and not c.row.recipe.experimental]
    best = min(others, key=lambda c: (c.predicted_us, c.row.recipe.id), default=None)
    admitted = best is not None and original.inside and best.predicted_us < ADMISSION * original.predicted_us
    return best.row if best is not None and admitted else original.row


def judge_held_out(design: Design, priced: Sequence[HeldOut]) -> dict[str, Any]:
    """Return the figures of held-out geometries: residual quantiles, picks, regret, regressions and coverage.

    `across_rounds` counts geometries whose recipes were not all timed in one round, where there are any.
    """
    by_row = {id(h.row): h for h in priced}
    picks = 0
    top1: list[bool] = []
    top1_same: list[bool] = []
    regrets: list[float] = []
    regressions: list[dict[str, Any]] = []
    groups = design.by_geometry()
    for rows in groups:
        picked = pick([by_row[id(row)] for row in rows if id(row) in by_row])
        original = original_row(rows)
        if picked is None or original is None:
            continue
        picks += 1
        fastest = min(rows, key=lambda row: row.measured_us)
        top1.append(picked is fastest)
        top1_same.append(same(picked.timing, fastest.timing))
        regrets.append(picked.measured_us / fastest.measured_us)
        if picked is not original and regresses(picked.timing, original.timing):
            ratio = picked.measured_us / original.measured_us
            regressions.append(
                {"geometry": picked.geometry.digest, "picked": picked.recipe.id, "picked_over_original": ratio}
            )
    regret = spread(regrets)
    joined = sum(len({row.round for row in rows}) > 1 for rows in groups)
    return {
        "geometries": len(groups),
        "picked": picks,
        "candidates": len(design.rows),
        "coverage": _share([id(row) in by_row and by_row[id(row)].inside for row in design.rows]),
        "relative_residuals": relative_residuals(priced),
        "top1_share": _share(top1),
        "top1_same_share": _share(top1_same),
        **{f"regret_{name}": value for name, value in regret.items()},
        "regressions": len(regressions),
        "regression_list": regressions,
        **({"across_rounds": joined} if joined else {}),
    }


def relative_residuals(priced: Iterable[HeldOut]) -> dict[str, float] | None:
    """Return quantiles of (predicted - measured) / measured, or None of nothing."""
    ordered = sorted(h.predicted_us / h.row.measured_us - 1 for h in priced)
    return {name: quantile(ordered, share) for name, share in _QUANTILES.items()} if ordered else None


def crossvalidate(design: Design, sharing: str) -> dict[str, Any]:
    """Return the figures of every way of holding out, by its name."""
    return {split: judge_held_out(design, hold_out(design, sharing, split)) for split in GROUPS}


def crossvalidation_document(designs: Iterable[Design], fits: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return `crossvalidation.json`: for each fitted schema, how dtypes share blocks and the figures of every split."""
    sharing = {fit["feature_schema"]: fit["dtype_sharing"] for fit in fits}
    schemas = {
        design.schema.id: {
            "form": design.family,
            "dtype_sharing": sharing[design.schema.id],
            "folds": FOLDS,
            "splits": crossvalidate(design, sharing[design.schema.id]),
        }
        for design in designs
        if design.schema.id in sharing
    }
    return {"schema": CROSSVALIDATION_SCHEMA, "admission": ADMISSION, "schemas": schemas}


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
