"""Work facts: what a candidate computes and moves, exact and logical. Nothing here is a physical cost, or a guess."""

from __future__ import annotations

from functools import cache
from typing import Any

from attrs import frozen

from features.program import DIVIDE_BY_COUNT, Combine, Expression, Map, Prefix, Program, Reduce, operands
from features.workload import Workload
from features.workloads import Workloads
from kernels.dtypes import storage
from kernels.launch import lane_elements, spread
from kernels.recipe import ORIGINAL, Recipe
from kernels.reductions import out_width

Number = Any  # an int, or a NumPy array of them

# Functions that take the special units or many instructions: a division by a count is one, a cast is none.
TRANSCENDENTAL = frozenset({"exp", "log", "sqrt", "rsqrt", "divide", DIVIDE_BY_COUNT})
COMPUTE_BYTES = 4


@frozen(eq=False)
class WorkFacts:
    """The work of one candidate; counts are whole numbers, or arrays of them.

    Attributes
    ----------
    programs : CTAs of the launch.
    valid_elements, padded_elements : elements of the rows, and lanes x items that the CTAs' steps cover.
    collective : algebra of the collective, as `reduce sum` or `prefix sum`.
    collective_elements : elements that enter the collective of one program, at most.
    elementwise, transcendental : functions applied, over the whole workload.
    storage_bytes, compute_bytes : of one element, apart; they are never added up.
    contiguous_stride, tile_axes : elements between neighbours of a row; the axes that a program tiles.
    rows_tail, columns_tail : rows of the last program, and elements of the last step of a row or a run of rows,
        that are masked; 0 if none.
    masked_share : padded elements that are no valid ones, over padded elements.
    loads_per_element, stores_per_result : of each element of x, and of each of the result.
    operands_disjoint : whether x and the result are proved apart by the launch's guard before the recipe runs.
    """

    programs: Number
    valid_elements: Number
    padded_elements: Number
    collective: str
    collective_elements: Number
    elementwise: Number
    transcendental: Number
    storage_bytes: int
    compute_bytes: int
    contiguous_stride: Number
    tile_axes: tuple[str, ...]
    rows_tail: Number
    columns_tail: Number
    masked_share: Number
    loads_per_element: int
    stores_per_result: int
    operands_disjoint: bool


def work_facts(work: Workload | Workloads, recipe: Recipe, sm_count: int) -> WorkFacts:
    """Return the facts of a recipe for one workload or many, none of which is empty."""
    through = spread(recipe, work.rows, work.width, sm_count)
    step = through.lanes * lane_elements(recipe, storage(work.dtype).bytes) * through.phases * through.parts
    run = work.width * through.run_rows
    steps, groups = -(-run // step), -(-work.rows // through.rows_per_cta)
    valid, padded = work.rows * work.width, groups * (through.rows_per_cta // through.run_rows) * steps * step
    collective, row_maps, result_maps = _parts(work.program)
    results = work.rows * out_width(recipe.form, work.width)
    return WorkFacts(
        programs=groups * through.parts,
        valid_elements=valid,
        padded_elements=padded,
        collective=collective,
        collective_elements=through.rows_per_cta * -(-work.width // through.parts),
        elementwise=_of(row_maps, valid) + _of(result_maps, results),
        transcendental=_of(row_maps & TRANSCENDENTAL, valid) + _of(result_maps & TRANSCENDENTAL, results),
        storage_bytes=storage(work.dtype).bytes,
        compute_bytes=COMPUTE_BYTES,
        contiguous_stride=work.inner,
        tile_axes=("row", "element"),
        rows_tail=groups * through.rows_per_cta - work.rows,
        columns_tail=steps * step - run,
        masked_share=(padded - valid) / (padded + (padded == 0)),
        loads_per_element=1,
        stores_per_result=1,
        operands_disjoint=recipe.role != ORIGINAL,
    )


def _of(functions: frozenset[str], elements: Number) -> Number:
    return len(functions) * elements


@cache
def _parts(program: Program) -> tuple[str, frozenset[str], frozenset[str]]:
    """Return the collectives of a program, innermost last, and the functions of rows and of scalars."""
    collectives: list[str] = []
    maps: dict[str, set[str]] = {"row": set(), "scalar": set()}
    left: list[Expression] = [program.expression.operand]
    while left:
        node = left.pop(0)
        if isinstance(node, Prefix | Reduce):
            collectives.append(f"{node.tree()[0]} {node.algebra}")
        elif isinstance(node, Map | Combine):
            maps[node.type()[1]].add(node.function)
        left += operands(node)
    found = " and ".join(dict.fromkeys(collectives)) or "none"
    return found, frozenset(maps["row"]), frozenset(maps["scalar"])
