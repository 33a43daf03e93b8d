"""Replaying tells arithmetic that does not hold from things that have changed since."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from features.workload import workload
from kernels.identity import digest
from policy.profile import Profile
from policy.replay import Replay, replay
from policy.select import recorded, select
from tests.made import made_document, made_profile

PROFILE = made_profile()


def facts_of(shape: list[int], **more: Any) -> dict[str, Any]:
    """Return the facts of a decision as they are read back from the store."""
    work = workload("scan", shape, "float16")
    return copy.deepcopy(dict(select(work, PROFILE.target, PROFILE, recorded(PROFILE), **more).facts))


def again(facts: dict[str, Any], profile: Profile | None = PROFILE) -> Replay:
    """Replay facts under their own digest, as a forger would store them."""
    return replay(digest(facts), facts, profile)


@pytest.mark.parametrize("shape", [[128, 8192], [1, 1024], [5000, 3584], [0, 8192], [3, 7], [1 << 20, 1024]])
@pytest.mark.parametrize("forced", [None, "scan.original"])
def test_what_the_policy_decided_is_verified(shape: list[int], forced: str | None) -> None:
    """Whatever the reason was."""
    report = again(facts_of(shape, forced=forced))
    assert (report.verdict, report.changes) == ("verified", ())
    assert report.checked == ("id", "features", "scores", "decision", "policy")


def _score(facts: dict[str, Any]) -> None:
    facts["candidates"][1]["score_us"] *= 1 + 2**-52


def _feature(facts: dict[str, Any]) -> None:
    facts["candidates"][1]["features"][1]["value"] += 1


def _rows(facts: dict[str, Any]) -> None:
    facts["workload"]["rows"] += 132


def _pick(facts: dict[str, Any]) -> None:
    facts["decision"]["recipe"] = facts["decision"]["policy_recipe"] = "scan.cub128"


def _reason(facts: dict[str, Any]) -> None:
    facts["decision"]["reason"] = facts["decision"]["policy_reason"] = "not_below_threshold"


def _proof(facts: dict[str, Any]) -> None:
    facts["candidates"][1]["proof"]["closed_prefix"]["loads_per_element"] = 2


def _sentence(facts: dict[str, Any]) -> None:
    facts["decision"]["sentence"] += " Trust me."


def _program(facts: dict[str, Any]) -> None:
    facts["workload"]["program"] = ["store", "float16", ["load", "float16"]]


def _target(facts: dict[str, Any]) -> None:
    facts["target"]["sm_count"] = 114


FORGED: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (_score, "scores"),
    (_feature, "features"),
    (_rows, "features"),
    (_pick, "decision"),
    (_reason, "decision"),
    (_proof, "policy"),
    (_sentence, "policy"),
    (_program, "facts"),
    (_target, "facts"),
]


@pytest.mark.parametrize(("forge", "check"), FORGED, ids=[forge.__name__ for forge, _ in FORGED])
def test_a_forged_fact_is_named(forge: Callable[[dict[str, Any]], None], check: str) -> None:
    """Even where the forger computed a fitting id."""
    facts = facts_of([128, 8192])
    forge(facts)
    report = again(facts)
    assert report.verdict == "differs"
    assert check in {difference.check for difference in report.differences}


def test_a_wrong_id_is_named() -> None:
    """The id is the digest of the facts."""
    facts = facts_of([128, 8192])
    report = replay("0" * 64, facts, PROFILE)
    assert [d.check for d in report.differences] == ["id"]


def test_another_catalogue_is_a_change_and_no_difference() -> None:
    """Scores and decision still hold by the stored facts."""
    facts = facts_of([128, 8192])
    facts["provenance"]["catalogue"] = "0" * 64
    report = again(facts)
    assert report.verdict == "verified"
    assert [change.what for change in report.changes] == ["catalogue"]
    assert "policy" not in report.checked


def test_a_changed_source_is_named() -> None:
    """By recipe, with both digests."""
    facts = facts_of([128, 8192])
    facts["candidates"][2]["receipt"]["source"] = "0" * 64
    changes = {change.what for change in again(facts).changes}
    assert f"source of {facts['candidates'][2]['recipe']}" in changes


def test_a_recipe_that_is_gone_is_named() -> None:
    """The stored decision can be read all the same."""
    facts = facts_of([128, 8192])
    facts["candidates"][1]["recipe"] = "scan.gone"
    assert "recipe scan.gone" in {change.what for change in again(facts).changes}


def test_a_missing_or_other_profile_is_a_change() -> None:
    """Scores cannot be recomputed without the coefficients, and nothing pretends that they were."""
    facts = facts_of([128, 8192])
    for profile in (None, made_profile(name="another")):
        report = again(facts, profile)
        assert [change.what for change in report.changes] == ["profile"]
    assert "scores" not in again(facts, None).checked


def test_a_changed_coefficient_is_a_difference() -> None:
    """The profile that the facts name is the one that prices them."""
    facts = facts_of([128, 8192])
    document = made_document()
    document["fits"][0]["blocks"][1]["coefficients"][0] = 0.25
    assert "scores" in {d.check for d in again(facts, made_profile(fits=document["fits"])).differences}
