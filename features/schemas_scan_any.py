"""The feature schemas that price scans of any width, `scan/4` and `scan/5`."""

from __future__ import annotations

from features.schema import MIB, Feature, Number, Point, Schema, ceil_div
from features.schemas_scan import (
    BATCHES,
    CONSTANT,
    FAR_TRAFFIC,
    SPLIT_COLUMNS,
    STEP_BYTES,
    TRAFFIC,
    busiest_ctas,
    busiest_warps,
    is_far,
)
from features.schemas_scan_short import COVER_COLUMNS, HELD_COLUMNS, TINY_COLUMNS
from kernels.guard import VECTOR_BYTES
from kernels.recipe import ORIGINAL, RECIPE, SPLIT
from kernels.reductions import SHORT
from kernels.scans import ANY, BROAD, COVER, FLAT, NARROW, TINY

# scan/4 prices rows of any width, taken in steps or held whole. Its bounds and columns are of the training cohort of an
# H200 of 2026-11-30, 672 geometries; docs/decisions/0011 has the figures of the columns that were tried.
#
# In steps, a row whose length is no whole number of vectors has rows after it that begin off a 16-byte boundary: its
# steps are those of a row that is longer by what may lie before (v - 1 elements of a vector), and its ends are moved
# element by element. Every step of a row reads a piece of adjacent memory of its own, so more lanes a row mean fewer.


def _is_ragged(p: Point) -> Number:
    return 1 * ((p.storage_bytes * p.width) % VECTOR_BYTES != 0)


