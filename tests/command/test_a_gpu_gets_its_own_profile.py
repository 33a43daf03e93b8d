"""Which bundled profile a device dispatches by, told without a device."""

from __future__ import annotations

import pytest
from attrs import evolve

import rowsmith.profiles as module
from policy.errors import ProfileError
from policy.profile import Known
from rowsmith.profiles import profile_for, profile_on
from tests.made import H200, made_profile

OTHER = evolve(H200, sm_count=114, label="another")


def bundle(monkeypatch: pytest.MonkeyPatch, *entries: Known) -> None:
    monkeypatch.setattr(module, "_bundled", lambda: entries)


def on(target: object, name: str, standing: str = "standard") -> Known:
    facts = {**target.facts(), "label": target.label}  # type: ignore[attr-defined]
    return Known(made_profile(name=name, target=facts), standing)


def test_the_profile_made_for_the_target_is_taken_among_several(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(monkeypatch, on(H200, "one"), on(OTHER, "two"))
    for target, name in ((H200, "one"), (OTHER, "two")):
        found = profile_on(target, "hot")
        assert found is not None
        assert found.name == name


def test_the_only_profile_answers_for_any_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """It then keeps the original, and the selection lists what differs."""
    bundle(monkeypatch, on(H200, "one"))
    found = profile_on(OTHER, "hot")
    assert found is not None
    assert found.name == "one"


def test_without_an_active_profile_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(monkeypatch)
    assert profile_on(H200, "hot") is None
    bundle(monkeypatch, on(H200, "one", "experimental"), on(H200, "two", "unvalidated"))
    assert profile_on(H200, "hot") is None


def test_an_experimental_profile_is_used_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(monkeypatch, on(H200, "one", "experimental"))
    assert profile_for("one", "hot").name == "one"
    with pytest.raises(ProfileError, match=r"0 active profiles .* one \(hot, experimental\)"):
        profile_for(None, "hot")


def test_several_that_would_do_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(monkeypatch, on(H200, "one"), on(H200, "two"))
    with pytest.raises(ProfileError, match=r"one \(hot, standard\), two"):
        profile_on(H200, "hot")
