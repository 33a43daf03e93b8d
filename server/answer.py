"""The answer to a question: the stored facts' own bytes, with id, observation and links around them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kernels.recipes import recipe
from policy.selection import Selection
from server.live import Live
from server.node import SELECTION, Node, Stored, node_of

Links = Mapping[str, str]


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
    facts = {"receipts": "recorded" if live is None else "live", "at": None if live is None else live.at}
    return json.dumps(facts, separators=(",", ":"))


def links_of(selection_id: str, provenance: Mapping[str, Any], dtype: str) -> Links:
    """Return the addresses that lead from a selection down to raw samples."""
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
    return links


def answer_bytes(stored: Stored, links: Links) -> bytes:
    """Return the body of the answer. The facts are spliced in as they were digested, never encoded again."""
    tail = json.dumps(links, separators=(",", ":"))
    return f'{{"id":"{stored.digest}",{stored.body[1:-1]},"observed":{stored.observed},"links":{tail}}}'.encode()


def stored_answer(stored: Stored) -> bytes:
    """Return the answer of a selection read from the store: the same bytes that were given when it was asked."""
    facts = json.loads(stored.body)
    return answer_bytes(stored, links_of(stored.digest, facts["provenance"], facts["workload"]["dtype"]))
