"""What this release can run and say: ops, recipes, reasons. Printed from the tables that decide."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from features.program import OPS, program_of
from features.proof import PROOFS, form_of
from features.schemas import schemas_of
from kernels.dtypes import STORAGE
from kernels.recipes import RECIPES, family_of, recipes_of
from kernels.source import catalogue_digest, identity
from kernels.templates import TEMPLATES
from policy.reasons import REASONS
from server.paging import listing
from server.wire import Listing

router = APIRouter(prefix="/v1", tags=["catalogue"])


@router.get("/ops", summary="Ops by name, with their programs, dtypes and recipes", response_model=Listing)
def ops() -> dict[str, Any]:
    """Return each op; the policy sees its program, never its name."""
    return listing([_op(name) for name in OPS], None, {})


def _op(name: str) -> dict[str, Any]:
    form = form_of(program_of(name, "float32"))
    programs = {dtype: program_of(name, dtype) for dtype in STORAGE}
    return {
        "op": name,
        "form": form,
        "family": family_of(form),
        "programs": {dtype: {"tree": found.tree(), "digest": found.digest()} for dtype, found in programs.items()},
        "recipes": [row.id for row in recipes_of(form)],
    }


@router.get("/recipes", summary="Recipes with legality, numerics, features and source digests", response_model=Listing)
def recipes() -> dict[str, Any]:
    """Return the catalogue; its digest is part of every selection."""
    rows = [
        {
            **row.facts(),
            "proofs": [{"name": name, "meaning": PROOFS[name].__doc__} for name in row.proofs],
            "chain": TEMPLATES[row.template].chain_meaning,
            "feature_schemas": [
                {"id": s.id, "digest": s.digest, "features": s.describe()["roles"][row.role]}
                for s in schemas_of(row.family)
                if row.role in s.roles
            ],
            "sources": {dtype: identity(row, dtype).source for dtype in row.dtypes},
        }
        for row in RECIPES
    ]
    return {**listing(rows, None, {}), "catalogue": catalogue_digest()}


@router.get("/reasons", summary="Reason codes, what they mean and what to do", response_model=Listing)
def reasons() -> dict[str, Any]:
    """Return every code that a decision or a recipe may carry."""
    rows = [{"code": r.code, "of": list(r.of), "meaning": r.meaning, "remedy": r.remedy} for r in REASONS.values()]
    return listing(rows, None, {})
