"""Proofs: the facts that make a recipe legal for a workload, derived from its program and layout, never from a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from attrs import field, frozen

from features.errors import ProgramError
from features.program import Cast, Expression, Load, Map, Prefix, Program
from features.workload import Workload
from kernels.dtypes import storage
from kernels.recipes import ORIGINAL, Recipe, recipes_of

MAX_GRID = 2**31 - 1
VECTOR_BYTES = 16


@frozen
class Proved:
    """A recipe is legal; `facts` maps each proof to what it found."""

    facts: Mapping[str, Mapping[str, Any]] = field(factory=dict)


@frozen
class Refused:
    """A recipe is not legal: the reason code and the fact that failed, as a sentence."""

    code: str
    fact: str


Verdict = Mapping[str, Any] | Refused


@cache
def form_of(program: Program) -> str:
    """Return the normal form that keys the recipe table: the operators without their casts, outermost first."""
    names: list[str] = []
    node: Expression = program.expression.operand
    while not isinstance(node, Load):
        if isinstance(node, Prefix):
            names.append(f"prefix.{node.algebra}")
        elif isinstance(node, Map):
            names.append(f"map.{node.function}")
        node = node.operand
    return ".".join(names) or "copy"


def closed_prefix(workload: Workload, recipe: Recipe) -> Verdict:
    """Load, optional cast, one inclusive unordered FP32 prefix, optional cast, store; each element read and written once."""
    node = workload.program.expression.operand
    if isinstance(node, Cast):
        node = node.operand
    if not isinstance(node, Prefix):
        return Refused("not_closed_prefix", f"the stored value comes from {node.tree()[0]}, not from a prefix")
    prefix = node
    if prefix.ordered:
        return Refused("ordered", "the prefix demands left-to-right additions and a block scan reorders them")
    if prefix.algebra != "sum":
        return Refused("identity_unknown", f"the prefix combines by {prefix.algebra!r}, whose identity is not known here")
    if prefix.type()[0] != "float32":
        return Refused("arithmetic_unsupported", f"the prefix is taken in {prefix.type()[0]}; kernels add in float32")
    node = prefix.operand
    if isinstance(node, Cast):
        node = node.operand
    if not isinstance(node, Load):
        return Refused("not_closed_prefix", f"the prefix is of {node.tree()[0]}, not of the loaded row")
    if node.dtype != workload.dtype:
        return Refused("dtype_unsupported", f"reads {node.dtype} and writes {workload.dtype}; kernels keep one storage dtype")
    return {"algebra": "sum", "arithmetic": "float32", "loads_per_element": 1, "stores_per_element": 1}


def whole_chunks(workload: Workload, recipe: Recipe) -> Verdict:
    """The width is a positive multiple of the chunk that a CTA takes in one step, so no lane is masked."""
    chunk = recipe.items * recipe.threads
    made_of = f"{chunk} ({recipe.items} elements x {recipe.threads} threads)"
    if workload.width < chunk:
        return Refused("width_too_small", f"width {workload.width} is less than {made_of}")
    if workload.width % chunk:
        return Refused("width_not_divisible", f"width {workload.width} is not a multiple of {made_of}")
    return {"chunk_elements": chunk, "chunks_per_row": workload.width // chunk, "masked_lanes": 0}


def aligned_load(workload: Workload, recipe: Recipe) -> Verdict:
    """Every chunk origin is nonnegative, inside the tensor and on a 16-byte boundary: base and row pitch both are."""
    element_bytes = storage(workload.dtype).bytes
    vector = VECTOR_BYTES // element_bytes
    if workload.alignment_bytes % VECTOR_BYTES:
        return Refused(
            "misaligned", f"bases are {workload.alignment_bytes}-byte aligned and {VECTOR_BYTES}-byte loads need more"
        )
    if workload.row_pitch % vector:
        return Refused("misaligned", f"row pitch {workload.row_pitch} is not a multiple of {vector} elements (16 bytes)")
    chunk = recipe.items * recipe.threads
    last = (workload.rows - 1) * workload.row_pitch + workload.width - chunk
    return {
        "vector_bytes": VECTOR_BYTES,
        "origin_multiple_elements": vector,
        "first_origin_elements": 0,
        "last_origin_elements": last,
        "span_bytes": (last + chunk) * element_bytes,
    }


# Each proof looks at the workload and the recipe's geometry. The order of a recipe's `proofs` is the order of trial.
PROOFS: dict[str, Callable[[Workload, Recipe], Verdict]] = {
    "closed_prefix": closed_prefix,
    "whole_chunks": whole_chunks,
    "aligned_load": aligned_load,
}


def prove(workload: Workload, recipe: Recipe) -> Proved | Refused:
    """Return why the recipe is legal for the workload, or why it is not."""
    if workload.dtype not in recipe.dtypes:
        return Refused("dtype_unsupported", f"{recipe.id} has no {workload.dtype} kernel")
    if recipe.role != ORIGINAL:
        if workload.rows == 0 or workload.width == 0:
            return Refused("empty", f"{workload.rows} x {workload.width} has no element to work on")
        ctas = -(-workload.rows // recipe.rows_per_cta)
        if ctas > MAX_GRID:
            return Refused("index_overflow", f"{ctas} CTAs are more than a grid's {MAX_GRID}")
        if workload.numerics == "bit_equal" and recipe.numerics != "bit_equal":
            return Refused("numerics_not_permitted", f"{recipe.id} is {recipe.numerics} and the request demands bit_equal")
    found: dict[str, Mapping[str, Any]] = {}
    for name in recipe.proofs:
        verdict = PROOFS[name](workload, recipe)
        if isinstance(verdict, Refused):
            return verdict
        found[name] = verdict
    return Proved(found)


def candidates(workload: Workload) -> tuple[tuple[Recipe, Proved | Refused], ...]:
    """Return every recipe of the workload's form with its proof or refusal, the original first.

    Raises
    ------
    ProgramError : no kernel runs this program, or not even the original is legal for it.
    """
    rows = recipes_of(form_of(workload.program))
    if not rows:
        raise ProgramError(f"no kernel runs a program of form {form_of(workload.program)!r}")
    judged = tuple((row, prove(workload, row)) for row in rows)
    original = judged[0][1]
    if isinstance(original, Refused):
        raise ProgramError(f"{rows[0].id} cannot run this program: {original.fact}")
    return judged
