"""Geometries of interleaving rows: told apart by the inner extent, stored with it, and read along the right axis."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from calibration.errors import RecordError
from calibration.extents import shape_in_memory, shape_of, shape_text
from calibration.inputs import rows_of
from calibration.journal import key_of, planned_key
from calibration.planned import Planned
from calibration.records import TRAINING, geometry_from_json
from kernels.identity import canonical_json
from tests.calibration.planted import planted_cohort

RECORD = planted_cohort()[0]
IMAGES: dict[str, Any] = {"rows": 60, "width": 8, "inner": 30}


def test_a_geometry_without_images_says_nothing_of_them() -> None:
    """Its stored bytes, and what they are named by, are those of earlier releases."""
    planned = Planned("scan", "float16", 60, 8, {})
    assert "inner" not in planned.to_json()
    assert "inner" not in RECORD.to_json()
    assert planned.key == ("scan", "float16", 60, 8)
    assert RECORD.key == (RECORD.form, RECORD.dtype, RECORD.rows, RECORD.width)


def test_images_are_part_of_a_plans_geometry_and_of_its_key() -> None:
    planned = Planned("scan", "float16", 60, 8, {}, inner=30)
    assert Planned(**json.loads(canonical_json(planned.to_json()))) == planned
    assert planned.key == ("scan", "float16", 60, 8, 30)
    assert planned_key(planned, TRAINING, 0)[-3:] == (60, 8, 30)
    assert planned.workload.inner == 30


def test_a_record_of_images_is_stored_and_read_without_a_change() -> None:
    record = evolve(RECORD, **IMAGES)
    again = geometry_from_json(json.loads(canonical_json(record.to_json())))
    assert (again, again.digest) == (record, record.digest)
    assert record.label == f"{record.form} {record.dtype} 2 x 8 x 30"
    assert key_of(record)[-3:] == (60, 8, 30)
    assert (record.workload.rows, record.workload.inner, record.workload.row_pitch) == (60, 30, 8)
    assert evolve(RECORD, **{**IMAGES, "inner": 1}).digest != record.digest


@pytest.mark.parametrize("inner", [0, -1, 7, True, 1.0, None])
def test_a_record_of_no_whole_images_is_refused(inner: Any) -> None:
    with pytest.raises(RecordError, match=r"no whole images of 7|not a whole number of at least 1"):
        evolve(RECORD, rows=60, width=8, inner=inner)


def test_images_are_read_as_rows() -> None:
    images = np.arange(2 * 3 * 5).reshape(2, 3, 5)
    rows = rows_of(images)
    assert rows.shape == (10, 3)
    assert all(np.array_equal(rows[r], images[r // 5, :, r % 5]) for r in range(10))
    plain = np.arange(6).reshape(2, 3)
    assert rows_of(plain) is plain


def test_extents_are_told_as_people_know_them() -> None:
    assert shape_in_memory(60, 8, 1) == (60, 8)
    assert shape_in_memory(60, 8, 30) == (2, 8, 30)
    assert shape_text(60, 8) == shape_of({"rows": 60, "width": 8}) == "60 x 8"
    assert shape_text(60, 8, 30) == shape_of({"rows": 60, "width": 8, "inner": 30}) == "2 x 8 x 30"
