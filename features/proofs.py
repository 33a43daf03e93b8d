"""The proofs: which facts make a recipe legal, derived from program, layout and launch geometry, never from a name.

Each takes one workload or many (`Workload`, `Workloads`) and a recipe. Only operators that work on a number and on an
array alike may touch rows, width and row pitch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from features.claim import Claim, Condition
from features.errors import Refused
from features.expression import Cast, Load, Prefix
from features.program import Program
from features.proofs_channel import CHANNEL_PROOFS
from features.proofs_norm import NORM_PROOFS
from features.proofs_reduce import REDUCE_PROOFS
from features.proofs_scan import SCAN_PROOFS
from features.workload import Workload
from features.workloads import Workloads
from kernels.dtypes import storage
from kernels.recipe import ORIGINAL, Recipe, split_parts

MAX_GRID = 2**31 - 1
MAX_CHUNKS = 2**30  # chunks are counted in 32 bits, with room for those that are loaded ahead
VECTOR_BYTES = 16
MAX_PARTS = 2**13  # words of a split scan's workspace: 64 KiB, and far more CTAs than splitting helps
# In training on an H200 a split won at up to 32 rows, by a half at 600,000 elements, and at none of 180 times beyond
# 48, where it was slower than the original by more than 3 % in 176. Of 91 times that it took a row of up to 8192
# elements it won none, and was slower in 79 (2026-11-30; `python -m benchmarks.scan_rules`).
MOST_SPLIT_ROWS, LEAST_SPLIT_WIDTH = 48, 2**13

Proof = Callable[[Workload | Workloads, Recipe], Claim]


def launchable(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The recipe has a kernel for dtype and numerics, there is an element to work on, and the grid holds the rows."""
    if recipe.role == ORIGINAL:
        return Claim((_has_kernel(work, recipe),), dict)
    ctas = -(-work.rows // recipe.rows_per_cta)
    return Claim(
        (
            _has_kernel(work, recipe),
            (
                "empty",
                (work.rows > 0) & (work.width > 0),
                lambda: f"{work.rows} x {work.width} has no element to work on",
            ),
            ("index_overflow", ctas <= MAX_GRID, lambda: f"{ctas} CTAs are more than a grid's {MAX_GRID}"),
            (
                "numerics_not_permitted",
                work.numerics == "any" or recipe.numerics == "bit_equal",
                lambda: f"{recipe.id} is {recipe.numerics} and the request demands bit_equal",
            ),
        ),
        dict,
    )


def _has_kernel(work: Workload | Workloads, recipe: Recipe) -> Condition:
    dtype = work.dtype
    return ("dtype_unsupported", dtype in recipe.dtypes, lambda: f"{recipe.id} has no {dtype} kernel")


def closed_prefix(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Load, optional cast, one unordered FP32 prefix, optional cast, store; each element is read and written once."""
    refused = _not_a_closed_prefix(work.program)
    if refused is not None:
        fact = refused.fact
        return Claim(((refused.code, False, lambda: fact),), dict)
    return Claim(
        (), lambda: {"algebra": "sum", "arithmetic": "float32", "loads_per_element": 1, "stores_per_element": 1}
    )


@cache
def _not_a_closed_prefix(program: Program) -> Refused | None:
    """Return why a program is no closed prefix. There are as many programs as ops and dtypes: few."""
    store = program.expression
    prefix = store.operand.operand if isinstance(store.operand, Cast) else store.operand
    if not isinstance(prefix, Prefix):
        return Refused("not_closed_prefix", f"the stored value comes from {prefix.tree()[0]}, not from a prefix")
    if prefix.ordered:
        return Refused("ordered", "the prefix demands left-to-right additions and a block scan reorders them")
    if prefix.algebra != "sum":
        return Refused(
            "identity_unknown", f"the prefix combines by {prefix.algebra!r}, whose identity is not known here"
        )
    if prefix.type()[0] != "float32":
        return Refused("arithmetic_unsupported", f"the prefix is taken in {prefix.type()[0]}; kernels add in float32")
    load = prefix.operand.operand if isinstance(prefix.operand, Cast) else prefix.operand
    if not isinstance(load, Load):
        return Refused("not_closed_prefix", f"the prefix is of {load.tree()[0]}, not of the loaded row")
    if load.dtype != store.dtype:
        return Refused(
            "dtype_unsupported", f"reads {load.dtype} and writes {store.dtype}; kernels keep one storage dtype"
        )
    return None


def whole_chunks(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The width is a positive multiple of the chunk that a CTA takes in one step, so no lane is masked."""
    chunk = recipe.items * recipe.threads
    chunks = work.width // chunk

    def made_of() -> str:
        return f"{chunk} ({recipe.items} elements x {recipe.threads} threads)"

    return Claim(
        (
            ("width_too_small", work.width >= chunk, lambda: f"width {work.width} is less than {made_of()}"),
            (
                "width_not_divisible",
                work.width % chunk == 0,
                lambda: f"width {work.width} is not a multiple of {made_of()}",
            ),
            ("index_overflow", chunks <= MAX_CHUNKS, lambda: f"{chunks} chunks a row are more than {MAX_CHUNKS}"),
        ),
        lambda: {"chunk_elements": chunk, "chunks_per_row": chunks, "masked_lanes": 0},
    )


def row_parts(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Several CTAs share a row, each an equal part of it but for the last, and the words they meet in are few."""
    part = recipe.items * recipe.threads * recipe.phases
    parts = split_parts(recipe, work.width)
    ctas = parts * work.rows
    least = max(part, LEAST_SPLIT_WIDTH)
    return Claim(
        (
            (
                "width_too_small",
                work.width > least,
                lambda: f"width {work.width} is not more than the {least} elements that one CTA takes as fast",
            ),
            (
                "too_many_rows",
                work.rows <= MOST_SPLIT_ROWS,
                lambda: f"{work.rows} rows are more than the {MOST_SPLIT_ROWS} among which a row is worth splitting",
            ),
            (
                "too_many_parts",
                ctas <= MAX_PARTS,
                lambda: f"{work.rows} rows of {parts} parts are more CTAs than the {MAX_PARTS} of a workspace",
            ),
        ),
        lambda: {"part_elements": part, "parts_per_row": parts, "ctas": ctas, "workspace_bytes": 8 * (1 + ctas)},
    )


def aligned_load(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Every chunk origin is nonnegative, inside the tensor and on a 16-byte boundary: base and row pitch both are."""
    element_bytes = storage(work.dtype).bytes
    vector = VECTOR_BYTES // element_bytes
    chunk = recipe.items * recipe.threads
    last = (work.rows - 1) * work.row_pitch + work.width - chunk
    return Claim(
        (
            (
                "misaligned",
                work.alignment_bytes % VECTOR_BYTES == 0,
                lambda: f"bases are {work.alignment_bytes}-byte aligned and {VECTOR_BYTES}-byte loads need more",
            ),
            (
                "misaligned",
                work.row_pitch % vector == 0,
                lambda: f"row pitch {work.row_pitch} is not a multiple of {vector} elements (16 bytes)",
            ),
        ),
        lambda: {
            "vector_bytes": VECTOR_BYTES,
            "origin_multiple_elements": vector,
            "first_origin_elements": 0,
            "last_origin_elements": last,
            "span_bytes": (last + chunk) * element_bytes,
        },
    )


# By the name that a recipe's row gives; the order there is the order of trial.
PROOFS: dict[str, Proof] = {
    "closed_prefix": closed_prefix,
    "whole_chunks": whole_chunks,
    "aligned_load": aligned_load,
    "row_parts": row_parts,
    **SCAN_PROOFS,
    **REDUCE_PROOFS,
    **NORM_PROOFS,
    **CHANNEL_PROOFS,
}
