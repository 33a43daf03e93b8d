"""The decision: one pure function from a workload, a target, a profile and receipts to a `Selection`."""

from __future__ import annotations

from typing import Any

from features.errors import Refused
from features.proof import Proved, candidates
from features.schema import point
from features.workload import Workload
from kernels.target import Target
from policy.catalogue import Catalogue, ReceiptSource, recorded, shipped_catalogue
from policy.deciding import ADMISSION, Findings, admits, changed, covers, steps
from policy.explain import Story, sentence
from policy.forcing import force
from policy.profile import Fit, Profile
from policy.provenance import provenance
from policy.scoring import outside, score
from policy.selection import Candidate, Decision, Selection, selection
from policy.standing import Standing, standing

__all__ = ["ADMISSION", "Catalogue", "ReceiptSource", "recorded", "score", "select", "shipped_catalogue"]


def select(
    workload: Workload,
    target: Target,
    profile: Profile,
    receipts: ReceiptSource,
    *,
    catalogue: Catalogue | None = None,
    forced: str | None = None,
) -> Selection:
    """Choose a recipe for the workload and say why; the same inputs give the same bytes in every process.

    Parameters
    ----------
    receipts : asked once for each recipe that is proved, in catalogue order, the original first.
    forced : a recipe id to run instead of the policy's pick; it must be proved and have a clean receipt.

    Raises
    ------
    ProgramError : no kernel runs the program.
    PolicyError : the original cannot be compiled.
    RequestError : the forced recipe is unknown, of another program, not legal here or without a clean receipt.
    """
    catalogue = catalogue or shipped_catalogue()
    judged = candidates(workload)
    fit = profile.fit(judged[0][0].family)
    differences = () if target == profile.target else profile.target.differences(target)
    usable = None if differences else fit
    seen = tuple(
        [
            Candidate(recipe, proof)
            if isinstance(proof, Refused)
            else _candidate(
                workload, target, proof, standing(recipe, workload.dtype, target, profile, usable, receipts, catalogue)
            )
            for recipe, proof in judged
        ]
    )
    decision = _decide(workload, profile, fit, seen, differences, catalogue)
    if forced is not None:
        decision = force(seen, decision, forced)
    return selection(workload, target, provenance(profile, fit, catalogue), decision, seen)


def _candidate(workload: Workload, target: Target, proof: Proved, stands: Standing) -> Candidate:
    """Judge one proved recipe as far as the facts allow: receipt, features, domain, score."""
    recipe, receipt, pricing = stands.recipe, stands.receipt, stands.pricing
    if stands.excluded is not None or pricing is None:
        return Candidate(recipe, proof, receipt, stands.excluded or stands.unpriced)
    capacity = None if receipt is None else receipt.capacity
    at = point(workload, recipe, capacity, target)
    values = tuple([feature.of(at) for feature in pricing.features])
    excluded = outside(pricing.features, values, pricing.block)
    if excluded is not None:
        return Candidate(recipe, proof, receipt, excluded, pricing, values)
    score_us = score(values, pricing.block.coefficients)
    return Candidate(recipe, proof, receipt, stands.unearned, pricing, values, score_us)


def _decide(
    workload: Workload,
    profile: Profile,
    fit: Fit | None,
    seen: tuple[Candidate, ...],
    differences: tuple[tuple[str, Any, Any], ...],
    catalogue: Catalogue,
) -> Decision:
    """Give the reason of the first step that decides, and what it is about."""
    original, others = seen[0], seen[1:]
    ranked = sorted((c for c in others if c.eligible), key=lambda c: (c.score_us, c.recipe.id))
    best, second = (*ranked, None, None)[:2]
    found = Findings(
        none_proved=not any(isinstance(c.proof, Proved) for c in others),
        other_target=bool(differences),
        no_fit=not covers(profile, fit, original.recipe, workload.dtype),
        original_changed=changed(profile, original.recipe, workload.dtype, catalogue),
        original_unknown=original.excluded is not None and original.excluded.code == "resource_unknown",
        none_clean=not any(c.clean for c in others),
        original_outside=original.score_us is None,
        none_eligible=best is None,
        admitted=best is not None and admits(best.score_us, original.score_us),
    )
    reason = next(reason for reason, decides in steps(found) if decides)
    chosen, other = (best, second) if reason == "admitted" and best is not None else (original, best)
    return Decision(
        recipe=chosen.recipe.id,
        reason=reason,
        sentence=sentence(reason, Story(chosen, original, other, seen, profile, differences)),
        policy_recipe=chosen.recipe.id,
        policy_reason=reason,
        score_us=chosen.score_us,
        original_score_us=original.score_us,
        runner_up=None if other is None else other.recipe.id,
        runner_up_score_us=None if other is None else other.score_us,
        differences=differences,
    )
