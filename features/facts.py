"""Work facts: what a candidate computes and moves, exact and logical. Nothing here is a physical cost, or a guess."""

from __future__ import annotations

from functools import cache
from typing import Any

from attrs import frozen

from features.expression import DIVIDE_BY_COUNT, Combine, Map, Prefix, Reduce, every_node
from features.program import Program
from features.workload import Workload
from features.workloads import Workloads
from kernels.dtypes import storage
from kernels.launch import lane_elements, spread
from kernels.norms import loads
from kernels.recipe import ORIGINAL, Recipe

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
    made_of = _parts(work.program)
    return WorkFacts(
        programs=groups * through.parts,
        valid_elements=valid,
        padded_elements=padded,
        collective=made_of.collective,
        collective_elements=through.rows_per_cta * -(-work.width // through.parts),
        elementwise=len(made_of.of_rows) * valid + len(made_of.of_scalars) * work.rows,
        transcendental=_slow(made_of.of_rows) * valid + _slow(made_of.of_scalars) * work.rows,
        storage_bytes=storage(work.dtype).bytes,
        compute_bytes=COMPUTE_BYTES,
        contiguous_stride=work.inner,
        tile_axes=("row", "element"),
        rows_tail=groups * through.rows_per_cta - work.rows,
        columns_tail=steps * step - run,
        masked_share=(padded - valid) / (padded + (padded == 0)),
        loads_per_element=loads(recipe),
        stores_per_result=1,
        operands_disjoint=recipe.role != ORIGINAL,
    )


@frozen
class _Parts:
    """What a program is made of: its collectives, and the functions it applies to elements and to scalars of a row."""

    collective: str
    of_rows: tuple[str, ...]
    of_scalars: tuple[str, ...]


def _slow(functions: tuple[str, ...]) -> int:
    return sum(function in TRANSCENDENTAL for function in functions)


@cache
def _parts(program: Program) -> _Parts:
    """Return the parts of a program, outermost first; one that stands there twice is worked out once."""
    collectives: list[str] = []
    functions: dict[str, list[str]] = {"row": [], "scalar": []}
    for node in dict.fromkeys(every_node(program.expression)):
        if isinstance(node, Prefix | Reduce):
            collectives.append(f"{node.tree()[0]} {node.algebra}")
        elif isinstance(node, Map | Combine):
            functions[node.type()[1]].append(node.function)
    collective = " and ".join(dict.fromkeys(collectives)) or "none"
    return _Parts(collective, tuple(functions["row"]), tuple(functions["scalar"]))
