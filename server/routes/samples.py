"""Raw timing samples and the geometries of a cohort: the far end of every provenance chain."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from server.kinds import KINDS
from server.paging import decode_cursor, immutable, json_bytes, listing, next_link, page_limit
from server.routes.evidence import stored_node
from server.state import Running, State
from server.table_text import MEDIA_TYPE, csv_bytes
from server.wire import FormatQuery, GeometriesQuery, Listing, SamplesQuery

router = APIRouter(prefix="/v1", tags=["evidence"])

_COLUMNS = ("geometry", "form", "dtype", "rows", "width", "run", "name", "series", "index", "launches", "elapsed_ns")


@router.get("/geometries/{digest}/samples", summary="Raw samples of one geometry, JSON or CSV")
def samples(digest: str, request: Request, state: Running, query: Annotated[FormatQuery, Query()]) -> Response:
    """Return every sample in nanoseconds a replay; a launch took `elapsed_ns / launches`."""
    record = json.loads(stored_node(state, "geometry", digest).body)
    if query.format == "csv":
        return immutable(request, f"{digest}-csv", csv_bytes(_COLUMNS, _rows(digest, record)), MEDIA_TYPE)
    return immutable(request, f"{digest}-json", json_bytes(_of_geometry(digest, record)))


@router.get("/cohorts/{digest}/geometries", summary="A cohort's geometries, in canonical order", response_model=Listing)
def geometries(digest: str, state: Running, query: Annotated[GeometriesQuery, Query()]) -> dict[str, Any]:
    """Return one page of the geometries that the cohort names."""
    page, following, of = _page(state, digest, "geometries", query)
    return listing([_brief(name, record) for name, record in page], following, of)


@router.get("/cohorts/{digest}/samples", summary="A cohort's raw samples, JSON or CSV", response_model=Listing)
def cohort_samples(digest: str, state: Running, query: Annotated[SamplesQuery, Query()]) -> Response:
    """Return the samples of one page of geometries. In CSV the next page is in the Link header (RFC 8288)."""
    page, following, of = _page(state, digest, "samples", query)
    document = listing([_of_geometry(name, record) for name, record in page], following, of)
    if query.format == "json":
        return Response(json_bytes(document), media_type="application/json")
    given = {"dtype": query.dtype} if query.dtype else {}
    limit = page_limit(query.limit, state.settings.page_max)
    query_of_next = document["next"] and {**given, "format": "csv", "limit": limit, "cursor": document["next"]}
    headers = next_link(f"/v1/cohorts/{digest}/samples", query_of_next)
    rows = (row for name, record in page for row in _rows(name, record))
    return Response(csv_bytes(_COLUMNS, rows), headers=headers, media_type=MEDIA_TYPE)


@router.get("/cohorts/{digest}/receipts", summary="A cohort's receipts", response_model=Listing)
def receipts(digest: str, state: Running) -> dict[str, Any]:
    """Return the receipts that the cohort names, whole."""
    cohort = json.loads(stored_node(state, "cohort", digest).body)
    bodies = state.store.bodies("receipt", cohort["receipts"])
    kind = KINDS["receipt"]
    items = [
        {"digest": name, "document": json.loads(bodies[name]), "links": {"self": kind.address(name)}}
        for name in cohort["receipts"]
        if name in bodies
    ]
    return listing(items, None, {})


_Found = list[tuple[str, Mapping[str, Any]]]


def _page(state: State, digest: str, path: str, query: GeometriesQuery) -> tuple[_Found, int | None, dict[str, Any]]:
    """Return geometries of a cohort from a position in its own list on."""
    names = json.loads(stored_node(state, "cohort", digest).body)["geometries"]
    of = {"list": path, "cohort": digest, "dtype": query.dtype}
    position = decode_cursor(query.cursor, of) or 0
    limit = page_limit(query.limit, state.settings.page_max)
    found: _Found = []
    while position < len(names) and len(found) < limit:
        part = names[position : position + limit]
        bodies = state.store.bodies("geometry", part)
        for name in part:
            if len(found) == limit:
                break
            position += 1
            record = json.loads(bodies[name]) if name in bodies else None
            if record is not None and query.dtype in (None, record["dtype"]):
                found.append((name, record))
    return found, position if position < len(names) else None, of


def _brief(digest: str, record: Mapping[str, Any]) -> dict[str, Any]:
    here = KINDS["geometry"].address(digest)
    facts = {name: record[name] for name in ("form", "dtype", "rows", "width", "purpose", "run", "regime", "status")}
    return {"digest": digest, **facts, "links": {"self": here, "samples": f"{here}/samples"}}


def _of_geometry(digest: str, record: Mapping[str, Any]) -> dict[str, Any]:
    def told(measurements: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{name: m[name] for name in _KEPT if name in m} for m in measurements]

    later = [
        {"round": part["number"], "baseline": part["baseline"], "again": told(part["again"])}
        for part in record.get("joined", ())
    ]
    found = {**_brief(digest, record), "baseline": record["baseline"], "measurements": told(record["measurements"])}
    return {**found, "joined": later} if later else found


# A measurement that joined in a later round says which; the round holds the original that was timed beside it.
_KEPT = ("name", "kind", "status", "launches", "samples_ns", "recheck_ns", "throttled", "round")


def _rows(digest: str, record: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    point = (digest, record["form"], record["dtype"], record["rows"], record["width"], record["run"])
    series = [("baseline", "samples_ns", record["baseline"])] if record["baseline"] else []
    series += [(m["name"], name, m) for m in record["measurements"] for name in ("samples_ns", "recheck_ns")]
    again = [(f"{m['name']} in round {part['number']}", m) for part in record.get("joined", ()) for m in part["again"]]
    series += [(label, name, m) for label, m in again for name in ("samples_ns", "recheck_ns")]
    for name, which, part in series:
        for index, elapsed_ns in enumerate(part.get(which) or ()):
            yield (*point, name, which, index, part["launches"], elapsed_ns)
