"""A recipe launched in clusters of CTAs competes where there are clusters, with a receipt that knows how many."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from features.errors import Refused
from kernels.receipt import Receipt
from kernels.recipes import RECIPES, recipe
from kernels.source import identity
from kernels.target import Target
from policy.exclusion import exclusion
from tests.made import H200, made_receipt

ROW = recipe("rmsnorm_gamma.cluster16x1024x32")
CLEAN = made_receipt(ROW, "float16")


def judged(receipt: Receipt | None = CLEAN, target: Target = H200) -> Refused | None:
    return exclusion(ROW, "float16", receipt, CLEAN, identity(ROW, "float16"), target)


@pytest.mark.parametrize("capability", ["8.0", "8.6", "8.9"])
def test_a_target_without_clusters_refuses_by_a_reason_of_its_own(capability: str) -> None:
    """Whatever the receipt says, and where there is none."""
    older = evolve(H200, compute_capability=capability)
    for receipt in (CLEAN, None, evolve(CLEAN, failure="does not compile")):
        found = judged(receipt, older)
        assert found is not None
        assert found.code == "clusters_unsupported"
        sm = "sm_" + capability.replace(".", "")
        assert found.fact == f"rmsnorm_gamma.cluster16x1024x32 is launched in clusters of 16 CTAs, which {sm} has not"


@pytest.mark.parametrize("capability", ["9.0", "10.0", "12.0"])
def test_later_targets_have_clusters(capability: str) -> None:
    architecture = "sm_" + capability.replace(".", "")
    target = evolve(H200, compute_capability=capability)
    assert judged(evolve(CLEAN, architecture=architecture), target) is None


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        (
            {"resident_clusters": None},
            "resource_unknown",
            "resident_clusters of rmsnorm_gamma.cluster16x1024x32 is unk",
        ),
        ({"resident_clusters": 0}, "zero_capacity", "no cluster of 16 CTAs"),
        ({"resident_clusters": -1}, "launch_contradiction", "resident_clusters is -1"),
        ({"resident_clusters": 17}, "launch_contradiction", "resident CTAs of clusters: 272 needed and 264 available"),
        ({"cluster_ctas": 8}, "launch_contradiction", "CTAs of a row in a cluster: 16 needed and 8 available"),
        ({"cluster_ctas": 32}, "launch_contradiction", "CTAs a cluster: 32 needed and 16 available"),
    ],
)
def test_a_receipt_that_says_another_thing_of_clusters_excludes(changes: dict[str, Any], code: str, said: str) -> None:
    found = judged(evolve(CLEAN, **changes))
    assert found is not None
    assert found.code == code
    assert said in found.fact


def test_receipts_of_other_recipes_are_what_they_were() -> None:
    """Their facts have no word of clusters besides the 1 that was always there, and their capacity is an SM's."""
    for row in RECIPES:
        receipt = made_receipt(row, row.dtypes[0])
        assert ("resident_clusters" in receipt.facts()) == (row.cluster > 1) == ("cluster" in row.facts())
        assert receipt.capacity == (receipt.resident_ctas_per_sm if row.cluster == 1 else receipt.resident_clusters)
        assert Receipt(**receipt.facts()) == receipt
