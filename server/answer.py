"""The answer to a question: the stored facts' own bytes, with id, observation and links around them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.recipes import recipe
from policy.selection import Selection
from server.live import Live
from server.node import SELECTION, Node, Stored, node_of

Links = Mapping[str, str]
_compact = json.JSONEncoder(separators=(",", ":")).encode


def node_of_selection(selection: Selection, live: Live | None) -> Node:
    """Return what is stored of a selection that was just made; its body names it."""
    work, decision = selection.workload, selection.decision
    return Node(
        SELECTION,
        selection.id,
        selection.body,
        observed=_observed(live),
        parent=selection.provenance["profile"],
        form=selection.candidates[0].recipe.form,
        dtype=work.dtype,
        rows=work.rows,
        width=work.width,
        recipe=decision.recipe,
        reason=decision.reason,
    )


def node_of_facts(facts: Mapping[str, Any]) -> Node:
    """Return what is stored of a selection that was made elsewhere, with recorded receipts."""
    work, decision = facts["workload"], facts["decision"]
    return node_of(
        SELECTION,
        facts,
        observed=_observed(None),
        parent=facts["provenance"]["profile"],
        form=recipe(facts["candidates"][0]["recipe"]).form,
        dtype=work["dtype"],
        rows=work["rows"],
        width=work["width"],
        recipe=decision["recipe"],
        reason=decision["reason"],
    )


def _observed(live: Live | None) -> str:
    """Return where the receipts come from; `at` is when the live GPU was asked."""
    return _compact({"receipts": "recorded", "at": None} if live is None else {"receipts": "live", "at": live.at})


def links_of(selection: Selection) -> Links:
    """Return the addresses that lead from a selection that was just made down to raw samples."""
    receipts = [(c.recipe.id, _digest_of(c.receipt)) for c in selection.candidates if c.receipt is not None]
    return _links(selection.id, selection.provenance, selection.workload.dtype, receipts)


def _links_of_facts(selection_id: str, facts: Mapping[str, Any]) -> Links:
    """Return the same addresses from the stored facts."""
    receipts = [(c["recipe"], digest(c["receipt"])) for c in facts["candidates"] if c["receipt"] is not None]
    return _links(selection_id, facts["provenance"], facts["workload"]["dtype"], receipts)


def _links(selection_id: str, provenance: Mapping[str, Any], dtype: str, receipts: Iterable[tuple[str, str]]) -> Links:
    here = f"/v1/selections/{selection_id}"
    links = {"self": here, "verify": f"{here}/verify", "profile": f"/v1/profiles/{provenance['profile']}"}
    if provenance["fit"] is not None:
        cohort = f"/v1/cohorts/{provenance['cohort']}"
        links |= {
            "fit": f"/v1/fits/{provenance['fit']}",
            "cohort": cohort,
            "geometries": f"{cohort}/geometries?dtype={dtype}",
            "samples": f"{cohort}/samples?dtype={dtype}",
        }
    return links | {f"receipt {recipe}": f"/v1/receipts/{name}" for recipe, name in receipts}


@lru_cache(maxsize=4096)  # receipts are few
def _digest_of(receipt: Receipt) -> str:
    return digest(receipt.facts())


def answer_bytes(stored: Stored, links: Links) -> bytes:
    """Return the body of the answer. The facts are spliced in as they were digested, never encoded again."""
    tail = f'"observed":{stored.observed},"links":{_compact(links)}'
    return f'{{"id":"{stored.digest}",{stored.body[1:-1]},{tail}}}'.encode()


def stored_answer(stored: Stored) -> bytes:
    """Return the answer of a selection read from the store: the same bytes that were given when it was asked."""
    return answer_bytes(stored, _links_of_facts(stored.digest, json.loads(stored.body)))
