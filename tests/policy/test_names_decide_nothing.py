"""The policy sees a program's expression, never what people call it."""

from __future__ import annotations

import pytest

import features.program
from features.expression import Cast, Load, Prefix, Store
from features.program import Program
from features.workload import workload
from policy.select import recorded, select
from tests.made import H200, made_profile


def test_a_new_name_for_the_same_expression_gets_the_same_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same bytes and same id."""
    profile = made_profile()
    known = select(workload("scan", (128, 8192), "float16"), H200, profile, recorded(profile))
    monkeypatch.setattr(features.program, "OPS", {"running_total": features.program.scan})
    renamed = select(workload("running_total", (128, 8192), "float16"), H200, profile, recorded(profile))
    assert (renamed.id, renamed.body) == (known.id, known.body)


def test_no_name_is_stored() -> None:
    """The record holds the expression; recipe ids are the catalogue's."""
    profile = made_profile()
    facts = select(workload("scan", (128, 8192), "float16"), H200, profile, recorded(profile)).facts
    assert "op" not in facts["workload"]
    assert facts["workload"]["program"][0] == "store"


def test_a_program_is_found_by_its_expression() -> None:
    """However it was put together."""
    spelled = Program(Store(Cast(Prefix(Cast(Load("float16"), "float32")), "float16"), "float16"))
    assert spelled == features.program.scan("float16")
    assert spelled.digest() == features.program.scan("float16").digest()


def test_other_expressions_are_other_programs() -> None:
    """An optional cast left out is another digest and the same decision."""
    profile = made_profile()
    scan = workload("scan", (128, 8192), "float32")
    bare = type(scan)(Program(Store(Prefix(Load("float32")), "float32")), 128, 8192, 8192)
    first, second = (select(work, H200, profile, recorded(profile)) for work in (scan, bare))
    assert first.decision == second.decision
    assert first.id != second.id
