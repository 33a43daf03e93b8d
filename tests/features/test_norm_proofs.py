"""Row normalizations as programs: their forms are the table's, and a recipe is legal for its own formula alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from features.errors import Refused
from features.expression import Cast, Combine, Expression, Load, Map, Parameter, Reduce, Store, Weight
from features.facts import work_facts
from features.program import OPS, Program, normalization, parameters_of, program_of, takes_empty_rows, weights_of
from features.proof import Proved, candidates, form_of, legal, prove
from features.schema import point
from features.schemas_norm import ROWNORM_1
from features.usual import NAMED, PARAMETERS, TORCH, named
from features.workload import Workload, workload
from features.workloads import workloads
from kernels.dtypes import STORAGE
from kernels.launch import MAX_GRID, launch_shape
from kernels.norms import NORMS, combined, holds
from kernels.recipe import ORIGINAL
from kernels.recipes import RECIPES, family_of, is_fitted_on, recipe, recipes_of
from tests.made import H200

WIDE = Cast(Load("float16"), "float32")
FORMS = list(NORMS)


@pytest.mark.parametrize("form", FORMS)
def test_the_table_is_what_the_programs_are(form: str) -> None:
    """Form, weights and parameters of each op's program, which are its recipes' too."""
    norm = NORMS[form]
    for dtype in STORAGE:
        program = program_of(norm.op, dtype)
        assert form_of(program) == form
        assert weights_of(program) == tuple(Weight(dtype, place) for place in range(norm.weights))
        assert parameters_of(program) == norm.parameters
        assert takes_empty_rows(program)
    assert {(row.weights, row.parameters) for row in recipes_of(form)} == {(norm.weights, norm.parameters)}
    assert family_of(form) == "rownorm"
    assert is_fitted_on(form) == norm.fitted


def test_one_form_of_each_algebra_is_fitted() -> None:
    assert sorted(norm.algebra for norm in NORMS.values() if norm.fitted) == ["layer", "rms", "softmax"]


def test_recipes_of_other_families_take_nothing_besides() -> None:
    """Channel norms but for eps, of one."""
    others = [row for row in RECIPES if row.form not in NORMS]
    assert {row.weights for row in others} == {0}
    assert {row.form for row in others if row.parameters} == {form_of(program_of("channel_rms", "float32"))}


def test_every_form_has_a_usual_function_and_every_parameter_a_usual_value() -> None:
    """And every named geometry is of a family that there is."""
    assert set(TORCH) == {form_of(program_of(op, "float32")) for op in OPS}
    assert {name for op in OPS for name in parameters_of(program_of(op, "float32"))} <= set(PARAMETERS)
    assert {family_of(form).partition(".")[0] for form in TORCH} == set(NAMED)
    assert named("prefix.sum") == NAMED["prefix"]
    assert named("nobody.knows") == ()


def facts(op: str, name: str, rows: int, width: int, dtype: str = "float16", **layout: Any) -> dict[str, Any]:
    found = prove(workload(op, (rows, width), dtype, **layout), recipe(f"{op}.{name}"))
    assert isinstance(found, Proved), found
    return dict(found.facts["row_normalization"])


def test_what_lanes_hold_is_read_once_and_what_is_streamed_twice() -> None:
    held = facts("layernorm_gamma_beta", "held128x32", 17, 4096)
    streamed = facts("layernorm_gamma_beta", "streamed512", 17, 20_001)
    assert (held["loads_per_element"], held["reread_bytes"], held["chunks_per_row"], held["programs"]) == (1, 0, 1, 17)
    assert (streamed["loads_per_element"], streamed["reread_bytes"]) == (2, 17 * 20_001 * 2)
    assert streamed["chunks_per_row"] == 3  # of 512 threads, two packs of eight each
    assert (streamed["weights"], streamed["weight_bytes"], streamed["parameters"]) == (2, 2 * 20_001 * 2, "eps")
    assert (held["numerics"], streamed["state_bytes"]) == ("reordered", 12)


def test_what_a_cluster_holds_is_read_once_by_as_many_programs_as_it_has_ctas() -> None:
    held = facts("layernorm_gamma_beta", "cluster16x1024x32", 3, 2**19)
    again = facts("layernorm_gamma_beta", "cluster16x1024", 3, 2**20 + 1)
    assert (held["loads_per_element"], held["reread_bytes"], held["chunks_per_row"], held["programs"]) == (1, 0, 1, 48)
    assert (again["loads_per_element"], again["reread_bytes"]) == (2, 3 * (2**20 + 1) * 2)
    assert again["chunks_per_row"] == 5  # of 16 x 1024 threads, two packs of eight each
    assert (held["state_bytes"], held["numerics"]) == (12, "reordered")


@pytest.mark.parametrize(
    ("name", "dtype", "rows", "width", "code"),
    [
        ("cluster16x1024x32", "float32", 1, 2**19, None),
        ("cluster16x1024x32", "float32", 1, 2**19 + 4, "width_too_large"),
        ("cluster16x1024x32", "float16", 1, 2**19 - 4, "width_not_divisible"),
        ("cluster16x1024x32c", "float16", 1, 2**19 - 4, None),
        ("cluster16x1024x32c", "float16", 1, 2**19, "rows_are_vectors"),
        ("cluster8x256x64s", "float32", 1, 2**17, "dtype_unsupported"),
        ("cluster8x256x64s", "bfloat16", 1, 2**17, None),
        ("cluster16x1024", "float32", 1, 2**40, None),
        ("cluster16x1024", "float32", 1, 2**18, "width_too_small"),
        ("cluster4x256x16", "float16", 128, 8192, "width_too_small"),
        ("cluster4x256x16", "float16", 128, 8200, None),
        ("cluster16x256x16", "float16", 2**27, 2**16, "index_overflow"),
        ("cluster16x256x16", "float16", 2**27 - 1, 2**16, None),
    ],
)
def test_a_cluster_takes_what_it_holds_and_what_keeps_its_threads_at_work(
    name: str, dtype: str, rows: int, width: int, code: str | None
) -> None:
    verdict = prove(Workload(program_of("rmsnorm", dtype), rows, width, width), recipe(f"rmsnorm.{name}"))
    assert (None if isinstance(verdict, Proved) else verdict.code) == code


def test_a_cluster_takes_rows_of_any_base_and_pitch() -> None:
    found = prove(
        Workload(program_of("softmax", "float16"), 3, 100_003, 100_005, 2), recipe("softmax.cluster8x512x32c")
    )
    assert isinstance(found, Proved)
    assert dict(found.facts["row_in_cluster"]) == {
        "ctas_per_row": 8,
        "threads_per_row": 4096,
        "elements_at_once": 131_072,
    }


def test_an_original_takes_rows_by_warps_or_by_ctas() -> None:
    narrow, wide = (facts("rmsnorm", ORIGINAL, 17, width) for width in (1024, 1025))
    assert (narrow["programs"], narrow["chunks_per_row"]) == (3, 4)
    assert (wide["programs"], wide["chunks_per_row"]) == (17, 1)
    assert (narrow["numerics"], narrow["loads_per_element"], narrow["state_bytes"]) == ("bit_equal", 2, 4)


@pytest.mark.parametrize("form", FORMS)
def test_a_recipe_runs_its_own_formula_and_no_other(form: str) -> None:
    row = next(row for row in recipes_of(form) if row.id.endswith("held32x32"))
    for other in NORMS.values():
        verdict = prove(workload(other.op, (4, 1024), "float16"), row)
        assert isinstance(verdict, Proved) == (other.form == form)
        assert isinstance(verdict, Proved) or verdict.code == "not_normalization"


def variant(algebra: str = "rms", weights: int = 1, **changed: Any) -> Program:
    """An RMSNorm spelled out, with one thing another."""
    row = changed.get("row", WIDE)
    square = Map(row, "square")
    mean = Map(Reduce(square, ordered=changed.get("ordered", False)), "divide_by_count")
    root = Map(Combine(mean, Parameter(changed.get("name", "eps")), "add"), "rsqrt")
    gamma = Cast(Weight(changed.get("weight", "float16"), changed.get("place", 0)), "float32")
    scaled = Combine(Combine(row, root, "multiply"), gamma, "multiply")
    return Program(Store(Cast(scaled, "float16"), "float16"))


NARROW = Reduce(Map(Load("float16"), "square"))
IN_HALVES: Expression = Combine(Load("float16"), NARROW, "multiply")


@pytest.mark.parametrize(
    ("program", "code"),
    [
        (variant(ordered=True), "ordered"),
        (variant(weight="bfloat16"), "dtype_unsupported"),
        (variant(row=Cast(Load("float32"), "float32")), "dtype_unsupported"),
        (variant(place=1), "not_normalization"),
        (variant(name="epsilon"), "not_normalization"),
        (variant(row=Map(WIDE, "abs")), "not_normalization"),
        (Program(Store(IN_HALVES, "float16")), "arithmetic_unsupported"),
    ],
)
def test_what_is_nearly_the_formula_is_refused_by_what_is_another(program: Program, code: str) -> None:
    verdict = prove(Workload(program, 4, 1024, 1024), recipe("rmsnorm_gamma.held32x32"))
    assert isinstance(verdict, Refused)
    assert verdict.code == code


def test_the_spelled_out_formula_is_the_program() -> None:
    assert variant() == normalization("float16", "rms", 1) == program_of("rmsnorm_gamma", "float16")


@pytest.mark.parametrize("form", FORMS)
def test_proofs_of_many_are_those_of_each(form: str) -> None:
    rows, widths = np.array([1, 17, 300, 5000]), np.array([1, 64, 1000, 8192])
    works = workloads(program_of(NORMS[form].op, "bfloat16"), rows, widths)
    for row in recipes_of(form):
        many = np.broadcast_to(legal(works, row), rows.shape)
        assert many.tolist() == [isinstance(prove(works.at(i), row), Proved) for i in range(4)]


def test_an_original_beyond_a_grid_goes_on_in_turns() -> None:
    assert launch_shape(recipe("rmsnorm.original"), 2**40, 8, 132).ctas == MAX_GRID
    assert candidates(workload("rmsnorm", (2**40, 8), "float16"))[0][0].role == ORIGINAL


def columns(op: str, name: str, rows: int, width: int, dtype: str = "float16") -> dict[str, float]:
    row = recipe(f"{op}.{name}")
    at = point(workload(op, (rows, width), dtype), row, 8, H200)
    return dict(zip([f.name for f in ROWNORM_1.roles[row.role]], ROWNORM_1.vector(row.role, at), strict=True))


def test_weights_and_reductions_have_columns() -> None:
    """264 rows of 4096 halves by 128 lanes each: 264 CTAs read each weight; seven halvings for each value combined."""
    by_op = {op: columns(op, "held128x32", 264, 4096) for op in ("softmax", "rmsnorm_gamma", "layernorm_gamma_beta")}
    assert [found["weight_traffic"] for found in by_op.values()] == [0, 2 * 8192 / 2**20, 2 * 2 * 8192 / 2**20]
    assert [found["combining"] for found in by_op.values()] == [2 * 7, 7, 2 * 7]
    assert [found["work"] for found in by_op.values()] == [i * 264 * 4096 / (132 * 2**14) for i in (12, 6.5, 15)]
    own = ("weight_traffic", "combining", "work")
    same = [{k: v for k, v in c.items() if k not in own} for c in by_op.values()]
    assert same[0] == same[1] == same[2]


def test_batches_of_clusters_are_counted_by_the_clusters_of_the_gpu() -> None:
    """Nine rows by clusters of which eight are resident take two batches, whatever SMs stay idle; each weight is read
    once a row, by the CTAs that share it.
    """
    few, many = (columns("layernorm_gamma_beta", "cluster16x512x32", rows, 2**18) for rows in (8, 9))
    assert (few["batch_steps"], many["batch_steps"]) == (1, 2)
    assert (few["batch_elements"], many["batch_elements"]) == (32, 64)
    assert (few["programs"], few["masked"]) == (8 * 16 / 132, 0)
    assert few["weight_traffic"] == 8 * 2 * 2 * 2**18 / (132 * 2**20)
    assert many["combining"] == 2 * 3 * 9


def test_values_combined_are_reductions_or_words_of_a_state() -> None:
    ways = [row for row in RECIPES if row.form in NORMS]
    counts = {(NORMS[row.form].algebra, holds(row)): combined(row) for row in ways if row.cluster == 1}
    assert {combined(row) == counts[NORMS[row.form].algebra, False] for row in ways if row.cluster > 1} == {True}
    assert counts == {
        ("softmax", True): 2,
        ("softmax", False): 2,
        ("rms", True): 1,
        ("rms", False): 1,
        ("layer", True): 2,
        ("layer", False): 3,
    }


def test_work_facts_count_functions_of_elements_and_of_rows_apart() -> None:
    """Of a LayerNorm: difference, square, two products and a sum an element; two means, eps and a root a row."""
    found = work_facts(workload("layernorm_gamma_beta", (5, 300), "float32"), recipe("layernorm.streamed256"), 132)
    assert found.elementwise == 5 * 300 * 5 + 5 * 4
    assert found.transcendental == 5 * 3
    assert (found.collective, found.loads_per_element) == ("reduce sum", 2)
    softmax = work_facts(workload("softmax", (5, 300), "float32"), recipe("softmax.held32x32"), 132)
    assert (softmax.elementwise, softmax.transcendental) == (5 * 300 * 3, 5 * 300 * 2)
    assert (softmax.collective, softmax.loads_per_element) == ("reduce sum and reduce max", 1)


def test_a_recipe_is_its_row_whatever_its_name() -> None:
    """Names decide nothing: the proof asks for the formula of the form."""
    renamed = evolve(recipe("rmsnorm.held32x8"), id="somebody.elses")
    assert isinstance(prove(workload("rmsnorm", (9, 256), "float16"), renamed), Proved)
