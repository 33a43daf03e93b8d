"""The decision: one pure function from a workload, a target, a profile and receipts to a `Selection`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from features.proof import Proved, Refused, candidates
from features.schema import point
from features.schemas import SCHEMAS
from features.workload import Workload
from kernels.receipt import RESOURCES, Receipt
from kernels.recipes import ORIGINAL, Recipe
from kernels.source import SourceIdentity, catalogue_digest, identity
from kernels.target import Target
from policy.errors import RequestError
from policy.explain import sentence
from policy.profile import Block, Fit, Profile
from policy.selection import Candidate, Decision, Priced, Selection, selection

# A recipe must be predicted to save more than 5 %: below that the two are not told apart by a model whose residuals
# are of that size. From the first research report; compared in float64, strictly.
ADMISSION = 0.95

ReceiptSource = Callable[[Recipe, str], Receipt | None]


@frozen
class Catalogue:
    """The kernels this release would run: the digest of the whole, and the source identity of each."""

    digest: str
    identity: Callable[[Recipe, str], SourceIdentity]


def shipped_catalogue() -> Catalogue:
    """Return the catalogue of the files in this installation."""
    return Catalogue(catalogue_digest(), identity)


def recorded(profile: Profile) -> ReceiptSource:
    """Return a source that answers with the receipts the profile was calibrated with."""
    return lambda recipe, dtype: profile.recorded.get((recipe.id, dtype))


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
    receipts : asked once for each recipe that is proved, in catalogue order.
    forced : a recipe id to run instead of the policy's pick; it must be proved and have a clean receipt.

    Raises
    ------
    ProgramError : no kernel runs the program.
    RequestError : the forced recipe is unknown, of another program, not legal here or without a clean receipt.
    """
    catalogue = catalogue or shipped_catalogue()
    judged = candidates(workload)
    form = judged[0][0].form
    fit = profile.fit(form)
    differences = profile.target.differences(target)
    usable = fit if not differences else None
    seen = tuple(
        _candidate(workload, target, profile, usable, receipts, catalogue, recipe, proof) for recipe, proof in judged
    )
    decision = _decide(workload, profile, fit, seen, differences, catalogue)
    if forced is not None:
        decision = _force(seen, decision, forced)
    provenance: dict[str, Any] = {
        "profile": profile.digest,
        "profile_name": profile.name,
        "regime": profile.regime,
        "fit": None if fit is None else fit.digest,
        "cohort": None if fit is None else fit.cohort,
        "feature_schema": None if fit is None else fit.feature_schema,
        "feature_schema_digest": None if fit is None else fit.feature_schema_digest,
        "catalogue": catalogue.digest,
        "admission": ADMISSION,
    }
    return selection(workload, target, provenance, decision, seen)


def _candidate(
    workload: Workload,
    target: Target,
    profile: Profile,
    fit: Fit | None,
    receipts: ReceiptSource,
    catalogue: Catalogue,
    recipe: Recipe,
    proof: Proved | Refused,
) -> Candidate:
    """Judge one recipe as far as the facts allow: receipt, features, domain, score."""
    if isinstance(proof, Refused):
        return Candidate(recipe, proof)
    receipt = receipts(recipe, workload.dtype)
    if recipe.role != ORIGINAL:
        excluded = exclusion(recipe, workload.dtype, receipt, target, profile, catalogue)
        if excluded is not None:
            return Candidate(recipe, proof, receipt, excluded)
    block = None if fit is None else fit.block(recipe.role, workload.dtype)
    if fit is None or block is None:
        return Candidate(recipe, proof, receipt)
    capacity = None if receipt is None else receipt.resident_ctas_per_sm
    schema = SCHEMAS[fit.feature_schema]
    values = schema.vector(recipe.role, point(workload, recipe, capacity, target))
    features = tuple(
        [Priced(f.name, value, f.unit) for f, value in zip(schema.roles[recipe.role], values, strict=True)]
    )
    outside = _outside(features, block)
    if outside is not None:
        return Candidate(recipe, proof, receipt, outside, features)
    unearned = None
    if recipe.experimental and recipe.id not in profile.earned:
        unearned = Refused("experimental_not_earned", f"{recipe.id} is experimental and profile {profile.name} earned none")
    return Candidate(recipe, proof, receipt, unearned, features, score(values, block.coefficients))


def exclusion(
    recipe: Recipe, dtype: str, receipt: Receipt | None, target: Target, profile: Profile, catalogue: Catalogue
) -> Refused | None:
    """Return why a recipe's receipt keeps it from competing, or None where it is clean."""
    if receipt is None:
        return Refused("resource_unknown", f"no receipt of {recipe.id} for {dtype}")
    if receipt.failure is not None:
        return Refused("compile_failed", receipt.failure)
    now, calibrated = catalogue.identity(recipe, dtype), profile.recorded.get((recipe.id, dtype))
    for name, theirs in (("source", receipt.source), ("options", receipt.options)):
        ours = getattr(now, name)
        if theirs != ours:
            return Refused("source_changed", f"the receipt's {name} {theirs[:12]} is not the catalogue's {ours[:12]}")
        if calibrated is None or getattr(calibrated, name) != theirs:
            known = "none" if calibrated is None else getattr(calibrated, name)[:12]
            return Refused("source_changed", f"the receipt's {name} {theirs[:12]} is not the profile's, {known}")
    for name in RESOURCES:
        if getattr(receipt, name) is None:
            return Refused("resource_unknown", f"{name} of {recipe.id} is unknown")
    if receipt.local_bytes:
        return Refused("local_memory", f"{recipe.id} uses {receipt.local_bytes} bytes of local memory a thread")
    if receipt.resident_ctas_per_sm == 0:
        return Refused("zero_capacity", f"no CTA of {recipe.id} fits on an SM")
    contradiction = _contradiction(recipe, receipt, target)
    return None if contradiction is None else Refused("launch_contradiction", contradiction)


