"""What a fit is made of, and solving it again from the stored samples."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from features.schemas import SCHEMAS
from server.errors import Problem
from server.paging import immutable, json_bytes
from server.routes.evidence import stored_node
from server.state import Running
from server.table_text import MEDIA_TYPE, csv_bytes
from server.verifying import verify_stored_fit
from server.wire import FormatQuery

router = APIRouter(prefix="/v1", tags=["evidence"])


@router.get("/fits/{digest}/design", summary="Design matrix, target, weights and scales of each block, JSON or CSV")
def design(digest: str, request: Request, state: Running, query: Annotated[FormatQuery, Query()]) -> Response:
    """Return the rows that were solved, in their order. In CSV, blocks of different columns follow one another long."""
    fit = json.loads(stored_node(state, "fit", digest).body)
    blocks = [
        {
            "role": block["role"],
            "dtype": block["dtype"],
            "columns": _columns(fit, block["role"]),
            **{name: block[name] for name in ("points", "design", "target_us", "weights", "scales")},
        }
        for block in fit["blocks"]
    ]
    if query.format == "json":
        return immutable(request, f"{digest}-design", json_bytes({"fit": digest, "blocks": blocks}))
    columns = ("role", "dtype", "row", "geometry", "recipe", "feature", "value", "target_us", "weight")
    rows = (
        (block["role"], block["dtype"], index, *point, column["name"], value, target_us, weight)
        for block in blocks
        for index, (point, values, target_us, weight) in enumerate(
            zip(block["points"], block["design"], block["target_us"], block["weights"], strict=True)
        )
        for column, value in zip(block["columns"], values, strict=True)
    )
    return immutable(request, f"{digest}-design-csv", csv_bytes(columns, rows), MEDIA_TYPE)


@router.get("/fits/{digest}/coefficients", summary="Coefficients, ranges and certificate of each block")
def coefficients(digest: str, request: Request, state: Running) -> Response:
    """Return microseconds a unit of each feature, with the range that it was calibrated on."""
    fit = json.loads(stored_node(state, "fit", digest).body)
    blocks = [
        {
            "role": block["role"],
            "dtype": block["dtype"],
            "coefficients": [
                {**column, "coefficient": value, "active": active, "range": bounds}
                for column, value, active, bounds in zip(
                    _columns(fit, block["role"]), block["coefficients"], block["active"], block["ranges"], strict=True
                )
            ],
            **{name: block[name] for name in ("objective", "kkt", "condition")},
        }
        for block in fit["blocks"]
    ]
    return immutable(request, f"{digest}-coefficients", json_bytes({"fit": digest, "blocks": blocks}))


def _columns(fit: dict[str, Any], role: str) -> list[dict[str, Any]]:
    schema = SCHEMAS.get(fit["feature_schema"])
    if schema is None:
        detail = f"feature schema {fit['feature_schema']} is not in this release; GET the fit, or use a newer release"
        raise Problem("unavailable", detail)
    columns: list[dict[str, Any]] = schema.describe()["roles"][role]
    return columns


@router.post("/fits/{digest}/verify", summary="Solve the fit again from its stored samples")
def verify(digest: str, state: Running) -> dict[str, Any]:
    """Return `verified`, or the differences: objective, certificate, predictions, picks, digests."""
    stored_node(state, "fit", digest)
    if find_spec("scipy") is None:
        raise Problem(
            "unavailable",
            "SciPy is not installed here, so no fit can be solved; pip install '.[fit]' in the source folder",
        )
    return verify_stored_fit(state.store, digest)
