"""From a cohort to fit documents: blocks solved, certified and stored with everything that re-solving needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy
import sklearn

from calibration.cohort import accepted, canonical_receipts, cohort_document
from calibration.crossval import SEPARATE, SHARED, SIZED, HeldOut, SolvedBlock, hold_out, judge_held_out, solve_blocks
from calibration.design import Design, by_recipe, design
from calibration.errors import FitError
from calibration.records import Geometry
from features.schemas import schemas_of
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL
from kernels.recipes import family_of
from kernels.target import Target
from policy.profile import ANY_DTYPE

FIT_SCHEMA = "rowsmith.fit/1"
_FIGURES = ("regret_geomean", "regret_p95", "regret_worst", "regressions")


def designs_of(records: Iterable[Geometry], receipts: Iterable[Receipt], target: Target) -> tuple[Design, ...]:
    """Return one design for each published schema of each family of the accepted training records, families sorted."""
    used = accepted(records)
    known = by_recipe(receipts)
    families = sorted({family_of(record.form) for record in used})
    return tuple(design(schema, used, known, target) for family in families for schema in schemas_of(family))


def fit_cohort(
    records: Iterable[Geometry],
    receipts: Iterable[Receipt],
    target: Target,
    *,
    environment: str,
    source_commit: str,
) -> list[dict[str, Any]]:
    """Return one fit document for each published schema of each family of a cohort.

    Parameters
    ----------
    records : all geometry records; training ones that ended `measured` are fitted, the cohort names all training ones.
    receipts : one for each recipe and dtype; the queried capacity enters the features.
    environment : digest of the environment document.

    Raises
    ------
    FitError : nothing to fit, a measured recipe without a receipt or a proof, or fewer rows than columns.
    """
    records, receipts = tuple(records), canonical_receipts(receipts)
    regimes = sorted({record.regime for record in records})
    if len(regimes) > 1:
        raise FitError(f"records are of {len(regimes)} regimes ({', '.join(regimes)}); a cohort is of one")
    designs = designs_of(records, receipts, target)
    if not designs:
        raise FitError("no training record ended as measured, so there is nothing to fit")
    cohort = digest(cohort_document(records, receipts, environment))
    return [fit_document(part, cohort, source_commit) for part in designs]


def fit_document(design: Design, cohort: str, source_commit: str) -> dict[str, Any]:
    """Return the fit of one family, with dtypes sharing blocks or not as held-out regret decides."""
    table = sharing_table(design, ways_of(design) or (SHARED,))
    sharing = choose_sharing(table)
    blocks = solve_blocks(design, design.rows, sharing)
    missing = missing_originals(design, blocks, sharing)
    if missing:
        made = ", ".join(f"{part.block.role} {part.block.dtype}" for part in blocks) or "none"
        raise FitError(
            f"{design.schema.id}: too few rows of the original for {', '.join(missing)}; blocks could be made of {made}"
        )
    return {
        "schema": FIT_SCHEMA,
        "form": design.family,
        "feature_schema": design.schema.id,
        "feature_schema_digest": design.schema.digest,
        "cohort": cohort,
        "dtype_sharing": sharing,
        "dtype_sharing_table": table,
        "blocks": [block_document(part) for part in blocks],
        "libraries": libraries(),
        "source_commit": source_commit,
    }


def block_document(solved: SolvedBlock) -> dict[str, Any]:
    """Return one solve as it is stored. `active` marks the columns whose coefficient is positive."""
    solution = solved.solution
    return {
        "role": solved.block.role,
        "dtype": solved.block.dtype,
        "points": [[row.geometry.digest, row.recipe.id] for row in solved.rows],
        "design": [list(row.features) for row in solved.rows],
        "target_us": [row.measured_us for row in solved.rows],
        "weights": solution.weights.tolist(),
        "scales": solution.scales.tolist(),
        "coefficients": solution.coefficients.tolist(),
        "active": (solution.coefficients > 0).tolist(),
        "objective": solution.objective,
        "kkt": solution.certificate.to_json(),
        "condition": solution.condition,
        "ranges": [list(pair) for pair in solved.block.ranges],
    }


def missing_originals(design: Design, blocks: Sequence[SolvedBlock], sharing: str) -> list[str]:
    """Return the dtypes whose original no block prices: without it no recipe is compared with anything.

    Another role that the cohort has too few rows of has no block, and its recipes are not scored (`no_fit`).
    """
    priced = {part.block.dtype for part in blocks if part.block.role == ORIGINAL}
    return [dtype for dtype in ((ANY_DTYPE,) if sharing == SHARED else design.dtypes) if dtype not in priced]


def ways_of(design: Design) -> tuple[str, ...]:
    """Return the ways in which dtypes can share blocks and every original has one, the fewest coefficients first."""
    ways = (SHARED, SIZED, SEPARATE) if len(design.dtypes) > 1 else (SHARED,)
    solved = {way: solve_blocks(design, design.rows, way) for way in ways}
    return tuple(way for way in ways if not missing_originals(design, solved[way], way))


def sharing_table(design: Design, ways: Sequence[str]) -> list[dict[str, Any]]:
    """Return the held-out figures, grouped by geometry, of each way in which dtypes can share blocks.

    All ways are judged on the same geometries: those whose original each prices inside its ranges. Elsewhere the policy
    keeps the original, whatever the coefficients; those geometries are the corners of the cohort. Fits from before
    storage size was a way were judged on all geometries, and still are.
    """
    held = {way: hold_out(design, way, "geometry") for way in ways}
    common = set.intersection(*(_covered(priced) for priced in held.values())) if SIZED in ways else None
    table = []
    for way, priced in held.items():
        judged = [one for one in priced if common is None or one.row.geometry.digest in common]
        figures = judge_held_out(design, judged)
        table.append({"sharing": way, **{name: figures[name] for name in _FIGURES}})
    return table


def _covered(priced: Iterable[HeldOut]) -> set[str]:
    return {one.row.geometry.digest for one in priced if one.row.recipe.role == ORIGINAL and one.inside}


def choose_sharing(table: Sequence[dict[str, Any]]) -> str:
    """Return the way with the lower geometric mean regret; the earlier, which has fewer coefficients, at a tie."""
    best = min(table, key=lambda row: float("inf") if row["regret_geomean"] is None else row["regret_geomean"])
    return str(best["sharing"])


def libraries() -> dict[str, str]:
    """Return the versions that the last bits of coefficients depend on."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
    }
