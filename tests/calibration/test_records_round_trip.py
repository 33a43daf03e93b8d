"""A geometry record is one document: read and written without a change, refused where it says two things."""

import json
from typing import Any

import pytest
from attrs import evolve

from calibration.errors import RecordError
from calibration.records import Geometry, geometry_from_json, inconsistencies
from kernels.identity import canonical_json, digest
from tests.calibration.planted import planted_contents

RECORDS = (planted_contents().cohort[0], planted_contents().validation_records[0])


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.purpose)
def test_a_record_is_named_by_the_digest_of_what_is_stored(record: Geometry) -> None:
    stored = json.loads(canonical_json(record.to_json()))
    again = geometry_from_json(stored)
    assert again.digest == record.digest == digest(stored)
    assert again.to_json() == stored
    assert inconsistencies(again) == ()


def changed(**facts: Any) -> dict[str, Any]:
    return {**RECORDS[0].to_json(), **facts}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (changed(schema="rowsmith.geometry/2"), "matching release"),
        (changed(purpose="testing"), "purpose 'testing'"),
        (changed(run=1), "run 1"),
        (changed(regime="warm"), "regime 'warm'"),
        (changed(dtype="float64"), "dtype 'float64'"),
        (changed(rows=-1), "rows is -1"),
        (changed(form="reduce.sum"), "the program's form"),
        (changed(program=["store", "float16", ["load", "float16"]]), "none that this release can build"),
        (changed(extra=1), "unknown keys"),
        (changed(measurements=RECORDS[0].to_json()["measurements"][:1] * 2), "measured twice"),
        ({"schema": "rowsmith.geometry/1"}, "lacks"),
        ({}, "malformed"),
    ],
)
def test_a_document_that_is_no_record_is_refused_with_the_reason(document: dict[str, Any], said: str) -> None:
    with pytest.raises(RecordError, match=said):
        geometry_from_json(document)


def test_a_failed_check_is_kept_and_was_not_timed() -> None:
    measured = RECORDS[0].measurements[0]
    assert evolve(measured, status="wrong", samples_ns=(), recheck_ns=None).status == "wrong"
    with pytest.raises(RecordError, match="not timed, yet there are 25 samples"):
        evolve(measured, status="wrong")


def test_a_drift_that_the_samples_do_not_show_is_named() -> None:
    original = RECORDS[0].measurements[0]
    slower = evolve(original, recheck_ns=tuple(round(s * 1.05) for s in original.samples_ns))
    moved = evolve(RECORDS[0], measurements=(slower, *RECORDS[0].measurements[1:]))
    assert {name for name, _, _ in inconsistencies(moved)} == {"drift", "status"}
