"""A plan is drawn by seed from committed tables: the inventory is disjoint, spread over its strata and in range."""

import json
from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve

import calibration
from calibration.errors import PlanError
from calibration.plan import Plan, draw_plan, plan_from_json
from calibration.strata import ELEMENTS, GRIDS, ROWS
from features.proof import Proved, candidates
from features.workload import Workload
from kernels.dtypes import STORAGE
from kernels.identity import canonical_json
from kernels.recipes import ORIGINAL
from tests.made import H200

GIB = 2**30
PLANS = [draw_plan(("scan",), seed, H200, 64 * GIB) for seed in (0, 7, 20250101)]


@pytest.fixture(params=PLANS, ids=lambda plan: f"seed {plan.seed}")
def plan(request: pytest.FixtureRequest) -> Plan:
    found: Plan = request.param
    return found


def test_training_and_inventory_are_large_enough_and_disjoint(plan: Plan) -> None:
    training, inventory = {p.key for p in plan.training}, {p.key for p in plan.validation}
    assert len(training) == len(plan.training) >= 150
    assert len(inventory) == len(plan.validation) >= 60
    assert not training & inventory


def test_the_same_arguments_draw_the_same_plan_and_another_seed_another(plan: Plan) -> None:
    again = draw_plan(("scan",), plan.seed, H200, 64 * GIB)
    assert again == plan
    assert plan_from_json(json.loads(canonical_json(plan.to_json()))).digest == plan.digest
    assert draw_plan(("scan",), plan.seed + 1, H200, 64 * GIB).validation != plan.validation


def test_the_inventory_lies_inside_what_training_spans(plan: Plan) -> None:
    for extent in ("rows", "width"):
        fitted = [getattr(p, extent) for p in plan.training]
        assert all(min(fitted) <= getattr(p, extent) <= max(fitted) for p in plan.validation)
    for dtype in STORAGE:
        most = max(p.rows * p.width for p in plan.training if p.dtype == dtype)
        serial = max(-(-p.rows // H200.sm_count) * p.width for p in plan.training if p.dtype == dtype)
        judged = [p for p in plan.validation if p.dtype == dtype]
        assert all(p.rows * p.width <= most for p in judged)
        assert all(-(-p.rows // H200.sm_count) * p.width <= serial for p in judged)


def test_element_strata_dtypes_and_row_strata_share_alike(plan: Plan) -> None:
    elements = Counter(p.stratum["elements"] for p in plan.validation)
    assert set(elements) == {e.name for e in ELEMENTS}
    assert len(set(elements.values())) == 1
    assert len(set(Counter(p.dtype for p in plan.validation).values())) == 1
    for name in elements:
        # A row stratum that no admitted width meets (many rows below 2^16 elements) has no share.
        shares = Counter(p.stratum["rows"] for p in plan.validation if p.stratum["elements"] == name)
        assert max(shares.values()) - min(shares.values()) <= 1


def test_each_geometry_is_in_the_strata_that_it_names(plan: Plan) -> None:
    by_name = {e.name: e for e in ELEMENTS}
    rows = {r.name: set(r.rows(H200.sm_count)) for r in ROWS}
    widths = {w.name: w.widths for w in GRIDS["prefix.sum"].inventory}
    for p in plan.validation:
        stratum = by_name[p.stratum["elements"]]
        assert stratum.low <= p.rows * p.width < stratum.high
        assert p.rows in rows[p.stratum["rows"]]
        assert p.width in widths[p.stratum["width"]]


def test_three_quarters_of_the_inventory_have_a_proved_recipe_and_some_have_none(plan: Plan) -> None:
    def proved(p) -> bool:  # type: ignore[no-untyped-def]
        judged = candidates(Workload(p.program, p.rows, p.width, p.width))
        return any(isinstance(proof, Proved) and recipe.role != ORIGINAL for recipe, proof in judged)

    share = sum(map(proved, plan.validation)) / len(plan.validation)
    assert share >= 0.75
    assert all(map(proved, plan.training))
    assert {"odd", "model-shape, uneven"} <= {p.stratum["width"] for p in plan.validation}


def test_training_has_one_short_of_at_and_past_multiples_of_the_sm_count(plan: Plan) -> None:
    rows = {p.rows for p in plan.training}
    assert {m * 132 + step for m in (1, 2, 4, 8) for step in (-1, 0, 1)} <= rows
    assert {1, 8192, 65536} <= rows
    other = draw_plan(("scan",), plan.seed, evolve(H200, sm_count=114), 64 * GIB)
    assert {113, 114, 115} <= {p.rows for p in other.training}


def test_limits_of_memory_elements_and_regime_hold() -> None:
    for limit in (2**22, 2**28):
        small = draw_plan(("scan",), 7, H200, 64 * GIB, max_elements=limit)
        assert max(p.rows * p.width for p in small.training) <= limit
    tight = draw_plan(("scan",), 7, H200, 64 * 2**20)
    assert max(p.rows * p.width * STORAGE[p.dtype].bytes for p in tight.training + tight.validation) <= 16 * 2**20
    cold = draw_plan(("scan",), 7, H200, 64 * GIB, regime="cold")
    footprints = [2 * p.rows * p.width * STORAGE[p.dtype].bytes for p in cold.training + cold.validation]
    assert min(footprints) >= 2**20
    with pytest.raises(PlanError, match="no geometry of scan fits"):
        draw_plan(("scan",), 7, H200, 1024)


def test_a_family_without_a_grid_is_an_error_that_lists_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibration.plan.GRIDS", {"none": GRIDS["prefix.sum"]})
    with pytest.raises(PlanError, match=r"where prefix\.sum is measured; there are none"):
        draw_plan(("scan",), 7, H200, GIB)


def test_no_code_of_this_room_tests_for_a_family_by_name() -> None:
    """Families are rows of tables; a second one changes no code."""
    folder = Path(calibration.__file__).parent
    named = [
        path.name
        for path in sorted(folder.glob("*.py"))
        if '"scan' in path.read_text() or '== "prefix' in path.read_text()
    ]
    assert named == []
