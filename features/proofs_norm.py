"""The proofs of row normalizations: that the expression is one that the kernels compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from features.claim import Claim
from features.errors import Refused
from features.expression import Load, Reduce, Weight, every_node
from features.program import Program, normalization, parameters_of
from features.proofs_scan import not_vectors
from features.workload import Workload
from features.workloads import Workloads
from kernels.dtypes import storage
from kernels.launch import MAX_GRID, rows_per_program
from kernels.norms import NORMS, ROWS_ALIGNED, algebra_of, holds, loads, original_lanes
from kernels.recipe import ORIGINAL, Recipe

_FORMULAS = {
    "softmax": "exp(x - max x) / sum exp(x - max x)",
    "rms": "x / sqrt(mean x^2 + eps)",
    "layer": "(x - mean x) / sqrt(mean (x - mean x)^2 + eps)",
}


def row_normalization(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """A softmax, RMSNorm or LayerNorm of the whole row, unordered, in FP32, times and plus the recipe's weights.

    It is stored in the dtype that row and weights are loaded in.
    """
    refused = _another(work.program, recipe.form)
    if refused is not None:
        fact = refused.fact
        return Claim(((refused.code, False, lambda: fact),), dict)
    return Claim((), lambda: _facts(work, recipe))


@cache
def _another(program: Program, form: str) -> Refused | None:
    """Return why a program is not the normalization of a form. There are as many programs as ops and dtypes: few."""
    nodes, norm = tuple(every_node(program.expression)), NORMS[form]
    reductions = [node for node in nodes if isinstance(node, Reduce)]
    if any(node.ordered for node in reductions):
        return Refused("ordered", "a reduction demands left-to-right combination and kernels reorder it")
    if other := next((node.type()[0] for node in reductions if node.type()[0] != "float32"), None):
        return Refused("arithmetic_unsupported", f"a reduction is in {other}; kernels combine in float32")
    loaded = {node.dtype for node in nodes if isinstance(node, Load | Weight)}
    if loaded - {program.dtype}:
        read = " and ".join(sorted(loaded))
        return Refused("dtype_unsupported", f"reads {read} and writes {program.dtype}; kernels keep one storage dtype")
    if program != normalization(program.dtype, norm.algebra, norm.weights):
        weighed = ("", ", times a weight", ", times a weight and plus another")[norm.weights]
        return Refused("not_normalization", f"the stored value is not {_FORMULAS[norm.algebra]} of one row{weighed}")
    return None


def _facts(work: Workload | Workloads, recipe: Recipe) -> Mapping[str, Any]:
    algebra, held = algebra_of(recipe), holds(recipe)
    lanes = original_lanes(work.width) if recipe.role == ORIGINAL else recipe.lanes
    step = lanes * recipe.cluster * recipe.items * recipe.phases
    row_bytes = work.width * storage(work.dtype).bytes
    return {
        "state": algebra.state,
        "state_bytes": algebra.state_bytes,
        "arithmetic": "float32",
        "numerics": recipe.numerics,
        "loads_per_element": loads(recipe),
        "stores_per_element": 1,
        "reread_bytes": 0 if held else work.rows * row_bytes,
        "chunks_per_row": 1 if held else -(-work.width // step),
        "programs": -(-work.rows // rows_per_program(recipe, work.rows, work.width)) * recipe.cluster,
        "weights": recipe.weights,
        "weight_bytes": recipe.weights * row_bytes,
        "parameters": " ".join(parameters_of(work.program)),
    }


def lanes_are_filled(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Half of what the lanes of a row hold would not do: as many lanes hold it in fewer packs, or fewer lanes do."""
    held = recipe.lanes * recipe.items * recipe.phases
    slack = 0 if recipe.alignment == ROWS_ALIGNED else recipe.items - 1
    return Claim(
        (
            (
                "width_too_small",
                (recipe.lanes == 1) | (2 * (work.width + slack) > held),
                lambda: f"width {work.width} is at most half of the {held} elements that {recipe.lanes} lanes hold",
            ),
        ),
        dict,
    )


def row_in_cluster(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The CTAs of a cluster hold a row and half of them would not, or it is more than they take at a step."""
    threads = recipe.cluster * recipe.threads
    step, held = threads * recipe.items * recipe.phases, holds(recipe)
    least = step // 2 if held else step
    ctas = work.rows * recipe.cluster
    return Claim(
        (
            (
                "width_too_large",
                (not held) | (work.width <= step),
                lambda: f"width {work.width} is more than the {step} elements that {_cluster_of(recipe)} hold",
            ),
            (
                "width_too_small",
                work.width > least,
                lambda: (
                    f"width {work.width} is at most the {least} elements that fewer than {_cluster_of(recipe)} take"
                ),
            ),
            ("index_overflow", ctas <= MAX_GRID, lambda: f"{ctas} CTAs are more than a grid's {MAX_GRID}"),
        ),
        lambda: {"ctas_per_row": recipe.cluster, "threads_per_row": threads, "elements_at_once": step},
    )


def _cluster_of(recipe: Recipe) -> str:
    return f"{recipe.cluster} CTAs of {recipe.threads} threads"


def ragged_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Not every row is whole vectors on boundaries: those have recipes of their own."""
    return Claim((not_vectors(work),), dict)


NORM_PROOFS: dict[str, Callable[[Workload | Workloads, Recipe], Claim]] = {
    "row_normalization": row_normalization,
    "lanes_are_filled": lanes_are_filled,
    "row_in_cluster": row_in_cluster,
    "ragged_rows": ragged_rows,
}
