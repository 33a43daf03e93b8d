"""Reductions of several forms are priced by one fit of their family; without one the original is kept."""

from __future__ import annotations

import numpy as np
import pytest

from features.program import OPS, program_of
from features.workload import workload
from features.workloads import workloads
from policy.batch import select_batch
from policy.catalogue import recorded
from policy.profile import bundled_profiles
from policy.select import select
from tests.made import FAMILIES, H200, made_profile

REDUCING = [op for op in OPS if program_of(op, "float32").expression.type()[1] == "scalar"]


@pytest.mark.parametrize("op", REDUCING)
def test_every_form_is_priced_by_the_familys_fit(op: str) -> None:
    profile = made_profile(FAMILIES)
    fit = profile.fit("reduce")
    assert fit is not None
    made = select(workload(op, (9, 20_000), "float32"), H200, profile, recorded(profile))
    assert made.decision.score_us is not None
    assert made.provenance["fit"] == fit.digest
    assert made.decision.reason in ("admitted", "not_below_threshold")


@pytest.mark.parametrize("op", REDUCING)
def test_a_profile_without_the_family_keeps_the_original(op: str) -> None:
    for profile in bundled_profiles():
        if profile.fit("reduce") is None:
            made = select(workload(op, (65, 2048), "float16"), profile.target, profile, recorded(profile))
            assert (made.decision.recipe, made.decision.reason) == (f"{op}.original", "no_fit")


@pytest.mark.parametrize("op", ["sum", "nanmax", "mean"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_batch_decides_as_one_request_does(op: str, dtype: str) -> None:
    profile = made_profile(FAMILIES)
    rng = np.random.default_rng(5)
    rows = np.concatenate([[1, 1, 2, 10**6, 0], rng.integers(1, 9000, 40)])
    widths = np.concatenate([[2**20, 1, 2049, 127, 64], rng.integers(1, 70_000, 40)])
    works = workloads(program_of(op, dtype), rows, widths)
    choices = select_batch(works, H200, profile, recorded(profile))
    for i in range(len(works)):
        alone = select(works.at(i), H200, profile, recorded(profile))
        assert choices.recipes[choices.chosen[i]].id == alone.decision.recipe
        assert choices.reasons[i] == alone.decision.reason
        for row, candidate in zip(choices.scores_us[:, i], alone.candidates, strict=True):
            assert (None if np.isnan(row) else float(row)) == candidate.score_us


def test_experimental_ways_are_scored_and_not_admitted() -> None:
    profile = made_profile(FAMILIES)
    made = select(workload("sum", (2, 4096), "bfloat16"), H200, profile, recorded(profile))
    candidate = made.candidate("sum.streamed_chunk")
    assert candidate.score_us is not None
    assert candidate.excluded is not None
    assert candidate.excluded.code == "experimental_not_earned"
