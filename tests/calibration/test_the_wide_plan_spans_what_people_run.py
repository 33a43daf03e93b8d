"""The wide tables hold what people run, share their strata alike, and span every feature that a judged point has."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from attrs import evolve

from calibration.drawing import BUFFERS
from calibration.errors import PlanError
from calibration.estimate import estimate
from calibration.plan import INVENTORIES, Plan, Planned, draw_plan, plan_from_json
from calibration.strata import ELEMENTS, HIDDEN, VOCABULARIES
from calibration.wide import MOST, wide
from features.expression import LAST
from features.program import OPS, axis_of, program_of
from features.proof import Proved, candidates
from features.schema import point
from features.schemas import schemas_of
from features.schemas_norm import ROWNORM_1
from features.schemas_reduce import REDUCE_2
from kernels.dtypes import STORAGE
from kernels.identity import canonical_json
from kernels.recipe import ORIGINAL, RECIPE, SPLIT
from kernels.recipes import RECIPES, family_of
from kernels.scans import ANY, BROAD, NARROW
from tests.made import H200, made_receipt

GIB = 2**30
# Of rows: tests/calibration/test_images_are_measured.py has the grid of images.
OP_LIST = tuple(op for op in OPS if axis_of(program_of(op, "float32")) == LAST)


def drawn(op: str, seed: int = 7, regime: str = "hot", **facts: object) -> Plan:
    return draw_plan((op,), seed, H200, 64 * GIB, regime=regime, inventory_name="wide", **facts)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=[(op, regime) for op in OP_LIST for regime in ("hot", "cold")], ids=str)
def plan(request: pytest.FixtureRequest) -> Plan:
    op, regime = request.param
    return drawn(op, regime=regime)


def test_the_inventory_is_large_enough_and_none_of_it_is_trained_on(plan: Plan) -> None:
    trained, judged = {p.key for p in plan.training}, {p.key for p in plan.validation}
    assert len(judged) == len(plan.validation) >= 150
    assert len(trained) == len(plan.training) >= 150
    assert not trained & judged


def test_strata_and_dtypes_have_equal_shares_of_what_is_drawn(plan: Plan) -> None:
    points = [p for p in plan.validation if p.stratum["width"] != "named"]
    for kind, strata in (("width", 3), ("rows", 3), ("elements", 4)):
        shares = Counter(p.stratum[kind] for p in points)
        assert max(shares.values()) - min(shares.values()) <= 1, kind
        # Cold launches have no small tensors; the other strata then share their geometries.
        assert len(shares) == strata or (kind == "elements" and plan.regime == "cold")
    shares = Counter(p.dtype for p in points)
    assert set(shares) == set(STORAGE)
    assert max(shares.values()) - min(shares.values()) <= 1
    pairs = Counter((p.dtype, p.stratum["rows"]) for p in points)
    assert max(pairs.values()) - min(pairs.values()) <= 3, "no dtype keeps to some rows"
    by_name = {e.name: e for e in ELEMENTS}
    assert all(by_name[p.stratum["elements"]].low <= p.rows * p.width for p in points)
    assert all(by_name[p.stratum["elements"]].high > p.rows * p.width for p in points)


def test_rows_and_widths_go_from_one_to_a_million(plan: Plan) -> None:
    for points in (plan.training, plan.validation):
        assert max(p.rows for p in points) >= 500_000
        assert min(p.rows for p in points) == 1
        assert max(p.width for p in points) >= 500_000
        assert min(p.width for p in points) <= (4 if plan.regime == "hot" else 256)
    assert {1, MOST} <= {p.rows for p in plan.training}
    assert {1, MOST} <= {p.width for p in plan.training}


def test_over_some_seeds_every_model_shape_and_both_sides_of_sm_multiples_are_judged() -> None:
    points = [p for seed in range(8) for p in drawn(OP_LIST[0], seed).validation]
    assert {*HIDDEN, *VOCABULARIES} <= {p.width for p in points}
    sms = H200.sm_count
    for multiple in (1, 2, 4, 8, 16):
        assert {multiple * sms - 1, multiple * sms + 1} <= {p.rows for p in points}
    odd = [p.width for p in points if p.stratum["width"] == "odd"]
    assert all(width % 2 for width in odd)


FEW = 6  # judged geometries of a role and dtype, of which one outside would be a sixth
LEAST_INSIDE = {
    **{(schema, SPLIT): 0.8 for schema in ("scan/3", "scan/4", "scan/5", "scan/6", "scan/7", "reduce/1", "reduce/2")},
    **{
        (schema, role): 0.85 if schema == "scan/7" else 0.9
        for schema in ("scan/4", "scan/5", "scan/6", "scan/7")
        for role in (ORIGINAL, RECIPE, ANY, NARROW, BROAD)
    },
    **{(schema, role): 0.75 for schema in ("reduce/1", "reduce/2") for role in REDUCE_2.roles if role != ORIGINAL},
    **{("rownorm/1", role): 0.85 if role == ORIGINAL else 0.5 for role in ROWNORM_1.roles},
}
Columns = dict[tuple[str, str, str], list[tuple[float, ...]]]


def columns(points: tuple[Planned, ...]) -> Columns:
    """The features of every proved recipe at every point, by schema, role and dtype."""
    known = {(r.id, d): made_receipt(r, d).resident_ctas_per_sm for r in RECIPES for d in r.dtypes}
    found: dict[tuple[str, str, str], list[tuple[float, ...]]] = {}
    for p in points:
        work = p.workload
        for recipe, proof in candidates(work):
            if isinstance(proof, Proved):
                at = point(work, recipe, known[recipe.id, p.dtype], H200)
                for schema in schemas_of(recipe.family):
                    vector = schema.vector(recipe.role, at)
                    found.setdefault((schema.id, recipe.role, p.dtype), []).append(vector)
    return found


def test_every_feature_of_the_inventory_lies_in_the_range_that_training_spans(plan: Plan) -> None:
    """Role by role, and for each dtype alone, as a fit with separate blocks has them.

    What decides whether anything is admitted is the original, and every feature of its inventory has to lie inside. A
    recipe of reductions outside its ranges is not taken: of those with a line of their own, which have few geometries,
    up to one in four where there are six and more.
    Where rows are split, many rows may make more CTAs than any training geometry has: there whole rows are better. The
    most rows of an odd width may take more steps off vector boundaries than any of training: up to 1 in 10 originals of
    a dtype alone; with FP16 and BF16 in one block, as the first cohort chose, 2 geometries of 162. Columns for what is
    near and far have ends where the two meet: up to 3 in 20, and none of 492 once an inventory has taught. Row
    normalizations, which no inventory has taught yet, leave as many originals outside, and half of a role.
    """
    trained, judged = columns(plan.training), columns(plan.validation)
    for key, vectors in judged.items():
        ranges = [(min(values), max(values)) for values in zip(*trained[key], strict=True)]
        inside = [
            all(low <= value <= high for (low, high), value in zip(ranges, vector, strict=True)) for vector in vectors
        ]
        few = key[0].startswith(("reduce/", "rownorm/")) and key[1] != ORIGINAL and len(inside) < FEW
        assert few or sum(inside) >= LEAST_INSIDE.get(key[:2], 1.0) * len(inside), key


def test_named_geometries_are_in_every_inventory_and_in_no_training_set(plan: Plan) -> None:
    named = {
        (row.rows, row.width, dtype) for row in wide(family_of(plan.training[0].form)).named for dtype in row.dtypes
    }
    judged = {(p.rows, p.width, p.dtype) for p in plan.validation}
    assert {(1, MOST, dtype) for dtype in STORAGE} | {(4, 2**18, dtype) for dtype in STORAGE} <= named
    fitting = {n for n in named if plan.regime == "hot" or 2 * n[0] * n[1] * STORAGE[n[2]].bytes >= 2**20}
    assert fitting <= judged


def test_a_reduction_has_the_geometries_on_which_an_earlier_policy_regressed() -> None:
    named = {(row.rows, row.width, dtype) for row in wide("reduce.sum").named for dtype in row.dtypes}
    assert {(65, 2048, "float16"), (1024, 512, "float16"), (257, 128, "bfloat16")} <= named


def test_peers_join_on_forty_and_more_spread_over_the_strata(plan: Plan) -> None:
    joined = [p for p in plan.validation if p.peers]
    assert 40 <= len(joined) < 60
    cells = {tuple(p.stratum.values()) for p in plan.validation}
    assert {tuple(p.stratum.values()) for p in joined} == cells
    assert {p.key for p in joined} != {p.key for p in drawn(plan.ops[0], 8, plan.regime).validation if p.peers}


def test_the_plan_is_stored_and_read_without_a_change(plan: Plan) -> None:
    again = plan_from_json(json.loads(canonical_json(plan.to_json())))
    assert again == plan
    assert again.digest == plan.digest


def test_another_inventory_seed_leaves_the_training_set_and_judges_elsewhere() -> None:
    first, second = drawn(OP_LIST[0]), drawn(OP_LIST[0], inventory_seed=8)
    assert first.training == second.training
    fresh = {p.key for p in second.validation} - {p.key for p in first.validation}
    assert len(fresh) > 100
    assert plan_from_json(json.loads(canonical_json(second.to_json()))).inventory_seed == 8


def test_an_inventory_that_judged_joins_the_training_set() -> None:
    """All of it but what every inventory has; the next one is drawn beside both, and the plan reads back."""
    first = drawn(OP_LIST[0])
    second = drawn(OP_LIST[0], inventory_seed=8, learnt_seeds=(first.seed,))
    kept = {(n.rows, n.width) for n in wide(family_of(first.training[0].form)).named}
    taught = {p.key for p in first.validation if (p.rows, p.width) not in kept}
    assert {p.key for p in second.training} == {p.key for p in first.training} | taught
    assert not taught & {p.key for p in second.validation}
    assert plan_from_json(json.loads(canonical_json(second.to_json()))) == second


def test_a_seed_that_is_named_twice_is_refused() -> None:
    for learnt, judged in (((7,), 7), ((5, 5), 7)):
        with pytest.raises(PlanError, match="name each inventory once"):
            drawn(OP_LIST[0], inventory_seed=judged, learnt_seeds=learnt)


def test_a_plan_of_the_documented_tables_says_nothing_of_inventories() -> None:
    """Packets of earlier releases hold such plans; their digests stay."""
    document = draw_plan((OP_LIST[0],), 7, H200, 64 * GIB, inventory_name="documented").to_json()
    assert {"inventory", "inventory_seed"}.isdisjoint(document)
    assert all("peers" not in planned for planned in document["validation"])


def test_memory_holds_for_all_pairs_of_a_cold_geometry() -> None:
    memory = 2 * GIB
    for regime, tensors in (("hot", BUFFERS), ("cold", 8)):
        tight = draw_plan((OP_LIST[0],), 7, H200, memory, regime=regime, inventory_name="wide")
        largest = max(p.rows * p.width * STORAGE[p.dtype].bytes for p in tight.training)
        assert largest <= memory // tensors


def test_an_inventory_of_no_name_is_refused() -> None:
    with pytest.raises(PlanError, match=f"use {' or '.join(INVENTORIES)}"):
        draw_plan((OP_LIST[0],), 7, H200, GIB, inventory_name="narrow")
    with pytest.raises(PlanError, match="regime 'warm' is not measured"):
        draw_plan((OP_LIST[0],), 7, H200, GIB, regime="warm")


def test_measuring_an_op_is_estimated_within_its_budget() -> None:
    plan = drawn(OP_LIST[0])
    told = estimate(plan, peers=True)
    assert told.measuring_s <= 350
    assert told.with_peers == sum(p.peers for p in plan.validation)
    assert estimate(plan, peers=False).peers_s == 0
    assert f"2 runs of {len(plan.validation)}" in str(told)
    more = evolve(plan, training=plan.training * 2)
    assert estimate(more, peers=True).measuring_s > told.measuring_s


def test_programs_of_one_family_share_its_training_and_are_judged_outside_it() -> None:
    """Each takes widths of its own, so that a held-out geometry is held out for the whole family.

    Those with the most recipes, that is: what few are judged by is what the others are fitted on.
    """
    ops = ("sum", "max", "mean")
    alone = drawn("sum", 3)
    together = draw_plan(ops, 3, H200, 64 * GIB, inventory_name="wide")
    assert {p.op for p in together.training} == {"sum", "max"}
    anchors = {(anchor.rows, anchor.width) for anchor in wide("reduce").anchors}
    dealt = [p for p in together.training if (p.rows, p.width) not in anchors]
    widths = {op: {p.width for p in dealt if p.op == op} for op in ("sum", "max")}
    assert set.union(*widths.values()) == {p.width for p in alone.training if (p.rows, p.width) not in anchors}
    assert sum(map(len, widths.values())) == len(set.union(*widths.values()))
    assert len(together.training) < 1.2 * len(alone.training)
    trained = {(p.dtype, p.rows, p.width) for p in together.training}
    for op in ops:
        judged = [(p.dtype, p.rows, p.width) for p in together.validation if p.op == op]
        assert len(judged) >= 150
        assert not trained & set(judged)
        assert op == "mean" or {p.dtype for p in together.training if p.op == op} == set(STORAGE)
    assert {p.op for p in drawn("mean").training} == {"mean"}
