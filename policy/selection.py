"""A selection: one decision, its reason and its whole provenance, as a frozen value whose id is a digest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from features.proof import Proved, Refused
from features.workload import Workload
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.recipes import Recipe
from kernels.target import Target

SELECTION_SCHEMA = "rowsmith.selection/1"
SCORE_NOTE = "Scores rank recipes; a score is not promised to be a run time."


@frozen(slots=True)
class Priced:
    """A named feature value with its unit."""

    name: str
    value: int | float
    unit: str


@frozen(slots=True)
class Candidate:
    """One recipe of the catalogue as the decision saw it.

    `excluded` is the code and the fact that kept a proved recipe from competing; `score_us` is None where it was not
    scored.
    """

    recipe: Recipe
    proof: Proved | Refused
    receipt: Receipt | None = None
    excluded: Refused | None = None
    features: tuple[Priced, ...] = ()
    score_us: float | None = None

    @property
    def eligible(self) -> bool:
        """Whether it may be chosen: proved, not excluded and scored."""
        return isinstance(self.proof, Proved) and self.excluded is None and self.score_us is not None

    def facts(self) -> dict[str, Any]:
        """Return the candidate as JSON-ready facts."""
        proved = isinstance(self.proof, Proved)
        return {
            "recipe": self.recipe.id,
            "role": self.recipe.role,
            "numerics": self.recipe.numerics,
            "experimental": self.recipe.experimental,
            "proved": proved,
            "proof": self.proof.facts if isinstance(self.proof, Proved) else None,
            "refused": None if isinstance(self.proof, Proved) else _refusal(self.proof),
            "excluded": None if self.excluded is None else _refusal(self.excluded),
            "receipt": None if self.receipt is None else self.receipt.facts(),
            "features": [{"name": f.name, "value": f.value, "unit": f.unit} for f in self.features],
            "score_us": self.score_us,
            "eligible": self.eligible,
        }


@frozen(slots=True)
class Decision:
    """What was chosen and why. `policy_recipe` is the policy's own pick, which `forced` may override."""

    recipe: str
    reason: str
    sentence: str
    policy_recipe: str
    policy_reason: str
    score_us: float | None
    original_score_us: float | None
    runner_up: str | None
    runner_up_score_us: float | None
    differences: tuple[tuple[str, Any, Any], ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return the decision as JSON-ready facts. Ratio and margin are for reading; nothing is decided by them."""
        return {
            "recipe": self.recipe,
            "reason": self.reason,
            "sentence": self.sentence,
            "policy_recipe": self.policy_recipe,
            "policy_reason": self.policy_reason,
            "score_us": self.score_us,
            "original_score_us": self.original_score_us,
            "ratio": _ratio(self.score_us, self.original_score_us),
            "runner_up": self.runner_up,
            "runner_up_score_us": self.runner_up_score_us,
            "margin": _ratio(self.runner_up_score_us, self.score_us),
            "target_differences": [
                {"field": name, "profile": ours, "request": theirs} for name, ours, theirs in self.differences
            ],
            "note": SCORE_NOTE,
        }


@frozen(slots=False)
class Selection:
    """One decision with every candidate, and the digests of everything it rests on."""

    workload: Workload
    target: Target
    provenance: Mapping[str, Any]
    decision: Decision
    candidates: tuple[Candidate, ...]
    facts: Mapping[str, Any] = field(eq=False, repr=False)
    id: str

    def candidate(self, recipe_id: str) -> Candidate:
        """Return the candidate with this recipe id."""
        return next(candidate for candidate in self.candidates if candidate.recipe.id == recipe_id)


def selection(
    workload: Workload,
    target: Target,
    provenance: Mapping[str, Any],
    decision: Decision,
    candidates: tuple[Candidate, ...],
) -> Selection:
    """Assemble a selection; its id is the digest of its facts, which hold no clock, host or way of observing."""
    facts = {
        "schema": SELECTION_SCHEMA,
        "decision": decision.facts(),
        "workload": workload.facts(),
        "target": {"digest": target.digest(), **target.facts()},
        "provenance": provenance,
        "candidates": [candidate.facts() for candidate in candidates],
    }
    return Selection(workload, target, provenance, decision, candidates, facts, digest(facts))


def _refusal(refused: Refused) -> dict[str, str]:
    return {"code": refused.code, "fact": refused.fact}


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator
