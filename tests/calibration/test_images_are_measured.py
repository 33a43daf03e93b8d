"""Geometries of interleaving rows: told apart by the inner extent, stored with it, and read along the right axis."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from calibration.errors import RecordError
from calibration.extents import shape_in_memory, shape_of, shape_text
from calibration.inputs import rows_of
from calibration.journal import key_of, planned_key
from calibration.plan import Plan, draw_plan, plan_from_json
from calibration.planned import Planned
from calibration.records import TRAINING, geometry_from_json
from kernels.identity import canonical_json
from kernels.recipe import ORIGINAL
from tests.calibration.planted import planted_cohort
from tests.calibration.test_the_wide_plan_spans_what_people_run import columns
from tests.made import H200

RECORD = planted_cohort()[0]
OP = "channel_rms"
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


@pytest.fixture(scope="module", params=["hot", "cold"])
def plan(request: pytest.FixtureRequest) -> Plan:
    return draw_plan((OP,), 7, H200, 64 * 2**30, regime=request.param, inventory_name="wide")


def test_the_inventory_of_images_is_large_enough_and_apart_from_training(plan: Plan) -> None:
    trained, judged = {p.key for p in plan.training}, {p.key for p in plan.validation}
    assert len(judged) == len(plan.validation) >= 60
    assert len(trained) == len(plan.training) >= 150
    assert not trained & judged
    assert all(p.rows % p.inner == 0 for p in plan.points)
    assert plan_from_json(json.loads(canonical_json(plan.to_json()))) == plan


def test_strata_of_images_have_equal_shares(plan: Plan) -> None:
    points = [p for p in plan.validation if p.stratum["width"] != "named"]
    for kind in ("width", "rows", "elements"):
        shares = Counter(p.stratum[kind] for p in points)
        assert max(shares.values()) - min(shares.values()) <= 1, kind
    assert len({p.dtype for p in points}) == 3
    assert sum(p.peers for p in plan.validation) >= 40


def test_the_reports_images_are_judged(plan: Plan) -> None:
    named = [(p.rows // p.inner, p.width, p.inner) for p in plan.validation if p.stratum["width"] == "named"]
    assert {(4, 64, 512 * 512), (4, 32, 512 * 1024), (4, 128, 256 * 512)} <= set(named)
    assert (2, 64, 64 * 64) in named


def test_training_images_span_the_features_of_those_that_are_judged(plan: Plan) -> None:
    """Of each role and dtype alone: all of the original's, and of recipes seven in eight."""
    trained, judged = columns(plan.training), columns(plan.validation)
    inside, met = 0, 0
    for key, vectors in judged.items():
        ranges = [(min(values), max(values)) for values in zip(*trained[key], strict=True)]
        held = [
            all(low <= value <= high for (low, high), value in zip(ranges, vector, strict=True)) for vector in vectors
        ]
        assert key[1] != ORIGINAL or all(held), key
        inside, met = inside + sum(held), met + len(held)
    assert inside >= 7 / 8 * met


def test_a_family_of_channels_is_fitted_on_one_form() -> None:
    """The others cost what it costs, but for a root or a division a position; they are judged."""
    ops = ("channel_rms", "channel_mean_abs", "channel_l2")
    together = draw_plan(ops, 7, H200, 64 * 2**30, inventory_name="wide")
    assert {p.op for p in together.training} == {"channel_rms"}
    assert {p.op for p in together.validation} == set(ops)
    assert {p.op for p in draw_plan(ops[1:], 7, H200, 64 * 2**30, inventory_name="wide").training} == set(ops[1:])
