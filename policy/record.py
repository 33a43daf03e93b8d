"""The stored text of a selection: canonical JSON, put together from its members in name order.

Encoding a whole record at once takes twice as long: half of it is receipts, target and names that are the same in every
record. `Selection.facts` is read back from this text, so there is one account of what a record holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from features.errors import Refused
from features.program import Program
from features.proof import Proved
from features.schema import Feature
from features.workload import Workload
from kernels.identity import canonical_json, canonical_number
from kernels.receipt import Receipt
from kernels.recipe import Recipe
from kernels.target import Target
from policy.provenance import Provenance
from policy.standing import Pricing
from policy.values import Candidate, Decision

SELECTION_SCHEMA = "rowsmith.selection/1"
SCORE_NOTE = "Scores rank recipes; a score is not promised to be a run time."


def selection_text(
    workload: Workload,
    target: Target,
    provenance: Provenance,
    decision: Decision,
    candidates: tuple[Candidate, ...],
) -> str:
    """Return the record; it holds no clock, host or way of observing."""
    return (
        f'{{"candidates":[{",".join([_candidate(candidate) for candidate in candidates])}],'
        f'"decision":{_decision(decision)},"provenance":{provenance.text},'
        f'"schema":"{SELECTION_SCHEMA}","target":{_target(target)},"workload":{_workload(workload)}}}'
    )


def _candidate(seen: Candidate) -> str:
    proof = seen.proof
    if isinstance(proof, Proved):
        proved, found, refused = "true", _proof(proof.facts), "null"
    else:
        proved, found, refused = "false", "null", _refusal(proof)
    return _form(seen.recipe, seen.receipt, seen.pricing) % (
        _scalar(seen.eligible),
        _refusal(seen.excluded),
        *[_number(value) for value in seen.values],
        found,
        proved,
        refused,
        _optional(seen.score_us),
    )


@lru_cache(maxsize=4096)  # recipes, receipts and features are few
def _form(recipe: Recipe, receipt: Receipt | None, pricing: Pricing | None) -> str:
    """Return the text of a candidate with %s for what depends on the geometry."""
    features = () if pricing is None else pricing.features
    return (
        f'{{"eligible":%s,"excluded":%s,"experimental":{_fixed(recipe.experimental)},'
        f'"features":[{",".join([_feature(feature) for feature in features])}],'
        f'"numerics":{_fixed(recipe.numerics)},"proof":%s,"proved":%s,'
        f'"receipt":{_fixed(None if receipt is None else receipt.facts())},"recipe":{_fixed(recipe.id)},'
        f'"refused":%s,"role":{_fixed(recipe.role)},"score_us":%s}}'
    )


def _proof(facts: Mapping[str, Mapping[str, Any]]) -> str:
    return f"{{{','.join([f'{_scalar(name)}:{_flat(facts[name])}' for name in sorted(facts)])}}}"


def _flat(facts: Mapping[str, Any]) -> str:
    names, form = _members(*facts)
    values = [facts[name] for name in names]
    return form % tuple([_number(value) if type(value) is int else _scalar(value) for value in values])


@lru_cache(maxsize=1024)  # proofs are few, and each finds facts of the same names
def _members(*names: str) -> tuple[tuple[str, ...], str]:
    """Return the names of an object's members in order, and its text with %s for their values."""
    ordered = tuple(sorted(names))
    return ordered, f"{{{','.join([f'{_fixed(name)}:%s' for name in ordered])}}}"


def _feature(feature: Feature) -> str:
    return f'{{"name":{_fixed(feature.name)},"unit":{_fixed(feature.unit)},"value":%s}}'


def _fixed(value: Any) -> str:
    """Return JSON text that stays as it is when a form is filled in."""
    return canonical_json(value).replace("%", "%%")


def _optional(value: float | None) -> str:
    return "null" if value is None else canonical_number(value)


def _refusal(refused: Refused | None) -> str:
    return "null" if refused is None else f'{{"code":{_scalar(refused.code)},"fact":{canonical_json(refused.fact)}}}'


# Most values stand in one record several times: of 50 feature values 20 differ. 1, 1.0 and true are not one value here.
_scalar = lru_cache(maxsize=512, typed=True)(canonical_json)
# Equal numbers have one text, whatever their type.
_number = lru_cache(maxsize=512)(canonical_number)


def _workload(workload: Workload) -> str:
    inner = "" if workload.inner == 1 else f'"inner":{workload.inner},'
    return (
        f'{{"alignment_bytes":{workload.alignment_bytes},"dtype":{_scalar(workload.dtype)},{inner}'
        f'"numerics":{_scalar(workload.numerics)},{_program(workload.program)},'
        f'"row_pitch":{workload.row_pitch},"rows":{workload.rows},"width":{workload.width}}}'
    )


# Targets come from requests, so what is kept of them is bounded.
@lru_cache(maxsize=256)
def _target(target: Target) -> str:
    return canonical_json({"digest": target.digest(), **target.facts()})


@lru_cache(maxsize=1024)
def _program(program: Program) -> str:
    return f'"program":{canonical_json(program.tree())},"program_digest":"{program.digest()}"'


def _decision(decision: Decision) -> str:
    """Ratio and margin are for reading; nothing is decided by them."""
    differences = [{"field": name, "profile": ours, "request": theirs} for name, ours, theirs in decision.differences]
    margin = _ratio(decision.runner_up_score_us, decision.score_us)
    return (
        f'{{"margin":{_optional(margin)},"note":"{SCORE_NOTE}",'
        f'"original_score_us":{_optional(decision.original_score_us)},'
        f'"policy_reason":{_scalar(decision.policy_reason)},'
        f'"policy_recipe":{_scalar(decision.policy_recipe)},'
        f'"ratio":{_optional(_ratio(decision.score_us, decision.original_score_us))},'
        f'"reason":{_scalar(decision.reason)},"recipe":{_scalar(decision.recipe)},'
        f'"runner_up":{_scalar(decision.runner_up)},"runner_up_score_us":{_optional(decision.runner_up_score_us)},'
        f'"score_us":{_optional(decision.score_us)},"sentence":{canonical_json(decision.sentence)},'
        f'"target_differences":{canonical_json(differences) if differences else "[]"}}}'
    )


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator
