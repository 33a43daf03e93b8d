"""The published head of the hash chain, and the place of each row in it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from server.errors import Problem
from server.kinds import KINDS
from server.state import Running

router = APIRouter(prefix="/v1", tags=["chain"])


@router.get("/chain", summary="Count and head of the chain over all stored rows")
def chain(state: Running) -> dict[str, Any]:
    """Keep what this returns: `rowsmith db verify` with it finds every later edit, cut or rewriting."""
    head = state.store.head()
    return {"count": head.count, "head": head.head}


@router.get("/chain/{seq}", summary="One row's place in the chain")
def link(seq: Annotated[int, Path(ge=1, lt=2**63)], state: Running) -> dict[str, Any]:
    """Return what the row is, and the chain values before and after it."""
    row = state.store.link_at(seq)
    if row is None:
        raise Problem("not_found", f"no row {seq} is stored; GET /v1/chain has the count")
    path = KINDS[row["kind"]].path if row["kind"] in KINDS else "selections"
    return {**row, "links": {"node": f"/v1/{path}/{row['digest']}"}}
