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
from features.workload import Workload
from kernels.identity import canonical_json, canonical_number, canonical_string
from kernels.receipt import Receipt
from kernels.target import Target
from policy.values import Candidate, Decision, Priced

SELECTION_SCHEMA = "rowsmith.selection/1"
SCORE_NOTE = "Scores rank recipes; a score is not promised to be a run time."
_FLAG = {True: "true", False: "false"}


def selection_text(
    workload: Workload,
    target: Target,
    provenance: Mapping[str, Any],
    decision: Decision,
    candidates: tuple[Candidate, ...],
) -> str:
    """Return the record; it holds no clock, host or way of observing."""
    return (
        f'{{"candidates":[{",".join([_candidate(candidate) for candidate in candidates])}],'
        f'"decision":{canonical_json(decision_facts(decision))},"provenance":{canonical_json(provenance)},'
        f'"schema":"{SELECTION_SCHEMA}","target":{_target(target)},"workload":{_workload(workload)}}}'
    )


def _candidate(seen: Candidate) -> str:
    recipe, proof = seen.recipe, seen.proof
    if isinstance(proof, Proved):
        proved, found, refused = "true", canonical_json(proof.facts), "null"
    else:
        proved, found, refused = "false", "null", _refusal(proof)
    return (
        f'{{"eligible":{_FLAG[seen.eligible]},"excluded":{_refusal(seen.excluded)},'
        f'"experimental":{_FLAG[recipe.experimental]},"features":[{",".join([_feature(f) for f in seen.features])}],'
        f'"numerics":{canonical_string(recipe.numerics)},"proof":{found},'
        f'"proved":{proved},"receipt":{"null" if seen.receipt is None else _receipt(seen.receipt)},'
        f'"recipe":{canonical_string(recipe.id)},"refused":{refused},'
        f'"role":{canonical_string(recipe.role)},"score_us":{_optional(seen.score_us)}}}'
    )


def _feature(feature: Priced) -> str:
    name, value, unit = feature
    return f'{{{_label(name, unit)},"value":{canonical_number(value)}}}'


def _refusal(refused: Refused | None) -> str:
    return "null" if refused is None else canonical_json({"code": refused.code, "fact": refused.fact})


def _optional(value: float | None) -> str:
    return "null" if value is None else canonical_number(value)


def _workload(workload: Workload) -> str:
    return (
        f'{{"alignment_bytes":{workload.alignment_bytes},"dtype":{canonical_string(workload.dtype)},'
        f'"numerics":{canonical_string(workload.numerics)},{_program(workload.program)},'
        f'"row_pitch":{workload.row_pitch},"rows":{workload.rows},"width":{workload.width}}}'
    )


# Receipts, programs and features are few. Targets come from requests, so what is kept of them is bounded.
@lru_cache(maxsize=1024)
def _label(name: str, unit: str) -> str:
    return f'"name":{canonical_string(name)},"unit":{canonical_string(unit)}'


@lru_cache(maxsize=4096)
def _receipt(receipt: Receipt) -> str:
    return canonical_json(receipt.facts())


@lru_cache(maxsize=256)
def _target(target: Target) -> str:
    return canonical_json({"digest": target.digest(), **target.facts()})


@lru_cache(maxsize=1024)
def _program(program: Program) -> str:
    return f'"program":{canonical_json(program.tree())},"program_digest":"{program.digest()}"'


def decision_facts(decision: Decision) -> dict[str, Any]:
    """Return the decision as JSON-ready facts. Ratio and margin are for reading; nothing is decided by them."""
    return {
        "recipe": decision.recipe,
        "reason": decision.reason,
        "sentence": decision.sentence,
        "policy_recipe": decision.policy_recipe,
        "policy_reason": decision.policy_reason,
        "score_us": decision.score_us,
        "original_score_us": decision.original_score_us,
        "ratio": _ratio(decision.score_us, decision.original_score_us),
        "runner_up": decision.runner_up,
        "runner_up_score_us": decision.runner_up_score_us,
        "margin": _ratio(decision.runner_up_score_us, decision.score_us),
        "target_differences": [
            {"field": name, "profile": ours, "request": theirs} for name, ours, theirs in decision.differences
        ],
        "note": SCORE_NOTE,
    }


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator
