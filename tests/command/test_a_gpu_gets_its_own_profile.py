"""Which bundled profile a device dispatches by, told without a device."""

from __future__ import annotations

import pytest
from attrs import evolve

import rowsmith
import rowsmith.profiles as module
from policy.errors import ProfileError, RequestError
from policy.profile import Known
from rowsmith.profiles import profile_for, profile_on
from tests.made import H200, made_profile

OTHER = evolve(H200, sm_count=114, label="another")


def bundle(monkeypatch: pytest.MonkeyPatch, *entries: Known) -> None:
    monkeypatch.setattr(module, "_bundled", lambda: entries)


def on(target: object, name: str, standing: str = "standard", regime: str = "hot") -> Known:
    facts = {**target.facts(), "label": target.label}  # type: ignore[attr-defined]
    return Known(made_profile(name=name, target=facts, regime=regime), standing)


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


def test_a_regime_has_a_profile_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of `h200-cold` comes before that of `h200`: order decides nothing."""
    bundle(monkeypatch, on(H200, "h200-cold", regime="cold"), on(H200, "h200"))
    assert profile_for(None).name == profile_for(None, "hot").name == "h200"
    assert profile_for(None, "cold").name == "h200-cold"
    assert profile_for("h200-cold").name == profile_for("h200-cold", "cold").name == "h200-cold"
    for regime, name in (("hot", "h200"), ("cold", "h200-cold")):
        found = profile_on(H200, regime)
        assert found is not None
        assert found.name == name
        made = rowsmith.select("scan", [128, 8192], "float16", regime=regime)
        assert made.provenance["profile_name"] == name
    assert rowsmith.select("scan", [128, 8192], "float16").provenance["profile_name"] == "h200"


def test_a_profile_named_with_another_regime_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(monkeypatch, on(H200, "h200-cold", regime="cold"), on(H200, "h200"))
    with pytest.raises(ProfileError, match=r"'h200' is hot, not cold; there are: h200-cold \(cold, standard\), h200"):
        rowsmith.select("scan", [128, 8192], "float16", profile="h200", regime="cold")
    with pytest.raises(RequestError, match="regime 'warm' is not known"):
        profile_for("h200", "warm")


def test_a_cold_profile_of_another_machine_says_how_to_calibrate_a_cold_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle(monkeypatch, on(OTHER, "cold", regime="cold"))
    made = rowsmith.select("scan", [128, 8192], "float16", regime="cold", target=H200)
    assert made.decision.reason == "target_mismatch"
    assert "`rowsmith calibrate --regime cold --out packet.zip`" in made.decision.sentence
