"""A proved recipe competes only with a clean receipt; what is unknown is never taken for zero."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from features.proof import Proved, candidates
from features.workload import workload
from kernels.receipt import RESOURCES, Receipt
from kernels.recipe import ORIGINAL, Recipe
from kernels.source import SourceIdentity
from policy.catalogue import Catalogue, recorded, shipped_catalogue
from policy.errors import PolicyError
from policy.selection import Selection
from tests.made import made_profile, made_receipt
from tests.policy.cases import PROVED_AT, PROVED_IDS, ask, profile_with, with_receipts


def excluded(chosen: Selection, code: str, said: str = "") -> None:
    """Assert that every recipe is excluded by this code, scored by none, and that the original is kept for it."""
    for recipe_id in PROVED_IDS:
        candidate = chosen.candidate(recipe_id)
        assert candidate.excluded is not None
        assert candidate.excluded.code == code
        assert said.format(recipe=recipe_id) in candidate.excluded.fact
        assert candidate.score_us is None
        assert candidate.features == ()
    assert (chosen.decision.recipe, chosen.decision.reason) == ("scan.original", "no_eligible_recipe")


@pytest.mark.parametrize("name", [*RESOURCES, "cubin"])
def test_an_unknown_fact_excludes(name: str) -> None:
    """Whichever it is, and the stored receipt still says null."""
    chosen = ask(*PROVED_AT, receipts=with_receipts(lambda receipt: evolve(receipt, **{name: None})))
    excluded(chosen, "resource_unknown", f"{name} of {{recipe}} is unknown")
    stored = chosen.facts["candidates"][1]["receipt"]
    assert stored[name] is None


def test_a_missing_receipt_excludes() -> None:
    """No receipt, no resources."""
    chosen = ask(*PROVED_AT, receipts=with_receipts(lambda receipt: None))
    excluded(chosen, "resource_unknown", "there is no receipt of {recipe} ")


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"failure": "error: no such intrinsic"}, "compile_failed", "no such intrinsic"),
        ({"local_bytes": 8}, "local_memory", "8 bytes of local memory"),
        ({"resident_ctas_per_sm": 0}, "zero_capacity", "fits on an SM"),
        ({"source": "0" * 64}, "source_changed", "source 000000000000"),
        ({"options": "0" * 64}, "source_changed", "options 000000000000"),
        ({"recipe": "scan.other"}, "launch_contradiction", "recipe scan.other"),
        ({"dtype": "float32"}, "launch_contradiction", "dtype float32"),
        ({"architecture": "sm_80"}, "launch_contradiction", "architecture sm_80, not of sm_90"),
        ({"max_threads_per_cta": 64}, "launch_contradiction", "threads a CTA"),
        ({"registers": 255, "resident_ctas_per_sm": 16}, "launch_contradiction", "resident"),
        ({"registers": 0}, "launch_contradiction", "registers is 0"),
        ({"registers": -1}, "launch_contradiction", "registers is -1"),
        ({"local_bytes": 0, "dynamic_shared_bytes": -1}, "launch_contradiction", "dynamic_shared_bytes is -1"),
        ({"resident_ctas_per_sm": -1}, "launch_contradiction", "resident_ctas_per_sm is -1"),
        ({"resident_ctas_per_sm": 33}, "launch_contradiction", "resident"),
        ({"static_shared_bytes": 232449, "resident_ctas_per_sm": 1}, "launch_contradiction", "shared bytes a CTA"),
        ({"dynamic_shared_bytes": 200000, "resident_ctas_per_sm": 2}, "launch_contradiction", "shared bytes an SM"),
        ({"cluster_ctas": 2}, "launch_contradiction", "CTAs a cluster: 2 needed and 1 available"),
        ({"cluster_ctas": 0}, "launch_contradiction", "cluster_ctas is 0"),
    ],
)
def test_a_receipt_that_cannot_be_trusted_excludes(changes: dict[str, Any], code: str, said: str) -> None:
    """Failed, spilling, unfit, of another kernel, or at odds with launch and target."""
    excluded(ask(*PROVED_AT, receipts=with_receipts(lambda receipt: evolve(receipt, **changes))), code, said)


@pytest.mark.parametrize("changes", [{"registers": 33}, {"resident_ctas_per_sm": 17}], ids=["registers", "threads"])
def test_the_limits_of_an_sm_are_taken_exactly(changes: dict[str, int]) -> None:
    """16 CTAs of 128 threads with 32 registers fill 2048 threads and 65536 registers; one more is too many."""
    clean = ask(128, 1024)
    assert clean.candidate("scan.cub128").eligible
    chosen = ask(128, 1024, receipts=with_receipts(lambda receipt: evolve(receipt, **changes)))
    found = chosen.candidate("scan.cub128").excluded
    assert found is not None
    assert found.code == "launch_contradiction"


def test_one_excluded_recipe_leaves_the_others() -> None:
    """The next best is chosen."""

    def spill(receipt: Receipt) -> Receipt:
        return evolve(receipt, local_bytes=4) if receipt.recipe == "scan.cub1024" else receipt

    assert ask(128, 8192).decision.recipe == "scan.cub1024"
    assert ask(128, 8192, receipts=with_receipts(spill)).decision.recipe == "scan.cub512"


def test_a_recipe_that_the_profile_was_made_without_is_excluded() -> None:
    """It was never measured, so nothing prices it; a dtype that was never measured likewise."""
    kept = [receipt for receipt in made_profile().receipts if receipt.recipe != "scan.cub1024"]
    profile = profile_with(receipts=[receipt.facts() for receipt in kept])
    chosen = ask(128, 8192, profile=profile, receipts=recorded(made_profile()))
    found = chosen.candidate("scan.cub1024").excluded
    assert found is not None
    assert found.code == "not_calibrated"
    assert chosen.decision.recipe == "scan.cub512"


def test_a_live_receipt_must_be_of_the_profiles_kernel() -> None:
    """Catalogue and receipt agree with each other and not with the profile, which was frozen before a change."""
    new = SourceIdentity("1" * 64, "2" * 64)

    def identity(recipe: Recipe, dtype: str) -> SourceIdentity:
        return shipped_catalogue().identity(recipe, dtype) if recipe.role == ORIGINAL else new

    live = with_receipts(lambda receipt: evolve(receipt, source=new.source, options=new.options))
    excluded(ask(*PROVED_AT, receipts=live, catalogue=Catalogue("3" * 64, identity)), "source_changed", "the profile's")


def test_an_original_that_cannot_be_compiled_is_an_error() -> None:
    """There would be nothing to keep."""

    def broken(recipe: Recipe, dtype: str) -> Receipt:
        return made_receipt(recipe, dtype, failure="error: no such header")

    with pytest.raises(PolicyError, match=r"scan\.original for float16 cannot be compiled .*no such header"):
        ask(128, 8192, receipts=broken)


@pytest.mark.parametrize(
    "changes", [{"local_bytes": 512}, {"registers": None}, {"resident_ctas_per_sm": 0}, {"architecture": "sm_80"}]
)
def test_nothing_else_excludes_the_original(changes: dict[str, Any]) -> None:
    """It is always there."""

    def source(recipe: Recipe, dtype: str) -> Receipt:
        return made_receipt(recipe, dtype, **(changes if recipe.role == ORIGINAL else {}))

    assert ask(128, 8192, receipts=source).decision.reason == "admitted"


def test_receipts_are_asked_once_for_what_is_proved() -> None:
    """In catalogue order, the original first: the order in which a live search may visit them."""
    asked: list[str] = []
    known = recorded(made_profile())

    def source(recipe: Recipe, dtype: str) -> Receipt | None:
        asked.append(recipe.id)
        return known(recipe, dtype)

    ask(128, 2048, receipts=source)
    proved = [
        row.id for row, proof in candidates(workload("scan", (128, 2048), "float16")) if isinstance(proof, Proved)
    ]
    assert asked == proved
    assert asked[:3] == ["scan.original", "scan.cub128", "scan.cub256"]
