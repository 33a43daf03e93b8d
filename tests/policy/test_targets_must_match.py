"""A profile is strict about silicon and toolchain; the name of the product is only a label."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve, fields

from kernels.target import Target
from tests.made import H200
from tests.policy.cases import ask

OTHER: dict[str, Any] = {
    f.name: ("8.0" if f.name == "compute_capability" else getattr(H200, f.name) + (".1" if f.type == "str" else 1))
    for f in fields(Target)
    if f.name != "label"
}


@pytest.mark.parametrize("name", OTHER)
def test_any_other_fact_keeps_the_original(name: str) -> None:
    """Whichever of them it is; both values are listed, and the way to calibrate this machine ends the sentence."""
    chosen = ask(128, 8192, target=evolve(H200, **{name: OTHER[name]}))
    ours, theirs = getattr(H200, name), OTHER[name]
    assert (chosen.decision.recipe, chosen.decision.reason) == ("scan.original", "target_mismatch")
    assert chosen.facts["decision"]["target_differences"] == [{"field": name, "profile": ours, "request": theirs}]
    assert f"{name} is {theirs}, not {ours}" in chosen.decision.sentence
    assert "rowsmith calibrate" in chosen.decision.sentence
    assert "seven minutes" in chosen.decision.sentence
    assert all(candidate.score_us is None for candidate in chosen.candidates)


def test_every_difference_is_listed() -> None:
    """Same compute capability, fewer SMs and slower memory: a card that shares an architecture's name."""
    other = evolve(H200, sm_count=114, memory_clock_khz=1593000, label=H200.label)
    assert ask(128, 8192, target=other).decision.differences == (
        ("sm_count", 132, 114),
        ("memory_clock_khz", 3201000, 1593000),
    )


def test_two_names_with_equal_facts_are_one_target() -> None:
    """The decision, its bytes and its id are the same."""
    renamed = ask(128, 8192, target=evolve(H200, label="Grace Hopper 480GB"))
    assert renamed.decision.reason == "admitted"
    assert renamed.body == ask(128, 8192).body
    assert H200.label not in renamed.body
