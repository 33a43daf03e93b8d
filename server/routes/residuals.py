"""Residuals, in pages, with their numbers."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from server.kinds import KINDS
from server.paging import decode_cursor, immutable, json_bytes, listing, next_link, page_limit
from server.routes.evidence import stored_node, wire
from server.state import Running, State
from server.table_text import MEDIA_TYPE, csv_bytes
from server.wire import Listing, ResidualsQuery

router = APIRouter(prefix="/v1", tags=["evidence"])

_FACETS = {"fit": "parent", "set": "purpose"}  # query names that the store calls otherwise
_COLUMNS = ("set", "geometry", "recipe", "fit", "predicted_us", "measured_us", "residual_us")


@router.get("/residuals", summary="Residuals by fit, geometry, recipe and set, JSON or CSV", response_model=Listing)
def residuals(state: Running, query: Annotated[ResidualsQuery, Query()]) -> Response:
    """Return predicted minus measured microseconds. In CSV the next page is in the Link header (RFC 8288)."""
    return _answer(state, query, "/v1/residuals", {})


@router.get("/fits/{digest}/residuals", summary="Residuals of one fit, JSON or CSV", response_model=Listing)
def of_fit(digest: str, state: Running, query: Annotated[ResidualsQuery, Query()]) -> Response:
    """Return the residuals of training, cross-validation and validation of one fit."""
    stored_node(state, "fit", digest)
    return _answer(state, query, f"/v1/fits/{digest}/residuals", {"parent": digest})


@router.get("/validations/{digest}/residuals", summary="Residuals of one validation", response_model=Listing)
def of_validation(digest: str, state: Running, query: Annotated[ResidualsQuery, Query()]) -> Response:
    """Return the validation residuals of the fits of the profile that was judged."""
    validation = json.loads(stored_node(state, "validation", digest).body)
    profile = json.loads(stored_node(state, "profile", validation["profile"]).body)
    fits = tuple(fit["digest"] for fit in profile["fits"])
    return _answer(state, query, f"/v1/validations/{digest}/residuals", {"parent": fits, "purpose": "validation"})


@router.get("/residuals/{digest}", summary="One residual", response_model=dict[str, Any])
def residual(digest: str, request: Request, state: Running) -> Response:
    """Return one residual by its digest."""
    return immutable(request, digest, wire(KINDS["residual"], digest, stored_node(state, "residual", digest).body))


def _answer(state: State, query: ResidualsQuery, path: str, fixed: dict[str, Any]) -> Response:
    """Return one page; `fixed` are the facets that the address itself stands for."""
    given = query.model_dump(exclude_none=True, exclude={"limit", "cursor", "format"})
    of = {"list": path, **given}
    asked = {_FACETS.get(name, name): value for name, value in given.items()}
    limit, after = page_limit(query.limit, state.settings.page_max), decode_cursor(query.cursor, of)
    page = state.store.page("residual", limit, filters={**asked, **fixed}, after=after, bodies=True)
    lines = [(row.digest, json.loads(row.body)) for row in page.rows]
    document = listing([_item(digest, line) for digest, line in lines], page.following, of)
    if query.format == "json":
        return Response(json_bytes(document), media_type="application/json")
    following = document["next"] and {**given, "format": "csv", "limit": limit, "cursor": document["next"]}
    rows = ([line[name] for name in _COLUMNS] for _, line in lines)
    return Response(csv_bytes(_COLUMNS, rows), 200, next_link(path, following), MEDIA_TYPE)


def _item(digest: str, line: dict[str, Any]) -> dict[str, Any]:
    kind = KINDS["residual"]
    return {"digest": digest, **line, "links": {"self": kind.address(digest), **kind.links("", line)}}
