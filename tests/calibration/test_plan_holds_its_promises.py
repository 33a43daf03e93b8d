"""A plan is drawn by seed from committed tables: the inventory is disjoint, spread over its strata and in range."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest
from attrs import evolve

import calibration
from calibration.errors import PlanError
from calibration.plan import Plan, Planned, draw_plan, plan_from_json
from calibration.strata import ELEMENTS, GRIDS, ROWS, ElementStratum, RowStratum, WidthStratum
from features.proof import Proved, candidates
from features.schema import point
from features.schemas import schemas_of
from features.workload import Workload
from kernels.dtypes import STORAGE
from kernels.identity import canonical_json
from kernels.recipe import ORIGINAL, RECIPE, SPLIT, Recipe
from kernels.recipes import original_of, recipes_of
from kernels.reductions import SHORT
from kernels.scans import ANY, BROAD, COVER, FLAT, NARROW, TINY
from tests.made import CAPACITY, H200

GIB = 2**30
# The tables are named, so that another default changes nothing here.
documented = partial(draw_plan, inventory_name="documented")
PLANS = [documented(("scan",), seed, H200, 64 * GIB) for seed in (0, 7, 20250101)]


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
    again = documented(("scan",), plan.seed, H200, 64 * GIB)
    assert again == plan
    assert plan_from_json(json.loads(canonical_json(plan.to_json()))).digest == plan.digest
    assert documented(("scan",), plan.seed + 1, H200, 64 * GIB).validation != plan.validation


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


def test_element_strata_width_strata_and_dtypes_share_alike(plan: Plan) -> None:
    elements = Counter(p.stratum["elements"] for p in plan.validation)
    assert set(elements) == {e.name for e in ELEMENTS}
    assert len(set(elements.values())) == 1
    counts = {w.name: w.count for w in GRIDS["prefix.sum"].inventory}
    for name in elements:
        drawn = [p for p in plan.validation if p.stratum["elements"] == name]
        assert Counter(p.stratum["width"] for p in drawn) == counts
        assert set(Counter(p.dtype for p in drawn).values()) == {len(drawn) // len(STORAGE)}


@pytest.mark.parametrize("elements", ELEMENTS, ids=lambda stratum: stratum.name)
def test_row_and_width_strata_meet_equally_often(plan: Plan, elements: ElementStratum) -> None:
    """A row stratum that no width meets (many rows below 2^16 elements) has no share.

    Where one meets some widths and not those of a stratum, the next takes its share of them.
    """
    widths = GRIDS["prefix.sum"].inventory
    exist = {(r.name, w.name) for r in ROWS for w in widths if meets(plan, elements, r, w)}
    rows = {name for name, _ in exist}
    pairs = Counter(
        (p.stratum["rows"], p.stratum["width"]) for p in plan.validation if p.stratum["elements"] == elements.name
    )
    assert set(pairs) == exist
    for w in widths:
        share, without = w.count / len(rows), {r for r in rows if (r, w.name) not in exist}
        given = sorted(pairs[r, w.name] for r in rows - without)
        assert given[0] == share
        assert sum(given) - share * len(given) == share * len(without)


def meets(plan: Plan, elements: ElementStratum, rows: RowStratum, widths: WidthStratum) -> bool:
    """Return whether the inventory can hold a geometry of the three strata."""
    trained = [p.width for p in plan.training]
    least, most = min(trained), max(trained)
    for count in rows.rows(plan.sm_count):
        low = max(least, -(-elements.low // count))
        high = min(most, (elements.high - 1) // count, plan.max_elements // 2 // count)
        if any(low <= width <= high for width in widths.widths):
            return True
    return False


def test_each_geometry_is_in_the_strata_that_it_names(plan: Plan) -> None:
    by_name = {e.name: e for e in ELEMENTS}
    rows = {r.name: set(r.rows(H200.sm_count)) for r in ROWS}
    widths = {w.name: w.widths for w in GRIDS["prefix.sum"].inventory}
    for p in plan.validation:
        stratum = by_name[p.stratum["elements"]]
        assert stratum.low <= p.rows * p.width < stratum.high
        assert p.rows in rows[p.stratum["rows"]]
        assert p.width in widths[p.stratum["width"]]


def proved(p: Planned) -> list[Recipe]:
    """Return the recipes that are legal at a planned geometry, the original left out."""
    judged = candidates(Workload(p.program, p.rows, p.width, p.width))
    return [recipe for recipe, proof in judged if isinstance(proof, Proved) and recipe.role != ORIGINAL]


def test_every_geometry_has_a_proved_recipe(plan: Plan) -> None:
    """Some form of the original by itself where nothing else is."""
    assert all(map(proved, (*plan.training, *plan.validation)))
    assert {"odd", "model-shape", "round"} <= {p.stratum["width"] for p in plan.validation}
    assert {recipe.role for p in plan.validation for recipe in proved(p)} >= {RECIPE, SPLIT, ANY}


def test_training_measures_every_recipe_in_every_dtype_often_enough_to_tell_it(plan: Plan) -> None:
    """Two rows for three columns of its role at least, were a dtype and a recipe alone in their block.

    The documented widths begin at 1024: of recipes for short rows they have those for the widest, enough for one block,
    of one or two warps a row those up to 2048 and 4096, of sixteen few rows, and no covered or tiny ones.
    """
    measured = Counter((recipe.id, p.dtype) for p in plan.training for recipe in proved(p))
    (form,) = {p.form for p in plan.training}
    columns = schemas_of(form)[-1].roles
    for recipe in (row for row in recipes_of(form)[1:] if row.role not in (SHORT, FLAT, COVER, TINY, NARROW, BROAD)):
        for dtype in recipe.dtypes:
            assert 3 * measured[recipe.id, dtype] >= 2 * len(columns[recipe.role]), (recipe.id, dtype)
    for role in (SHORT, FLAT):
        known = sum(measured[row.id, dtype] for row in recipes_of(form) if row.role == role for dtype in row.dtypes)
        assert known >= 3 * len(columns[role]), role


def test_the_features_of_the_inventory_lie_inside_those_of_training(plan: Plan) -> None:
    """All but a few: what lies outside is not scored, and would judge nothing."""
    trained: dict[str, list[tuple[float, ...]]] = {}
    for role, values in priced(plan.training):
        trained.setdefault(role, []).append(values)
    ranges = {role: [(min(c), max(c)) for c in zip(*rows, strict=True)] for role, rows in trained.items()}
    inside = [
        all(low <= value <= high for value, (low, high) in zip(values, ranges[role], strict=True))
        for role, values in priced(plan.validation)
    ]
    assert sum(inside) >= 0.97 * len(inside)


def priced(planned: Iterable[Planned]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield role and columns, under the newest schema, of whatever is legal at each geometry."""
    for p in planned:
        work = Workload(p.program, p.rows, p.width, p.width)
        for recipe in (original_of(p.form), *proved(p)):
            at = point(work, recipe, CAPACITY[recipe.threads], H200)
            yield recipe.role, schemas_of(p.form)[-1].vector(recipe.role, at)


