"""Asking, and what was answered: selections by list, by id, and replayed."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from features.program import program_of
from features.proof import form_of
from policy.profile import profile_from_document
from policy.reasons import DECISION, REASONS
from policy.replay import replay
from server.answer import stored_answer
from server.asking import Judged
from server.body import read_body
from server.errors import Problem, problem_of
from server.node import SELECTION, Stored
from server.paging import decode_cursor, immutable, json_bytes, listing, page_limit
from server.state import Running, State
from server.strict_json import read_json, show
from server.wire import Answered, Batch, Listing, Question, SelectionsQuery

router = APIRouter(prefix="/v1", tags=["selections"])


def _asks(model: type[Question] | type[Batch]) -> dict[str, Any]:
    """Document a body that the pipeline itself reads and judges."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/selections",
    status_code=201,
    summary="Pick a recipe for a shape and dtype",
    response_model=Answered,
    responses={200: {"model": Answered, "description": "Known already: the same body"}},
    openapi_extra=_asks(Question),
)
async def ask(request: Request, state: Running) -> Response:
    """Answer as `server.front` does, which takes this address before it is routed here."""
    limit, timeout_s = state.settings.body_max_bytes, state.settings.body_timeout_s
    raw = await read_body(request.scope["headers"], request.receive, limit, timeout_s)
    answer = state.asking.known(raw) or await state.asking.answer(raw)
    headers = {"location": answer.location, "cache-control": "no-store"}
    return Response(answer.body, 201 if answer.new else 200, headers, media_type="application/json")


@router.post(
    "/selections:batch",
    summary="Many questions; one bad item is one item's error",
    response_model=Listing,
    openapi_extra=_asks(Batch),
)
async def ask_many(request: Request, state: Running) -> Response:
    """Answer each item with its status and selection or problem, in order."""
    limit, timeout_s = state.settings.batch_body_max_bytes, state.settings.body_timeout_s
    raw = await read_body(request.scope["headers"], request.receive, limit, timeout_s)
    items = _items(read_json(raw), state.settings.batch_max_items)
    parts = await asyncio.to_thread(_answer_all, state, items)
    body = b'{"items":[' + b",".join(parts) + b'],"next":null}'
    return Response(body, headers={"cache-control": "no-store"}, media_type="application/json")


def _items(value: Any, most: int) -> list[Any]:
    if not isinstance(value, dict) or set(value) != {"items"} or not isinstance(value["items"], list):
        raise Problem("request_invalid", 'a batch is {"items": [question, …]}; each item is a body of /v1/selections')
    items: list[Any] = value["items"]
    if not 1 <= len(items) <= most:
        detail = f"the batch has {len(items)} items; send 1 to {most}"
        raise Problem("request_invalid", detail, field="items")
    return items


_Waiting = tuple[Judged, Future[tuple[Stored, ...]]] | Exception


def _answer_all(state: State, items: list[Any]) -> list[bytes]:
    """Decide every item, submit them all, then wait: they share transactions, and one failure stays alone."""
    waiting: list[_Waiting] = []
    for item in items:
        try:
            judged = state.asking.judge(item)
            waiting.append((judged, state.store.writer.submit_from_thread((judged.node,))))
        except Exception as error:  # noqa: BLE001 - an item's error is that item's answer
            waiting.append(error)
    return [_part(entry) for entry in waiting]


def _part(entry: _Waiting) -> bytes:
    try:
        if isinstance(entry, Exception):
            raise entry
        judged, future = entry
        answer = judged.answer(future.result()[0])
    except Exception as error:  # noqa: BLE001 - an item's error is that item's answer
        problem = problem_of(error)
        return json_bytes({"status": problem.status, "problem": problem.document()})
    return b'{"status":%d,"selection":%b}' % (201 if answer.new else 200, answer.body)


@router.get("/selections", summary="Selections, newest first", response_model=Listing)
def selections(state: Running, query: Annotated[SelectionsQuery, Query()]) -> dict[str, Any]:
    """Return one page of the selections that have these facets."""
    given = query.model_dump(exclude_none=True, exclude={"limit", "cursor"})
    filters = dict(given)
    if (op := filters.pop("op", None)) is not None:
        filters["form"] = form_of(program_of(op, "float32"))
    if (profile := filters.pop("profile", None)) is not None:
        filters["parent"] = profile
    _judge_reason(query.reason)
    of = {"list": "selections", **given}
    limit = page_limit(query.limit, state.settings.page_max)
    page = state.store.page(SELECTION, limit, filters=filters, after=decode_cursor(query.cursor, of), newest_first=True)
    return listing([_summary(row) for row in page.rows], page.following, of)


def _judge_reason(code: str | None) -> None:
    known = [reason.code for reason in REASONS.values() if DECISION in reason.of]
    if code is not None and code not in known:
        detail = f"reason {show(code)} is none that a decision carries; use {', '.join(known)}"
        raise Problem("query_invalid", detail, field="reason")


def _summary(row: Any) -> dict[str, Any]:
    return {
        "id": row.digest,
        "form": row.form,
        "dtype": row.dtype,
        "rows": row.rows,
        "width": row.width,
        "recipe": row.recipe,
        "reason": row.reason,
        "profile": row.parent,
        "stored_at_ms": row.stored_at_ms,
        "links": {"self": f"/v1/selections/{row.digest}"},
    }


def _stored(state: State, selection_id: str) -> Stored:
    stored = state.store.get(SELECTION, selection_id)
    if stored is None:
        raise Problem("not_found", f"no selection {selection_id[:64]!r} is stored; POST /v1/selections makes them")
    return stored


@router.get("/selections/{selection_id}", summary="One selection, as it was answered", response_model=Answered)
def selection(selection_id: str, request: Request, state: Running) -> Response:
    """Return the same bytes that were answered when it was asked."""
    return immutable(request, selection_id, stored_answer(_stored(state, selection_id)))


@router.get("/selections/{selection_id}/verify", summary="Replay a selection from its stored facts")
def verify(selection_id: str, state: Running) -> dict[str, Any]:
    """Recompute id, features, scores and decision; what has changed since is told apart from arithmetic."""
    facts = json.loads(_stored(state, selection_id).body)
    digest = facts["provenance"]["profile"]
    found = state.store.get("profile", digest)
    profile = None if found is None else profile_from_document(json.loads(found.body), digest)
    return replay(selection_id, facts, profile).report()
