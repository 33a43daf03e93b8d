"""The stored record: canonical, complete, named by its digest, and free of clock, host and way of observing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from attrs import evolve

from features.program import OPS
from features.schemas import SCHEMAS
from features.workload import workload
from kernels.identity import canonical_json
from kernels.recipes import recipes_of
from policy.select import select
from policy.selection import Selection
from tests.made import H200
from tests.policy.cases import ask, profile_priced_by, profile_with, with_receipts

CASES: dict[str, Selection] = {
    "admitted": ask(128, 8192),
    "small numbers": ask(1, 1024),
    "whole numbers": ask(132, 2**20, "float32"),
    "refused": ask(5, 3584, "bfloat16"),
    "empty": ask(0, 0),
    "another target": ask(128, 8192, target=evolve(H200, sm_count=114, nvrtc='13."1"\u00e9\n')),
    "excluded": ask(128, 8192, receipts=with_receipts(lambda r: evolve(r, failure='said "no"\t\u2028\u00e9'))),
    "without receipts": ask(128, 8192, receipts=lambda row, dtype: None),
    "without fit": ask(128, 8192, profile=profile_with(fits=[], name="caf\u00e9 \U0001f600")),
    "forced": ask(128, 8192, forced="scan.cub128"),
    "great numbers": ask(128, 8192, profile=profile_with(recipe=[1e21, 1e16, 0.0, 0.0], original=[1e22, 0.0, 0.0])),
    "by pitch": ask(4, 1024, strides=(1032, 1), alignment_bytes=64, numerics="any"),
    "every role scored": ask(128, 16384, profile=profile_priced_by("scan/3", 0.5, 30.0, 0.01)),
    "short rows": ask(128, 64, profile=profile_priced_by("scan/6", 0.5, 30.0, 0.01)),
    "rows that are split": ask(1, 50257, profile=profile_priced_by("scan/3", 0.5, 30.0, 0.01)),
}
each = pytest.mark.parametrize("chosen", CASES.values(), ids=CASES)


@each
def test_the_text_is_canonical(chosen: Selection) -> None:
    """As our encoder and an independent one write what was read back."""
    assert chosen.body == canonical_json(chosen.facts)
    assert chosen.body.encode() == rfc8785.dumps(json.loads(chosen.body))


@each
def test_anyone_can_recompute_the_id(chosen: Selection) -> None:
    """SHA-256 over the canonical JSON of the facts, with nothing of ours."""
    assert chosen.id == hashlib.sha256(rfc8785.dumps(json.loads(chosen.body))).hexdigest()


@each
def test_every_recipe_is_accounted_for(chosen: Selection) -> None:
    """By a proof or a refusal, and, where proved, by a receipt or an exclusion, features and a score."""
    found = {candidate["recipe"]: candidate for candidate in chosen.facts["candidates"]}
    assert list(found) == [row.id for row in recipes_of("prefix.sum")]
    schema = SCHEMAS.get(chosen.facts["provenance"]["feature_schema"])
    for candidate in found.values():
        assert candidate["proved"] == (candidate["proof"] is not None) == (candidate["refused"] is None)
        assert candidate["eligible"] <= (candidate["score_us"] is not None)
        if candidate["score_us"] is not None:
            assert schema is not None
            columns = [(feature.name, feature.unit) for feature in schema.roles[candidate["role"]]]
            assert [(feature["name"], feature["unit"]) for feature in candidate["features"]] == columns
        assert all(set(feature) == {"name", "value", "unit"} for feature in candidate["features"])
        if not candidate["proved"]:
            assert candidate["receipt"] is candidate["excluded"] is candidate["score_us"] is None
    assert found["scan.original"]["proved"]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("rows", "width"), [(4, 1000), (300, 4096)])
def test_every_program_has_a_canonical_record(op: str, rows: int, width: int) -> None:
    """Whatever its proofs find; without a fit for it the original is kept."""
    chosen = select(workload(op, (rows, width), "float16"), H200, profile_with(), lambda row, dtype: None)
    assert chosen.body.encode() == rfc8785.dumps(json.loads(chosen.body))
    candidates = chosen.facts["candidates"]
    assert chosen.decision.recipe == candidates[0]["recipe"]
    assert sum(candidate["proved"] for candidate in candidates) > 1


def test_what_it_rests_on_is_named() -> None:
    """Profile, fit, cohort, schema and catalogue by digest; threshold and schema version by value."""
    facts, profile = CASES["admitted"].facts, profile_with()
    assert facts["schema"] == "rowsmith.selection/1"
    provenance = facts["provenance"]
    assert provenance["profile"] == profile.digest
    assert provenance["fit"] == profile.fits[0].digest
    assert provenance["cohort"] == profile.fits[0].cohort
    assert provenance["feature_schema_digest"] == profile.fits[0].feature_schema_digest
    assert (provenance["regime"], provenance["admission"]) == ("hot", 0.95)
    assert facts["target"]["digest"] == H200.digest()


def members(value: Any) -> set[str]:
    """Return every member name in a JSON value."""
    if isinstance(value, dict):
        return set(value).union(*map(members, value.values()))
    return set().union(*map(members, value)) if isinstance(value, list) else set()


@each
def test_it_says_nothing_of_when_and_how(chosen: Selection) -> None:
    """No clock, host, origin or label is among the facts."""
    unwelcome = {"at", "when", "time", "date", "host", "live", "recorded", "observed", "label", "uuid", "pid", "links"}
    assert not [name for name in members(chosen.facts) if unwelcome & set(name.split("_"))]


def test_a_record_that_differs_anywhere_has_another_id() -> None:
    """Each case above, and one with a single other receipt fact."""
    other = ask(128, 8192, receipts=with_receipts(lambda receipt: evolve(receipt, static_shared_bytes=513)))
    assert len({chosen.id for chosen in (*CASES.values(), other)}) == len(CASES) + 1


def test_facts_read_back_cannot_change_the_record() -> None:
    """They are a copy."""
    chosen, before = ask(128, 8192), ask(128, 8192).body
    chosen.facts["decision"]["recipe"] = "another"
    assert chosen.body == before == ask(128, 8192).body
