"""A request may name a recipe; it must be legal and clean, and the policy's own pick stays beside it."""

from __future__ import annotations

import pytest
from attrs import evolve

from kernels.recipes import recipes_of
from policy.errors import RequestError
from tests.made import H200
from tests.policy.cases import PROVED_AT, PROVED_IDS, ask, profile_priced_by, profile_with, with_receipts


@pytest.mark.parametrize("recipe_id", ["scan.original", *PROVED_IDS])
def test_a_legal_recipe_is_forced(recipe_id: str) -> None:
    """Whether the policy would take it or not, the pick of the policy included."""
    profile = profile_priced_by("scan/6", 0.5, 30.0, 0.01)
    policy, forced = (ask(*PROVED_AT, profile=profile, forced=named) for named in (None, recipe_id))
    decision = forced.decision
    assert (decision.recipe, decision.reason) == (recipe_id, "forced")
    assert (decision.policy_recipe, decision.policy_reason) == (policy.decision.recipe, "admitted")
    assert decision.score_us == policy.candidate(recipe_id).score_us is not None
    assert decision.original_score_us == policy.decision.original_score_us
    assert (decision.runner_up, decision.runner_up_score_us) == (None, None)
    assert forced.facts["candidates"] == policy.facts["candidates"]
    assert recipe_id in decision.sentence
    assert policy.decision.recipe in decision.sentence
    assert forced.id != policy.id


@pytest.mark.parametrize("recipe_id", ["scan.cub9", "sum.original", "", "SCAN.CUB128", "x" * 10_000])
def test_an_unknown_recipe_is_an_error_that_lists_this_programs(recipe_id: str) -> None:
    """Whether nobody has it or another program does."""
    with pytest.raises(RequestError, match=r"none of this program's; use one of scan\.") as caught:
        ask(128, 8192, forced=recipe_id)
    assert len(str(caught.value)) < 300 + sum(len(row.id) + 2 for row in recipes_of("prefix.sum"))


def test_a_recipe_that_is_not_proved_is_an_error() -> None:
    """With the fact that failed."""
    with pytest.raises(RequestError, match=r"scan\.cub1024 is not legal here: width 4096 is less than 8192"):
        ask(128, 4096, forced="scan.cub1024")
    with pytest.raises(RequestError, match=r"scan\.split8192 is not legal here: width 8192 is not more than the 8192"):
        ask(128, 8192, forced="scan.split8192")


def test_a_recipe_without_a_clean_receipt_is_an_error() -> None:
    """Local memory, unknown facts and the rest exclude a forced recipe, too."""
    spilling = with_receipts(lambda receipt: evolve(receipt, local_bytes=64))
    with pytest.raises(RequestError, match=r"scan\.cub256 has no clean receipt: .*64 bytes of local memory"):
        ask(128, 8192, receipts=spilling, forced="scan.cub256")
    with pytest.raises(RequestError, match="no clean receipt: there is no receipt"):
        ask(128, 8192, receipts=with_receipts(lambda receipt: None), forced="scan.cub256")
    assert ask(128, 8192, receipts=spilling, forced="scan.original").decision.reason == "forced"


def test_a_recipe_outside_its_domain_can_be_forced() -> None:
    """It is legal and clean; it has no score, and none is made up."""
    everything, nothing = [0.0, 1e12], [-2.0, -1.0]
    profile = profile_with(ranges={"recipe": [nothing, everything, everything, everything]})
    decision = ask(128, 8192, profile=profile, forced="scan.cub256").decision
    assert (decision.recipe, decision.score_us) == ("scan.cub256", None)
    assert (decision.policy_recipe, decision.policy_reason) == ("scan.original", "no_eligible_recipe")


def test_a_recipe_can_be_forced_on_another_target() -> None:
    """The differences stay in the record."""
    decision = ask(128, 8192, target=evolve(H200, l2_bytes=1), forced="scan.cub256").decision
    assert (decision.recipe, decision.policy_reason) == ("scan.cub256", "target_mismatch")
    assert [name for name, _, _ in decision.differences] == ["l2_bytes"]


def test_the_original_can_be_forced_where_nothing_is_priced() -> None:
    """An empty profile is enough to run it, and so is a receipt that does not tell its capacity."""
    decision = ask(128, 8192, profile=profile_with(fits=[], receipts=[]), forced="scan.original").decision
    assert (decision.recipe, decision.score_us, decision.policy_reason) == ("scan.original", None, "no_fit")
    priced = profile_priced_by("scan/2", 1.0)
    decision = ask(128, 8192, profile=priced, receipts=lambda row, dtype: None, forced="scan.original").decision
    assert (decision.recipe, decision.score_us, decision.policy_reason) == ("scan.original", None, "original_unknown")