def _cut_chunks(p: Point) -> Number:
    return ceil_div(p.width + _is_ragged(p) * (VECTOR_BYTES // p.storage_bytes - 1), p.chunk)


def _cut_steps(p: Point) -> Number:
    return ceil_div(_cut_chunks(p), p.row_phases * p.row_parts)


def _cut_waiting(p: Point) -> Number:
    step = 2 * p.storage_bytes * p.items * p.threads * p.row_phases
    step = step + (STEP_BYTES - step) * (step < STEP_BYTES)
    excess = p.resident_batches * _cut_steps(p) * step / MIB - p.traffic
    return excess * (excess > 0) + 0.0  # not -0.0


STEP_COLUMNS = (
    CONSTANT,
    TRAFFIC,
    FAR_TRAFFIC,
    Feature(
        "waiting",
        "MiB/SM",
        "what an SM could have moved while its CTAs wait at steps, beyond what it moves; J = ceil((N + u (16/b - 1)) / "
        "(8 w W)) chunks, f a step, u = 1 if 16 does not divide b N, else 0",
        "max(0, H P max(14336, 16 b T f) - 2 b R N / S) / 2^20, P = ceil(J / f)",
        _cut_waiting,
    ),
    BATCHES,
    Feature(
        "batch_steps", "steps", "steps of a row over all batches", "H P", lambda p: p.resident_batches * _cut_steps(p)
    ),
    Feature(
        "far_batch_steps",
        "steps",
        "the steps again where the traffic does not stay in L2",
        "F H P",
        lambda p: is_far(p) * p.resident_batches * _cut_steps(p),
    ),
    Feature(
        "ragged_batch_steps",
        "steps",
        "the steps again where rows begin off vector boundaries",
        "u H P",
        lambda p: _is_ragged(p) * p.resident_batches * _cut_steps(p),
    ),
    Feature(
        "batch_chunks",
        "chunks",
        "chunks that a thread takes over all batches",
        "H P f",
        lambda p: p.resident_batches * _cut_steps(p) * p.row_phases,
    ),
    Feature(
        "warps_issued",
        "warps/SM",
        "warps that process a chunk, over SMs",
        "C J (T / w) / S",
        lambda p: p.ctas * _cut_chunks(p) * (p.threads // p.warp_threads) / p.sm_count,
    ),
    Feature(
        "warp_totals",
        "totals",
        "totals that warps add up at the chunks of the busiest SM, each warp those of all W",
        "ceil(C / S) J (T / w) W",
        lambda p: busiest_warps(p) * _cut_chunks(p) * p.row_warps,
    ),
    Feature(
        "masked_lanes",
        "elements/SM",
        "elements before and past a row that the steps of CTAs reach, over SMs",
        "C (8 w W f P - N) / S",
        lambda p: p.ctas * (_cut_steps(p) * p.row_phases * p.chunk - p.width) / p.sm_count,
    ),
    Feature("busiest_ctas", "CTAs", "CTAs of the busiest SM", "ceil(C / S)", busiest_ctas),
    Feature(
        "pieces",
        "pieces/SM",
        "pieces of adjacent memory that rows are taken in, over SMs",
        "R P / S",
        lambda p: p.rows * _cut_steps(p) / p.sm_count,
    ),
)

SCAN_4 = Schema(
    id="scan/4",
    family="prefix.sum",
    roles={
        **dict.fromkeys((ORIGINAL, RECIPE, ANY), STEP_COLUMNS),
        SPLIT: SPLIT_COLUMNS,
        SHORT: HELD_COLUMNS,
        FLAT: HELD_COLUMNS,
    },
    needs_capacity=frozenset({ORIGINAL, RECIPE, ANY, SHORT, FLAT}),
)

# scan/5 is scan/4 with columns for rows that lanes cover and for rows of which a thread takes eight. Where lanes take
# several rows at once, the f chunks of a thread are those of all of them, so the columns of `short` hold as they are.
SCAN_5 = Schema(
    id="scan/5",
    family="prefix.sum",
    roles={**SCAN_4.roles, COVER: COVER_COLUMNS, TINY: TINY_COLUMNS},
    needs_capacity=SCAN_4.needs_capacity | {COVER, TINY},
)

# scan/6 has lines of coefficients of their own for rows of one or two warps and of sixteen (docs/decisions/0012). One
# or two warps take one chunk a step, so chunks tell no more than steps.
_NARROW_COLUMNS = tuple(feature for feature in STEP_COLUMNS if feature.name != "batch_chunks")
SCAN_6 = Schema(
    id="scan/6",
    family="prefix.sum",
    roles={**SCAN_5.roles, NARROW: _NARROW_COLUMNS, BROAD: STEP_COLUMNS},
    needs_capacity=SCAN_5.needs_capacity | {NARROW, BROAD},
)

# scan/7 has what a launch computes in two columns each: where its traffic stays in L2, and where it does not. There a
# kernel waits for DRAM and computes meanwhile: one coefficient for both took the original of FP32 8191 x 3584 for 12 %
# slower than it is, and a recipe that is 5 % slower than it was picked (docs/decisions/0013).
_BY_REACH = frozenset({"warps_issued", "warp_totals", "masked_lanes", "busiest_ctas", "pieces", "batch_chunks"})


def _by_reach(feature: Feature) -> tuple[Feature, ...]:
    """Return a column as the two that it is in L2 and beyond it."""
    if feature.name not in _BY_REACH:
        return (feature,)
    name, meaning, formula, of = feature.name, feature.meaning, feature.formula, feature.of
    near = Feature(
        f"near_{name}",
        feature.unit,
        f"{meaning}, where the traffic stays in L2",
        f"(1 - F) ({formula})",
        lambda p: (1 - is_far(p)) * of(p),
    )
    far = Feature(
        f"far_{name}", feature.unit, f"{meaning}, where it does not", f"F ({formula})", lambda p: is_far(p) * of(p)
    )
    return near, far


_IN_STEPS = (ORIGINAL, RECIPE, ANY, NARROW, BROAD)
SCAN_7 = Schema(
    id="scan/7",
    family="prefix.sum",
    roles={
        **SCAN_6.roles,
        **{role: tuple(part for one in SCAN_6.roles[role] for part in _by_reach(one)) for role in _IN_STEPS},
    },
    needs_capacity=SCAN_6.needs_capacity,
)
