"""Every kind of evidence, as a list and by digest: two routes for each row of `server.kinds`."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from server.errors import Problem
from server.kinds import KINDS, Kind
from server.node import Stored
from server.paging import decode_cursor, immutable, json_bytes, listing, page_limit
from server.state import Running, State
from server.wire import Listing, NodesQuery

router = APIRouter(prefix="/v1", tags=["evidence"])


def stored_node(state: State, kind: str, digest: str) -> Stored:
    """Return a node, or raise the problem that says where its kind is listed."""
    stored = state.store.get(kind, digest)
    if stored is None:
        raise Problem("not_found", f"no {kind} {digest[:64]!r} is stored; GET /v1/{KINDS[kind].path} lists them")
    return stored


def wire(kind: Kind, digest: str, body: str) -> bytes:
    """Return a node's wire form. `document` is the canonical text that the digest names, byte for byte."""
    links = {"self": kind.address(digest), **kind.links(kind.address(digest), json.loads(body))}
    return f'{{"kind":"{kind.name}","digest":"{digest}","document":{body},"links":'.encode() + json_bytes(links) + b"}"


def _add(kind: Kind) -> None:
    def nodes(state: Running, query: Annotated[NodesQuery, Query()]) -> dict[str, Any]:
        filters = query.model_dump(exclude_none=True, exclude={"limit", "cursor"})
        of = {"list": kind.path, **filters}
        limit = page_limit(query.limit, state.settings.page_max)
        page = state.store.page(kind.name, limit, filters=filters, after=decode_cursor(query.cursor, of))
        return listing([_summary(state, kind, row) for row in page.rows], page.following, of)

    def node(digest: str, request: Request, state: Running) -> Response:
        body = stored_node(state, kind.name, digest).body
        if kind.raw:
            return immutable(request, digest, body.encode(), "text/plain; charset=utf-8")
        return immutable(request, digest, wire(kind, digest, body))

    nodes.__doc__, node.__doc__ = f"Return one page: {kind.meaning}.", f"Return one of: {kind.meaning}."
    router.add_api_route(
        f"/{kind.path}",
        nodes,
        methods=["GET"],
        summary=f"List {kind.path}",
        operation_id=f"list_{kind.path}",
        response_model=Listing,
    )
    router.add_api_route(
        f"/{kind.path}/{{digest}}",
        node,
        methods=["GET"],
        summary=f"One {kind.name}",
        operation_id=f"get_{kind.name}",
        response_model=None if kind.raw else dict[str, Any],
        response_class=PlainTextResponse if kind.raw else JSONResponse,
    )


def _summary(state: State, kind: Kind, row: Any) -> dict[str, Any]:
    facets = {name: getattr(row, name) for name in ("form", "dtype", "rows", "width", "recipe")}
    found = {name: value for name, value in facets.items() if value is not None}
    if kind.name == "profile":
        entry = next((e for e in state.profiles if e.profile.digest == row.digest), None)
        if entry is not None:  # one imported since this process started is known after a restart
            found |= {"name": entry.profile.name, "regime": entry.profile.regime}
            found |= {"standing": entry.standing, "active": entry.active, "target": entry.profile.target.facts()}
    links = {"self": kind.address(row.digest)}
    return {"digest": row.digest, **found, "stored_at_ms": row.stored_at_ms, "links": links}


for _kind in KINDS.values():
    if _kind.name != "residual":  # listed with its numbers, by server.routes.residuals
        _add(_kind)
