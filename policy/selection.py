"""A selection: one decision, its reason and its whole provenance, as a frozen value whose id is a digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from features.workload import Workload
from kernels.identity import digest_bytes
from kernels.target import Target
from policy.provenance import Provenance
from policy.record import SCORE_NOTE, SELECTION_SCHEMA, selection_text
from policy.values import Candidate, Decision, Priced

__all__ = ["SCORE_NOTE", "SELECTION_SCHEMA", "Candidate", "Decision", "Priced", "Selection", "selection"]


@frozen
class Selection:
    """One decision with every candidate, and the digests of everything it rests on.

    `body` is the canonical JSON of the facts, and `id` its SHA-256.
    """

    workload: Workload
    target: Target
    provenance: Mapping[str, Any]
    decision: Decision
    candidates: tuple[Candidate, ...]
    body: str = field(eq=False, repr=False)
    id: str

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """The record, read back from its text."""
        facts: Mapping[str, Any] = json.loads(self.body)
        return facts

    def candidate(self, recipe_id: str) -> Candidate:
        """Return the candidate with this recipe id."""
        return next(candidate for candidate in self.candidates if candidate.recipe.id == recipe_id)


def selection(
    workload: Workload,
    target: Target,
    provenance: Provenance,
    decision: Decision,
    candidates: tuple[Candidate, ...],
) -> Selection:
    """Assemble a selection and name it by its facts."""
    body = selection_text(workload, target, provenance, decision, candidates)
    digest = digest_bytes(body.encode())
    return Selection(workload, target, provenance.facts, decision, candidates, body, digest)
