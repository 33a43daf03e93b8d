"""A recipe is taken only strictly below 95 % of the original, in float64; equal scores go to the smaller id."""

from __future__ import annotations

import math

import pytest

from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL, RECIPE, Recipe
from kernels.recipes import recipe
from policy.deciding import ADMISSION
from policy.profile import Profile
from policy.scoring import score
from tests.made import made_receipt
from tests.policy.cases import PROVED_IDS, ask, profile_with

ORIGINAL_US = 7.3
EDGE = ADMISSION * ORIGINAL_US


def constant(recipe_us: float, original_us: float = ORIGINAL_US) -> Profile:
    """Return a profile in which every recipe scores the same constant: the first feature is 1."""
    return profile_with(original=[original_us, 0.0, 0.0], recipe=[recipe_us, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("recipe_us", "reason"),
    [
        (math.nextafter(EDGE, 0), "admitted"),
        (EDGE, "not_below_threshold"),
        (math.nextafter(EDGE, math.inf), "not_below_threshold"),
    ],
    ids=["one step below", "equal", "one step above"],
)
def test_the_threshold_is_strict_to_the_last_bit(recipe_us: float, reason: str) -> None:
    """A tie with the threshold keeps the original."""
    chosen = ask(128, 8192, profile=constant(recipe_us))
    assert chosen.candidate("scan.cub128").score_us == recipe_us
    assert chosen.candidate("scan.original").score_us == ORIGINAL_US
    assert chosen.decision.reason == reason
    assert chosen.decision.recipe == ("scan.cub1024" if reason == "admitted" else "scan.original")


def test_scores_of_zero_keep_the_original() -> None:
    """Nothing is strictly below 95 % of nothing."""
    assert ask(128, 8192, profile=constant(0.0, 0.0)).decision.reason == "not_below_threshold"


def test_equal_scores_go_to_the_smaller_id_as_text() -> None:
    """`scan.cub1024` is before `scan.cub128` as text, though not as a number; the next one is the runner-up."""
    chosen = ask(128, 8192, profile=constant(1.0)).decision
    ranked = sorted(row for row in PROVED_IDS if recipe(row).role == RECIPE)  # those that scan/1 prices
    assert (chosen.recipe, chosen.runner_up) == (ranked[0], ranked[1]) == ("scan.cub1024", "scan.cub128")


def test_the_lowest_score_wins_over_the_smaller_id() -> None:
    """Where only the chunk count differs, the larger block has fewer chunks."""
    chosen = ask(1, 8192, profile=profile_with(recipe=[0.5, 0.0, 0.01, 0.0])).decision
    assert (chosen.recipe, chosen.runner_up) == ("scan.cub1024", "scan.cub512")
    assert chosen.score_us == 0.5 + 8 * 0.01
    assert chosen.runner_up_score_us == 0.5 + 16 * 0.01


def test_a_score_is_added_left_to_right() -> None:
    """Another order gives another last bit: (0.1 + 0.2) + 0.3 is not 0.1 + (0.2 + 0.3)."""
    assert score((1, 1, 1), (0.1, 0.2, 0.3)) == 0.1 + 0.2 + 0.3 != 0.1 + (0.2 + 0.3)


def test_ratio_and_margin_are_for_reading() -> None:
    """They are quotients of the scores that are shown."""
    decision = ask(128, 8192).facts["decision"]
    assert decision["ratio"] == decision["score_us"] / decision["original_score_us"]
    assert decision["margin"] == decision["runner_up_score_us"] / decision["score_us"]


def test_the_original_scores_without_a_receipt() -> None:
    """Its capacity is in no feature, and nothing about its resources can exclude it."""

    def all_but_the_original(recipe: Recipe, dtype: str) -> Receipt | None:
        return None if recipe.role == ORIGINAL else made_receipt(recipe, dtype)

    assert ask(128, 8192, receipts=all_but_the_original).decision == ask(128, 8192).decision