def _contradiction(recipe: Recipe, receipt: Receipt, target: Target) -> str | None:
    """Return how complete receipt facts contradict the launch or one another, or None."""
    facts = {name: int(getattr(receipt, name)) for name in RESOURCES}
    capacity, shared = facts["resident_ctas_per_sm"], facts["static_shared_bytes"] + facts["dynamic_shared_bytes"]
    limits = (
        ("threads a CTA", recipe.threads, facts["max_threads_per_cta"]),
        ("resident threads an SM", capacity * recipe.threads, target.threads_per_sm),
        ("resident CTAs an SM", capacity, target.ctas_per_sm),
        ("resident registers an SM", capacity * recipe.threads * facts["registers"], target.registers_per_sm),
        ("shared bytes a CTA", shared, target.shared_optin_bytes_per_cta),
        ("resident shared bytes an SM", capacity * shared, target.shared_bytes_per_sm),
        ("CTAs a cluster", facts["cluster_ctas"], 1),
    )
    for name, value in facts.items():
        if value < 0:
            return f"{name} is {value}, below zero"
    for name, value in (("registers", facts["registers"]), ("cluster_ctas", facts["cluster_ctas"])):
        if value == 0:
            return f"{name} is 0, which no kernel can be"
    for meaning, needed, available in limits:
        if needed > available:
            return f"{meaning}: {needed} needed and {available} available"
    return None


def score(values: tuple[int | float, ...], coefficients: tuple[float, ...]) -> float:
    """Return the dot product in microseconds, added left to right: a BLAS dot differs in the last bit now and then."""
    total = 0.0
    for value, coefficient in zip(values, coefficients, strict=True):
        total += value * coefficient
    return total


def _outside(features: tuple[Priced, ...], block: Block) -> Refused | None:
    for feature, (low, high) in zip(features, block.ranges, strict=True):
        if not low <= feature.value <= high:
            fact = f"{feature.name} is {feature.value} {feature.unit}; calibrated from {low:.17g} to {high:.17g}"
            return Refused("outside_calibrated_domain", fact)
    return None


def _decide(
    workload: Workload,
    profile: Profile,
    fit: Fit | None,
    seen: tuple[Candidate, ...],
    differences: tuple[tuple[str, Any, Any], ...],
    catalogue: Catalogue,
) -> Decision:
    """Give the reason of the first step that decides."""
    original, others = seen[0], seen[1:]
    ranked = sorted((c for c in others if c.eligible), key=lambda c: (c.score_us, c.recipe.id))
    best, second = (*ranked, None, None)[:2]
    kept = original.recipe.id
    if not any(isinstance(c.proof, Proved) for c in others):
        reason = "no_proved_recipe"
    elif differences:
        reason = "target_mismatch"
    elif fit is None or original.score_us is None and original.excluded is None:
        reason = "no_fit"
    elif not _original_as_calibrated(original, workload.dtype, profile, catalogue):
        reason = "no_fit"
    elif original.excluded is not None:
        reason = "outside_calibrated_domain"
    elif best is None:
        reason = "no_eligible_recipe"
    elif _admits(best, original):
        reason, kept = "admitted", best.recipe.id
    else:
        reason = "not_below_threshold"
    chosen, other = (best, second) if reason == "admitted" else (original, best)
    assert chosen is not None
    return Decision(
        recipe=kept,
        reason=reason,
        sentence=sentence(reason, chosen, original, other, seen, profile, differences),
        policy_recipe=kept,
        policy_reason=reason,
        score_us=chosen.score_us,
        original_score_us=original.score_us,
        runner_up=None if other is None else other.recipe.id,
        runner_up_score_us=None if other is None else other.score_us,
        differences=differences,
    )


def _admits(best: Candidate, original: Candidate) -> bool:
    assert best.score_us is not None and original.score_us is not None
    return best.score_us < ADMISSION * original.score_us


def _original_as_calibrated(original: Candidate, dtype: str, profile: Profile, catalogue: Catalogue) -> bool:
    calibrated = profile.recorded.get((original.recipe.id, dtype))
    now = catalogue.identity(original.recipe, dtype)
    return calibrated is not None and (calibrated.source, calibrated.options) == (now.source, now.options)


def _force(seen: tuple[Candidate, ...], policy: Decision, forced: str) -> Decision:
    named = next((c for c in seen if c.recipe.id == forced), None)
    if named is None:
        known = ", ".join(c.recipe.id for c in seen)
        raise RequestError(f"recipe {forced!r} is none of this program's; use one of {known}")
    if isinstance(named.proof, Refused):
        raise RequestError(f"recipe {forced} is not legal here: {named.proof.fact}")
    if named.excluded is not None and named.excluded.code not in ("outside_calibrated_domain", "experimental_not_earned"):
        raise RequestError(f"recipe {forced} has no clean receipt: {named.excluded.fact}")
    return Decision(
        recipe=forced,
        reason="forced",
        sentence=f"{forced} was named by the request; the policy would run {policy.recipe} ({policy.reason}).",
        policy_recipe=policy.recipe,
        policy_reason=policy.reason,
        score_us=named.score_us,
        original_score_us=policy.original_score_us,
        runner_up=policy.runner_up,
        runner_up_score_us=policy.runner_up_score_us,
        differences=policy.differences,
    )
