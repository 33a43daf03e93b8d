"""Freezing: fits, receipts and target become one profile document, named by its digest and never edited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calibration.cohort import canonical_receipts
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.target import Target
from policy.profile import PROFILE_SCHEMA, profile_from_document


def freeze(
    name: str,
    regime: str,
    target: Target,
    fits: Iterable[Mapping[str, Any]],
    receipts: Iterable[Receipt],
    earned: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the profile document of fits on one target and regime, having read it back as the policy does.

    Parameters
    ----------
    name : for people; part of the document and so of its digest.
    earned : experimental recipes that an earlier validation earned a place.

    Raises
    ------
    ProfileError : the document is not one that the policy can read.
    """
    document = {
        "schema": PROFILE_SCHEMA,
        "name": name,
        "regime": regime,
        "target": {**target.facts(), "label": target.label},
        "fits": [_needed(fit) for fit in in_force(fits)],
        "receipts": [receipt.facts() for receipt in canonical_receipts(receipts)],
        "earned": sorted(earned),
    }
    profile_from_document(document)
    return document


def in_force(fits: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return for each family the fit with the lower held-out regret, families sorted; the earlier schema at a tie."""
    best: dict[str, Mapping[str, Any]] = {}
    for fit in fits:
        family = fit["form"]
        if family not in best or held_out_regret(fit) < held_out_regret(best[family]):
            best[family] = fit
    return [best[family] for family in sorted(best)]


def held_out_regret(fit: Mapping[str, Any]) -> float:
    """Return the geometric mean regret at held-out geometries of the way in which the fit shares dtypes."""
    row = next(row for row in fit["dtype_sharing_table"] if row["sharing"] == fit["dtype_sharing"])
    return float("inf") if row["regret_geomean"] is None else float(row["regret_geomean"])


def _needed(fit: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a decision needs of a fit; its digest leads to the rest."""
    kept = ("form", "feature_schema", "feature_schema_digest", "cohort")
    blocks = [{name: block[name] for name in ("role", "dtype", "coefficients", "ranges")} for block in fit["blocks"]]
    return {"digest": digest(fit), **{name: fit[name] for name in kept}, "blocks": blocks}


def wrapper(document: Mapping[str, Any], standing: str) -> dict[str, Any]:
    """Return what a bundled profile file holds; `standing` is the validation's, `unvalidated` before there is one."""
    return {"digest": digest(document), "profile": document, "standing": standing}
