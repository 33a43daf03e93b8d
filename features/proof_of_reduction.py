"""The proof that a program is one reduction of independent rows, of a kind that kernels know."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from features.claim import Claim
from features.errors import Refused
from features.expression import DIVIDE_BY_COUNT, Cast, Expression, Load, Map, Reduce
from features.program import Program
from features.workload import Workload
from features.workloads import Workloads
from kernels.dtypes import storage
from kernels.guard import VECTOR_BYTES
from kernels.launch import rows_per_program
from kernels.recipe import Recipe
from kernels.reduction_shapes import original_rows

# What a reduction of no element is: the value that changes nothing it is combined with.
IDENTITIES = {"sum": "0", "max": "-inf", "min": "inf"}
NAN_POLICIES = ("propagate", "suppress")


def independent_rows(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The whole expression, its operand and its result separate along the row axis, so that rows may be regrouped."""
    verdict = _separable(work.program)
    if isinstance(verdict, Refused):
        refused = verdict
        return Claim(((refused.code, False, lambda: refused.fact),), dict)
    reduce = verdict

    def facts() -> Mapping[str, Any]:
        element_bytes = storage(work.dtype).bytes
        original = original_rows(work.rows, work.width)
        target = rows_per_program(recipe, work.rows, work.width)
        programs = -(-work.rows // target)
        last = (work.rows - 1) * work.row_pitch + work.width
        return {
            "algebra": reduce.algebra,
            "identity": IDENTITIES[reduce.algebra],
            "nan": reduce.nan,
            "arithmetic": "float32",
            "loads_per_element": 1,
            "stores_per_row": 1,
            "original_rows_per_program": original,
            "rows_per_program": target,
            "original_programs": -(-work.rows // original),
            "programs": programs,
            "masked_rows": programs * target - work.rows,
            "vector_tail_elements": work.width % (VECTOR_BYTES // element_bytes),
            "x_span_bytes": last * element_bytes * (work.width > 0) * (work.rows > 0),
            "y_span_bytes": work.rows * element_bytes,
        }

    return Claim((), facts)


@cache
def _separable(program: Program) -> Reduce | Refused:
    """Return the one reduction of a program whose rows are independent, or why it has none that kernels know."""
    store = program.expression
    node: Expression = store.operand.operand if isinstance(store.operand, Cast) else store.operand
    if isinstance(node, Map) and node.function == DIVIDE_BY_COUNT:
        node = node.operand
    if not isinstance(node, Reduce):
        return Refused("not_closed_reduction", f"the stored value comes from {node.tree()[0]}, not from a reduction")
    load = node.operand.operand if isinstance(node.operand, Cast) else node.operand
    if not isinstance(load, Load):
        return Refused("not_closed_reduction", f"the reduction is of {load.tree()[0]}, not of the loaded row")
    return _unknown(node) or _narrow(node, load, store.dtype) or node


def _unknown(reduce: Reduce) -> Refused | None:
    if reduce.ordered:
        return Refused("ordered", "the reduction demands left-to-right combination and kernels reorder it")
    if reduce.algebra not in IDENTITIES:
        return Refused(
            "identity_unknown", f"the reduction combines by {reduce.algebra!r}, whose identity is not known here"
        )
    if reduce.nan not in NAN_POLICIES:
        return Refused("nan_policy_unknown", f"the NaN policy {reduce.nan!r} is not one of {', '.join(NAN_POLICIES)}")
    return None


def _narrow(reduce: Reduce, load: Load, stored: str) -> Refused | None:
    if reduce.type()[0] != "float32":
        return Refused("arithmetic_unsupported", f"the reduction is in {reduce.type()[0]}; kernels combine in float32")
    if load.dtype != stored:
        return Refused("dtype_unsupported", f"reads {load.dtype} and writes {stored}; kernels keep one storage dtype")
    return None
