"""An experimental recipe is proved, scored and shown, and admitted only where a profile says that it was earned."""

from __future__ import annotations

import pytest
from attrs import evolve

import features.proof
from features.workloads import workloads
from kernels.recipes import RECIPES
from policy.batch import select_batch
from policy.catalogue import Catalogue, shipped_catalogue
from tests.made import H200, made_profile, made_receipt
from tests.policy.cases import ask, profile_with

EXPERIMENT = "scan.cub1024"


@pytest.fixture(autouse=True)
def _experimental(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark one recipe, which is the policy's pick, as experimental."""
    rows = tuple(evolve(row, experimental=row.id == EXPERIMENT) for row in RECIPES if row.form == "prefix.sum")
    monkeypatch.setattr(features.proof, "recipes_of", lambda form: rows)


def test_it_is_scored_and_not_admitted() -> None:
    """The next best is, and the experiment is neither pick nor runner-up."""
    chosen = ask(128, 8192)
    candidate = chosen.candidate(EXPERIMENT)
    assert candidate.score_us is not None
    assert candidate.excluded is not None
    assert candidate.excluded.code == "experimental_not_earned"
    assert chosen.decision.recipe == "scan.cub512"
    assert chosen.decision.runner_up == "scan.cub256"


def test_it_is_admitted_where_it_was_earned() -> None:
    """The profile lists it."""
    chosen = ask(128, 8192, profile=profile_with(earned=[EXPERIMENT]))
    assert chosen.decision.recipe == EXPERIMENT


def test_it_can_be_forced() -> None:
    """By name, as any legal recipe."""
    assert ask(128, 8192, forced=EXPERIMENT).decision.recipe == EXPERIMENT


def test_the_batch_agrees() -> None:
    """Scored, and not admitted."""
    works = workloads(ask(128, 8192).workload.program, [128], [8192])
    catalogue = Catalogue("0" * 64, shipped_catalogue().identity)
    choices = select_batch(works, H200, made_profile(), made_receipt, catalogue=catalogue)
    assert choices.recipes[choices.chosen[0]].id == "scan.cub512"
    assert (
        choices.scores_us[[row.id for row in choices.recipes].index(EXPERIMENT), 0]
        == ask(128, 8192).candidate(EXPERIMENT).score_us
    )
