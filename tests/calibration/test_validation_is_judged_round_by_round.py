"""A validation lists every outcome, and no ratio joins two rounds."""

import json
import math
from collections.abc import Iterable

import pytest
from attrs import evolve

from calibration.errors import RecordError
from calibration.freeze import freeze, held_out_regret, in_force, wrapper
from calibration.judge import judge
from calibration.records import Geometry, is_ambiguous, original_drift
from calibration.report import table
from features.schema import Feature
from features.schemas import SCHEMAS, schemas_of
from kernels.identity import canonical_json, digest
from policy.errors import ProfileError
from policy.profile import profile_from_document
from tests.calibration.planted import NARROWER, planted_contents
from tests.made import H200

CONTENTS = planted_contents()
PROFILE = digest(CONTENTS.profile)


def rejudge(records: list[Geometry]) -> dict:  # type: ignore[type-arg]
    return judge(PROFILE, records, CONTENTS.selections, (1000, 3000))


def slowed(record: Geometry, name: str, factor: float) -> Geometry:
    """Return the record with one candidate slower by a factor."""
    measurements = tuple(
        evolve(m, samples_ns=tuple(round(s * factor) for s in m.samples_ns)) if m.name == name else m
        for m in record.measurements
    )
    moved = evolve(record, measurements=measurements, ambiguous=is_ambiguous(measurements))
    return evolve(moved, drift=original_drift(moved.measurements[0]))


def admitted_pair() -> tuple[int, int]:
    """Return where the two runs of one geometry with an admitted recipe stand."""
    for place, record in enumerate(CONTENTS.validation_records):
        if record.by_name["policy"].picked != record.measurements[0].name and record.run == 1:
            return place, place + 1
    raise AssertionError("nothing was admitted")


def test_every_outcome_is_listed_and_the_figures_are_of_them() -> None:
    found = rejudge(list(CONTENTS.validation_records))
    assert len(found["outcomes"]) == len(CONTENTS.validation_records)
    for run, figures in found["figures"]["runs"].items():
        outcomes = [o for o in found["outcomes"] if run in ("both", str(o["run"]))]
        regrets = [o["regret"] for o in outcomes]
        assert all(regret >= 1 for regret in regrets)
        assert figures["regret_worst"] == max(regrets)
        assert figures["regret_geomean"] == pytest.approx(math.prod(regrets) ** (1 / len(regrets)))
        assert figures["admitted_share"] + sum(figures["abstentions"].values()) / len(outcomes) == pytest.approx(1)
    assert found["host_search"]["median_us"] == 2.0


def test_each_ratio_is_of_one_record_alone() -> None:
    """Slowing everything of one record by a factor, as another clock would, changes no ratio anywhere."""
    records = list(CONTENTS.validation_records)
    before = rejudge(records)["outcomes"][0]
    for m in records[0].measurements:
        records[0] = slowed(records[0], m.name, 2)
    after = rejudge(records)["outcomes"][0]
    for name in ("regret", "picked_over_original", "original_over_compile", "picked_over_compile", "picked_over_copy"):
        assert after[name] == pytest.approx(before[name], rel=1e-5)
    assert after["original_us"] == pytest.approx(2 * before["original_us"], rel=1e-5)


def test_a_regression_in_one_run_is_listed_and_one_in_both_makes_the_profile_experimental() -> None:
    records, (first, second) = list(CONTENTS.validation_records), admitted_pair()
    records[first] = slowed(records[first], "policy", 50)
    once = rejudge(records)
    assert (len(once["regressions"]), once["figures"]["regressions"], once["standing"]) == (1, [], "standard")
    assert len(once["disagreements"]) == 1, "the automatic pick no longer agrees with the same recipe forced"
    records[second] = slowed(records[second], "policy", 50)
    twice = rejudge(records)
    assert twice["standing"] == "experimental"
    (repeated,) = twice["figures"]["regressions"]
    assert (repeated["rows"], repeated["width"]) == (records[first].rows, records[first].width)
    assert all(ratio > 1.03 for ratio in repeated["picked_over_original"])
    assert f"{records[first].rows} x {records[first].width}, run 1" in table(twice)


def test_a_drifted_record_is_listed_and_has_no_ratio() -> None:
    records = list(CONTENTS.validation_records)
    records[0] = evolve(records[0], status="drifted")
    found = rejudge(records)
    assert found["figures"]["runs"]["both"]["statuses"]["drifted"] == 1
    assert found["outcomes"][0]["picked_over_original"] is None
    assert found["figures"]["runs"]["both"]["picked_over_original_count"] == len(records) - 1


def test_a_record_and_its_selection_must_say_the_same() -> None:
    records = list(CONTENTS.validation_records)
    place, _ = admitted_pair()
    measurements = tuple(
        evolve(m, picked=records[place].measurements[0].name) if m.name == "policy" else m
        for m in records[place].measurements
    )
    with pytest.raises(RecordError, match="was run and the selection says"):
        rejudge([*records[:place], evolve(records[place], measurements=measurements)])
    with pytest.raises(RecordError, match="there is no selection"):
        judge(PROFILE, records, CONTENTS.selections[1:])
    with pytest.raises(RecordError, match="is of profile"):
        judge("0" * 64, records, CONTENTS.selections)
    with pytest.raises(RecordError, match="no validation record"):
        judge(PROFILE, CONTENTS.cohort, CONTENTS.selections)


def columns(features: Iterable[Feature]) -> set[str]:
    """Return their names, those near and far as one: the planted times are the same for both."""
    return {feature.name.removeprefix("near_").removeprefix("far_") for feature in features}


def test_a_frozen_profile_reads_back_and_is_named_by_its_document() -> None:
    document = freeze("planted", "hot", H200, CONTENTS.fits, reversed(CONTENTS.receipts))
    assert document == CONTENTS.profile
    wrapped = json.loads(canonical_json(wrapper(document, "standard")))
    profile = profile_from_document(wrapped["profile"], wrapped["digest"])
    assert profile.target == H200
    assert [fit.digest for fit in profile.fits] == [digest(fit) for fit in in_force(CONTENTS.fits)]
    assert held_out_regret(in_force(CONTENTS.fits)[0]) == min(map(held_out_regret, CONTENTS.fits))
    block = profile.fits[0].blocks[0]
    assert list(block.coefficients) == in_force(CONTENTS.fits)[0]["blocks"][0]["coefficients"]
    newest, chosen = schemas_of(profile.fits[0].family)[-1], SCHEMAS[profile.fits[0].feature_schema]
    for role in set(chosen.roles) - NARROWER:
        assert columns(newest.roles[role]) == columns(chosen.roles[role]), "the planted times follow them"
    wrapped["profile"]["fits"][0]["blocks"][0]["coefficients"][0] += 1
    with pytest.raises(ProfileError, match="damaged"):
        profile_from_document(wrapped["profile"], wrapped["digest"])
