"""The reason of a decision is that of the first step that decides: proof, target, fit, receipts, domain, admission."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from features.errors import Refused
from features.proof import Proved
from kernels.recipe import ORIGINAL, SPLIT
from kernels.source import SourceIdentity
from policy.catalogue import Catalogue, shipped_catalogue
from policy.profile import profile_from_document
from tests.made import H200, made_document
from tests.policy.cases import ask, profile_priced_by, profile_with, with_receipts

EVERYTHING, NOTHING = [0.0, 1e12], [-2.0, -1.0]
UNPROVED = {"numerics": "bit_equal"}  # which every recipe reorders
OTHER_TARGET = {"target": evolve(H200, sm_count=114)}
NO_FIT = {"profile": profile_with(fits=[])}
CHANGED = {
    "catalogue": Catalogue(
        "0" * 64,
        lambda row, dtype: (
            SourceIdentity("0" * 64, "0" * 64) if row.role == ORIGINAL else shipped_catalogue().identity(row, dtype)
        ),
    )
}
UNCLEAN = {"receipts": with_receipts(lambda receipt: evolve(receipt, local_bytes=4))}
ORIGINAL_OUTSIDE = {"profile": profile_with(ranges={ORIGINAL: [EVERYTHING, EVERYTHING, NOTHING]})}
RECIPES_OUTSIDE = {"profile": profile_with(ranges={"recipe": [EVERYTHING, EVERYTHING, EVERYTHING, NOTHING]})}
DEAR = {"profile": profile_with(recipe=[1e6, 0.0, 0.0, 0.0])}

# Each case has every fault of the cases below it that can stand beside its own.
CASES: dict[str, tuple[int, dict[str, Any], str]] = {
    "proof before target": (8192, {**UNPROVED, **OTHER_TARGET, **NO_FIT, **UNCLEAN}, "no_proved_recipe"),
    "proof before domain": (8192, {**UNPROVED, **ORIGINAL_OUTSIDE}, "no_proved_recipe"),
    "target before fit": (8192, {**OTHER_TARGET, **NO_FIT, **CHANGED, **UNCLEAN}, "target_mismatch"),
    "fit before original": (8192, {**NO_FIT, **CHANGED, **UNCLEAN}, "no_fit"),
    "original before receipts": (8192, {**CHANGED, **UNCLEAN, **ORIGINAL_OUTSIDE}, "original_changed"),
    "receipts before domain": (8192, {**UNCLEAN, **ORIGINAL_OUTSIDE}, "no_eligible_recipe"),
    "original's domain": (8192, ORIGINAL_OUTSIDE, "outside_calibrated_domain"),
    "recipes' domain": (8192, RECIPES_OUTSIDE, "no_eligible_recipe"),
    "threshold": (8192, DEAR, "not_below_threshold"),
    "nothing against it": (8192, {}, "admitted"),
}


@pytest.mark.parametrize(("width", "faults", "reason"), CASES.values(), ids=CASES)
def test_the_reason_is_that_of_the_first_step(width: int, faults: dict[str, Any], reason: str) -> None:
    """Later faults are there and are not the reason."""
    chosen = ask(128, width, **faults).decision
    assert chosen.reason == chosen.policy_reason == reason
    assert (chosen.recipe == "scan.original") == (reason != "admitted")
    assert chosen.sentence.endswith(".")


@pytest.mark.parametrize("shape", [(0, 8192), (128, 0), (0, 0)])
def test_an_empty_workload_runs_on_the_original(shape: tuple[int, int]) -> None:
    """It is legal, and no recipe has anything to do."""
    chosen = ask(*shape)
    assert (chosen.decision.recipe, chosen.decision.reason) == ("scan.original", "no_proved_recipe")
    assert {c.proof.code for c in chosen.candidates if isinstance(c.proof, Refused)} == {"empty"}


@pytest.mark.parametrize(
    ("role", "feature", "reason"),
    [
        (ORIGINAL, "serial_elements is 8192 elements, calibrated from 9000 to 10000", "outside_calibrated_domain"),
        ("recipe", "batch_elements is 8 elements, calibrated from 9000 to 10000", "no_eligible_recipe"),
    ],
)
def test_leaving_the_domain_names_feature_value_and_range(role: str, feature: str, reason: str) -> None:
    """For a recipe and for the original; features are still shown, a score is not."""
    columns = len(profile_with().fits[0].block(role, "float16").coefficients)  # type: ignore[union-attr]
    narrow = [EVERYTHING, EVERYTHING, [9000.0, 10000.0], *[EVERYTHING] * (columns - 3)]
    chosen = ask(128, 8192, profile=profile_with(ranges={role: narrow}))
    assert chosen.decision.reason == reason
    assert feature in chosen.decision.sentence
    outside = chosen.candidate("scan.original" if role == ORIGINAL else "scan.cub1024")
    assert outside.excluded is not None
    assert outside.excluded.code == "outside_calibrated_domain"
    assert outside.score_us is None
    assert len(outside.features) == columns


def test_the_ends_of_a_range_are_inside() -> None:
    """What was calibrated is scored."""
    exactly = [[1.0, 1.0], EVERYTHING, [8192.0, 8192.0]]
    assert ask(128, 8192, profile=profile_with(ranges={ORIGINAL: exactly})).decision.reason == "admitted"


def test_a_role_without_coefficients_is_not_priced() -> None:
    """The original alone is priced, so no recipe is eligible, and each says why."""
    document = made_document()
    document["fits"][0]["blocks"] = [block for block in document["fits"][0]["blocks"] if block["role"] == ORIGINAL]
    chosen = ask(128, 8192, profile=profile_from_document(document))
    assert chosen.decision.reason == "no_eligible_recipe"
    assert {c.excluded.code for c in chosen.candidates if c.excluded} == {"no_fit"}


def test_a_role_that_the_schema_does_not_price_is_not_scored() -> None:
    """scan/1 knows no recipe that splits rows: each is proved and clean, and says that nothing prices it."""
    early, late = ask(1, 50257), ask(1, 50257, profile=profile_priced_by("scan/3", 0.5, 30.0, 0.01))
    assert (early.decision.recipe, early.decision.reason) == ("scan.original", "no_eligible_recipe")
    splits = [c for c in early.candidates if c.recipe.role == SPLIT]
    assert len(splits) == 3
    for candidate in splits:
        assert isinstance(candidate.proof, Proved)
        assert candidate.excluded is not None
        assert candidate.excluded.code == "no_fit"
        assert candidate.recipe.id in candidate.excluded.fact
        assert candidate.score_us is None
        assert late.candidate(candidate.recipe.id).eligible
    assert late.decision.reason == "admitted"


def test_a_dtype_without_a_block_has_no_fit() -> None:
    """Blocks may be separate for each dtype; the one asked for is missing."""
    document = made_document()
    for block in document["fits"][0]["blocks"]:
        block["dtype"] = "float32"
    assert ask(128, 8192, "float32", profile=profile_from_document(document)).decision.reason == "admitted"
    assert ask(128, 8192, "float16", profile=profile_from_document(document)).decision.reason == "no_fit"


def test_a_dtype_that_was_never_calibrated_has_no_fit() -> None:
    """A block shared by all dtypes does not speak for one that no receipt was recorded of."""
    document = made_document()
    document["receipts"] = [receipt for receipt in document["receipts"] if receipt["dtype"] != "bfloat16"]
    assert ask(128, 8192, "bfloat16", profile=profile_from_document(document)).decision.reason == "no_fit"