def test_training_has_one_short_of_at_and_past_multiples_of_the_sm_count(plan: Plan) -> None:
    rows = {p.rows for p in plan.training}
    assert {m * 132 + step for m in (1, 2, 4, 8) for step in (-1, 0, 1)} <= rows
    assert {1, 8192, 65536} <= rows
    other = documented(("scan",), plan.seed, evolve(H200, sm_count=114), 64 * GIB)
    assert {113, 114, 115} <= {p.rows for p in other.training}


def test_limits_of_memory_elements_and_regime_hold() -> None:
    for limit in (2**22, 2**28):
        small = documented(("scan",), 7, H200, 64 * GIB, max_elements=limit)
        assert max(p.rows * p.width for p in small.training) <= limit
    tight = documented(("scan",), 7, H200, 64 * 2**20)
    assert max(p.rows * p.width * STORAGE[p.dtype].bytes for p in tight.training + tight.validation) <= 16 * 2**20
    cold = documented(("scan",), 7, H200, 64 * GIB, regime="cold")
    footprints = [2 * p.rows * p.width * STORAGE[p.dtype].bytes for p in cold.training + cold.validation]
    assert min(footprints) >= 2**20
    with pytest.raises(PlanError, match="no geometry of scan fits"):
        documented(("scan",), 7, H200, 1024)


def test_a_family_without_a_grid_is_an_error_that_lists_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calibration.plan.GRIDS", {"none": GRIDS["prefix.sum"]})
    with pytest.raises(PlanError, match=r"where prefix\.sum is measured; there are none"):
        documented(("scan",), 7, H200, GIB)


def test_no_code_of_this_room_tests_for_a_family_by_name() -> None:
    """Families are rows of tables; a second one changes no code."""
    folder = Path(calibration.__file__).parent
    named = [
        path.name
        for path in sorted(folder.glob("*.py"))
        if '"scan' in path.read_text() or '== "prefix' in path.read_text()
    ]
    assert named == []
