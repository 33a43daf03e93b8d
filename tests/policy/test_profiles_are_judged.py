"""A profile is read whole or not at all: damaged, foreign and impossible ones are refused by name."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels.identity import canonical_json, digest
from policy.errors import ProfileError
from policy.profile import bundled, bundled_profiles, profile_from_document
from tests.made import made_document, made_profile


def test_a_profile_is_named_by_its_document() -> None:
    """And reads back as itself."""
    document = made_document()
    profile = profile_from_document(document, digest(document))
    assert profile.digest == digest(document)
    assert profile == made_profile()
    assert json.loads(canonical_json(profile.document)) == document


def test_one_byte_changed_is_refused() -> None:
    """A coefficient's last digit, with the digest it had before."""
    text = canonical_json(made_document())
    damaged = text.replace('"coefficients":[0.5,30,', '"coefficients":[0.5,31,', 1)
    assert damaged != text
    with pytest.raises(ProfileError, match="profile is damaged: its digest is"):
        profile_from_document(json.loads(damaged), digest(made_document()))


Change = Callable[[dict[str, Any]], Any]


def block(document: dict[str, Any]) -> dict[str, Any]:
    """Return the first block of a document."""
    found: dict[str, Any] = document["fits"][0]["blocks"][0]
    return found


WRONG: dict[str, tuple[Change, str]] = {
    "foreign schema": (
        lambda d: d.update(schema="rowsmith.profile/9"),
        "'rowsmith.profile/9' is not rowsmith.profile",
    ),
    "no schema": (lambda d: d.pop("schema"), "malformed: KeyError 'schema'"),
    "no receipts": (lambda d: d.pop("receipts"), "malformed: KeyError 'receipts'"),
    "unknown target field": (lambda d: d["target"].update(colour="green"), "target member 'colour' is not known"),
    "missing target field": (lambda d: d["target"].pop("sm_count"), "target members sm_count are missing"),
    "fits are a number": (lambda d: d.update(fits=3), "malformed: TypeError"),
    "fit is text": (lambda d: d.update(fits=["a"]), "malformed: TypeError"),
    "target is null": (lambda d: d.update(target=None), "target None is not an object"),
    "SMs are text": (lambda d: d["target"].update(sm_count="132"), "target sm_count '132' is not a whole"),
    "SMs are fractional": (lambda d: d["target"].update(sm_count=1.5), "target sm_count 1.5"),
    "SMs are negative": (lambda d: d["target"].update(sm_count=-1), "target sm_count -1 is not a whole number from 1"),
    "math is a number": (lambda d: d["target"].update(math=1), "target math 1 is not text"),
    "regime unknown": (lambda d: d.update(regime="warm"), "regime 'warm' is not hot or cold"),
    "name is a number": (lambda d: d.update(name=3), "must be text"),
    "registers are text": (lambda d: d["receipts"][0].update(registers="32"), "registers '32' is not a whole number"),
    "registers are true": (lambda d: d["receipts"][0].update(registers=True), "registers True is not a whole number"),
    "source is null": (lambda d: d["receipts"][0].update(source=None), "source None is not text"),
    "a receipt twice": (lambda d: d["receipts"].append(d["receipts"][0]), "two receipts are of one recipe"),
    "a form twice": (lambda d: d["fits"].append(d["fits"][0]), "two fits are of one family"),
    "a block twice": (lambda d: d["fits"][0]["blocks"].append(block(d)), "two blocks of one role and dtype"),
    "unknown feature schema": (lambda d: d["fits"][0].update(feature_schema="scan/9"), "'scan/9'"),
    "another feature schema": (
        lambda d: d["fits"][0].update(feature_schema_digest="0" * 64),
        "not held by this",
    ),
    "unknown role": (lambda d: block(d).update(role="helper"), "block 'helper'"),
    "unknown dtype": (lambda d: block(d).update(dtype="float64"), "'float64' is of no role or dtype"),
    "negative": (lambda d: block(d).update(coefficients=[-1.0, 0.0, 0.0]), "coefficient -1.0"),
    "too few": (lambda d: block(d).update(coefficients=[1.0]), "must have 3 coefficients"),
    "a range too few": (lambda d: block(d)["ranges"].pop(), "must have 3 coefficients and ranges"),
    "a range reversed": (lambda d: block(d)["ranges"].__setitem__(0, [2.0, 1.0]), "range 2.0 to 1.0 is not one"),
    "a range of one": (lambda d: block(d)["ranges"].__setitem__(0, [2.0]), "malformed: ValueError"),
    "scores overflow": (lambda d: block(d).update(coefficients=[1e300, 1e300, 1e300]), "scores overflow"),
    "not a number": (lambda d: block(d).update(coefficients=[float("nan"), 0.0, 0.0]), "malformed: ValueError"),
    "infinite": (lambda d: block(d).update(coefficients=[float("inf"), 0.0, 0.0]), "malformed: ValueError"),
    "text for a coefficient": (lambda d: block(d).update(coefficients=["nan", 0.0, 0.0]), "coefficient nan"),
    "not exact": (lambda d: d["receipts"][0].update(registers=2**60), "malformed: ValueError"),
}


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_a_document_that_is_none_is_refused_by_name(change: Change, said: str) -> None:
    """With what is wrong, and the value."""
    document = copy.deepcopy(made_document())
    change(document)
    with pytest.raises(ProfileError) as caught:
        profile_from_document(document)
    assert said in str(caught.value)


@pytest.mark.parametrize("document", [[], "profile", None, 3])
def test_what_is_no_object_is_refused(document: Any) -> None:
    """Whatever else JSON can hold."""
    with pytest.raises(ProfileError, match="malformed"):
        profile_from_document(document)


def test_bundled_profiles_are_whole() -> None:
    """Each is checked against its digest."""
    for profile in bundled_profiles():
        assert profile.digest == digest(profile.document)


def wrapper(folder: Path, **changes: Any) -> Path:
    """Write a bundled profile's file and return its folder."""
    document = made_document()
    text = json.dumps({"profile": document, "digest": digest(document), "standing": "standard", **changes})
    (folder / "made.json").write_text(text)
    return folder


@pytest.mark.parametrize(("standing", "active"), [("standard", True), ("experimental", False), ("unvalidated", False)])
def test_only_a_standard_profile_answers_who_names_none(tmp_path: Path, standing: str, active: bool) -> None:
    """The others can be asked for by name."""
    (entry,) = bundled(wrapper(tmp_path, standing=standing))
    assert (entry.standing, entry.active) == (standing, active)


@pytest.mark.parametrize("standing", ["Experimental", "", "active", None, 1, ["standard"]])
def test_another_standing_is_refused_by_file(tmp_path: Path, standing: Any) -> None:
    """It lies outside the digest, so nothing else would notice."""
    with pytest.raises(ProfileError, match=r"made\.json: standing .* is not known; it is one of standard, exp"):
        bundled(wrapper(tmp_path, standing=standing))
