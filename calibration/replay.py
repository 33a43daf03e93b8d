"""Replaying selections: the decision taken again from recorded receipts and the packet's own sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibration.compare import Finding, differences
from calibration.records import Geometry
from calibration.sources import Identities
from features.schemas import SCHEMAS
from kernels.identity import digest
from kernels.recipe import ORIGINAL, Recipe
from kernels.source import SourceIdentity, catalogue_digest
from policy.profile import Profile
from policy.select import ADMISSION, Catalogue, recorded, score, select

PART = "selections.jsonl"


def replay(facts: Mapping[str, Any], record: Geometry, profile: Profile, identities: Identities) -> Iterator[Finding]:
    """Yield where a stored selection differs from the decision on the record's workload, target and profile.

    With another catalogue than this release's, candidates cannot be listed again; then the stored facts are checked
    against the profile: every score, every range, and the decision that follows from them.
    """
    name = f"selection {digest(facts)[:12]} of {record.label}"
    if facts["provenance"]["catalogue"] != catalogue_digest():
        yield from arithmetic(name, facts, profile)
        return

    def identity(recipe: Recipe, dtype: str) -> SourceIdentity:
        return identities[recipe.id, dtype]

    again = select(
        record.workload,
        profile.target,
        profile,
        recorded(profile),
        catalogue=Catalogue(catalogue_digest(), identity),
    )
    if again.id != digest(facts):
        yield from differences(PART, name, again.facts, facts, 0.0)


def arithmetic(name: str, facts: Mapping[str, Any], profile: Profile) -> Iterator[Finding]:
    """Yield where stored candidates and decision contradict the profile's coefficients, ranges or admission rule."""
    provenance = facts["provenance"]
    if provenance["profile"] != profile.digest:
        yield Finding(PART, f"{name} profile", profile.digest, provenance["profile"])
    fit = next((fit for fit in profile.fits if fit.digest == provenance["fit"]), None)
    if fit is None:
        return
    for candidate in facts["candidates"]:
        block = fit.block(candidate["role"], facts["workload"]["dtype"])
        if block is None or candidate["score_us"] is None:
            continue
        where = f"{name} candidate {candidate['recipe']}"
        columns = [feature.name for feature in SCHEMAS[fit.feature_schema].roles[candidate["role"]]]
        yield from differences(PART, f"{where} features", columns, [f["name"] for f in candidate["features"]])
        values = tuple(feature["value"] for feature in candidate["features"])
        if len(values) == len(block.coefficients):
            yield from differences(
                PART, f"{where} score_us", score(values, block.coefficients), candidate["score_us"], 0.0
            )
        for column, value, (low, high) in zip(columns, values, block.ranges, strict=False):
            if candidate["eligible"] and not low <= value <= high:
                yield Finding(PART, f"{where} {column}", f"within {low} to {high}", value)
    yield from _decision(name, facts)


def _decision(name: str, facts: Mapping[str, Any]) -> Iterator[Finding]:
    candidates, decision = facts["candidates"], facts["decision"]
    original = next(c for c in candidates if c["role"] == ORIGINAL)
    eligible = [c for c in candidates if c["role"] != ORIGINAL and c["eligible"]]
    best = min(eligible, key=lambda c: (c["score_us"], c["recipe"]), default=None)
    scored = best is not None and original["eligible"]
    admitted = scored and best is not None and best["score_us"] < ADMISSION * original["score_us"]
    expected = best["recipe"] if admitted and best is not None else original["recipe"]
    if decision["policy_recipe"] != expected:
        yield Finding(PART, f"{name} policy_recipe", expected, decision["policy_recipe"])


def catalogue_notes(selections: Sequence[Mapping[str, Any]], made_with: str | None) -> tuple[str, ...]:
    """Return a sentence for each catalogue, of the selections or of the sweep, that is not this release's."""
    ours = catalogue_digest()
    named = {facts["provenance"]["catalogue"] for facts in selections} | ({made_with} if made_with else set())
    return tuple(
        f"made with catalogue {other[:12]}, and this release holds {ours[:12]}: "
        "stored facts were checked, candidates not listed again"
        for other in sorted(named - {ours})
    )
