"""The feature schemas of the row scans, `scan/1` to `scan/4`."""

from __future__ import annotations

from features.schema import MIB, Feature, Number, Point, Schema, ceil_div
from kernels.guard import VECTOR_BYTES
from kernels.recipes import ORIGINAL, RECIPE, SPLIT
from kernels.reductions import SHORT
from kernels.scans import ANY, FLAT


def _one(p: Point) -> Number:
    return 1 + 0 * p.rows


def _traffic(p: Point) -> Number:
    return p.traffic


def _chunks(p: Point) -> Number:
    return p.width // (p.items * p.threads)


def _batches(p: Point) -> Number:
    return ceil_div(p.rows, p.sm_count * p.resident_ctas_per_sm)


_CONSTANT = Feature("constant", "1", "what every launch costs", "1", _one)
_TRAFFIC = Feature("traffic", "MiB/SM", "bytes read and written over SMs", "2 b R N / (S 2^20)", _traffic)

SCAN_1 = Schema(
    id="scan/1",
    family="prefix.sum",
    roles={
        ORIGINAL: (
            _CONSTANT,
            _TRAFFIC,
            Feature(
                "serial_elements",
                "elements",
                "elements that one SM takes, a row at a time",
                "ceil(R / S) N",
                lambda p: ceil_div(p.rows, p.sm_count) * p.width,
            ),
        ),
        RECIPE: (
            _CONSTANT,
            _TRAFFIC,
            Feature(
                "batch_elements",
                "elements",
                "elements a thread takes over all capacity batches; J = N / (8 T), H = ceil(R / (S A))",
                "8 H J",
                lambda p: p.items * _batches(p) * _chunks(p),
            ),
            Feature(
                "batch_warps",
                "warps",
                "warps that meet at each step of a block scan, over all capacity batches",
                "H J ceil(T / w)",
                lambda p: _batches(p) * _chunks(p) * ceil_div(p.threads, p.warp_threads),
            ),
        ),
    },
    needs_capacity=frozenset({RECIPE}),
)

# scan/2 prices a kernel by what it waits for. Bounds below are of an H200, 2026-11-29, from training cohorts.

# Bytes that an SM moves while one step of a CTA waits for memory and barriers: 0.27 us at 49 bytes/ns are 13 KiB. Of 8
# to 32 KiB, regret at held-out geometries was lowest, and flat, from 13 to 18.
STEP_BYTES = 14 * 2**10
# Beyond this share of L2 a buffer that is read and written again and again comes from DRAM: 33 MiB ran at L2 speed and
# 49 MiB did not, of 60.
L2_SHARE = 0.75


def _is_far(p: Point) -> Number:
    return 1 * (2 * p.storage_bytes * p.rows * p.width > L2_SHARE * p.l2_bytes)


def _waiting(p: Point) -> Number:
    step = 2 * p.storage_bytes * p.items * p.threads * p.row_phases
    step = step + (STEP_BYTES - step) * (step < STEP_BYTES)
    excess = p.resident_batches * p.row_steps * step / MIB - p.traffic
    return excess * (excess > 0) + 0.0  # not -0.0


def _warps_issued(p: Point) -> Number:
    return p.ctas * p.row_chunks * (p.threads // p.warp_threads) / p.sm_count


def _masked_lanes(p: Point) -> Number:
    return p.ctas * (p.row_steps * p.row_phases * p.chunk - p.width) / p.sm_count


def _warp_totals(p: Point) -> Number:
    return ceil_div(p.ctas, p.sm_count) * p.row_chunks * (p.threads // p.warp_threads) * p.row_warps


_FAR_TRAFFIC = Feature(
    "far_traffic",
    "MiB/SM",
    "the traffic again where it does not stay in L2; F = 1 if 2 b R N > 0.75 L2, else 0",
    "F 2 b R N / (S 2^20)",
    lambda p: _is_far(p) * p.traffic,
)
_BATCHES = Feature(
    "batches",
    "batches",
    "capacity batches of C = ceil(w W R / T) CTAs, W warps taking a row",
    "H = ceil(C / (S A))",
    lambda p: p.resident_batches,
)
_SCAN_2 = (
    _CONSTANT,
    _TRAFFIC,
    _FAR_TRAFFIC,
    Feature(
        "waiting",
        "MiB/SM",
        "what an SM could have moved while its CTAs wait at steps, beyond what it moves",
        "max(0, H P max(14336, 16 b T f) - 2 b R N / S) / 2^20",
        _waiting,
    ),
    _BATCHES,
    Feature(
        "batch_steps",
        "steps",
        "steps of a row over all batches; J = ceil(N / (8 w W)) chunks, f a step",
        "H P, P = ceil(J / f)",
        lambda p: p.resident_batches * p.row_steps,
    ),
    Feature(
        "far_batch_steps",
        "steps",
        "the steps again where the traffic does not stay in L2",
        "F H P",
        lambda p: _is_far(p) * p.resident_batches * p.row_steps,
    ),
    Feature(
        "warps_issued",
        "warps/SM",
        "warps that process a chunk, over SMs",
        "C J (T / w) / S",
        _warps_issued,
    ),
    Feature(
        "warp_totals",
        "totals",
        "totals that warps add up at the chunks of the busiest SM, each warp those of all W",
        "ceil(C / S) J (T / w) W",
        _warp_totals,
    ),
    Feature(
        "masked_lanes",
        "elements/SM",
        "elements past the end of a row that the steps of CTAs reach, over SMs",
        "C (8 w W f P - N) / S",
        _masked_lanes,
    ),
)
SCAN_2 = Schema(
    id="scan/2",
    family="prefix.sum",
    roles={ORIGINAL: _SCAN_2, RECIPE: _SCAN_2},
    needs_capacity=frozenset({ORIGINAL, RECIPE}),
)

# scan/3 is scan/2 with columns for recipes that split a row over K CTAs, each of which takes one step.


def _ctas_per_sm(p: Point) -> Number:
    return ceil_div(p.ctas, p.sm_count)


_SCAN_SPLIT = (
    _CONSTANT,
    _TRAFFIC,
    _FAR_TRAFFIC,
    Feature("numbered", "CTAs", "numbers drawn one after the other from one counter", "C", lambda p: p.ctas),
    Feature(
        "busiest_chunks",
        "chunks",
        "chunks that the busiest SM takes",
        "ceil(C / S) f",
        lambda p: _ctas_per_sm(p) * p.row_phases,
    ),
    Feature(
        "warp_totals",
        "totals",
        "totals that warps add up at the chunks of the busiest SM, each warp those of its CTA",
        "ceil(C / S) f (T / w)^2",
        lambda p: _ctas_per_sm(p) * p.row_phases * p.row_warps * p.row_warps,
    ),
)
SCAN_3 = Schema(
    id="scan/3",
    family="prefix.sum",
    roles={ORIGINAL: _SCAN_2, RECIPE: _SCAN_2, SPLIT: _SCAN_SPLIT},
    needs_capacity=frozenset({ORIGINAL, RECIPE}),
)

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


_SCAN_STEPS = (
    _CONSTANT,
    _TRAFFIC,
    _FAR_TRAFFIC,
    Feature(
        "waiting",
        "MiB/SM",
        "what an SM could have moved while its CTAs wait at steps, beyond what it moves; J = ceil((N + u (16/b - 1)) / "
        "(8 w W)) chunks, f a step, u = 1 if 16 does not divide b N, else 0",
        "max(0, H P max(14336, 16 b T f) - 2 b R N / S) / 2^20, P = ceil(J / f)",
        _cut_waiting,
    ),
    _BATCHES,
    Feature(
        "batch_steps", "steps", "steps of a row over all batches", "H P", lambda p: p.resident_batches * _cut_steps(p)
    ),
    Feature(
        "far_batch_steps",
        "steps",
        "the steps again where the traffic does not stay in L2",
        "F H P",
        lambda p: _is_far(p) * p.resident_batches * _cut_steps(p),
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
        lambda p: _busiest_warps(p) * _cut_chunks(p) * p.row_warps,
    ),
    Feature(
        "masked_lanes",
        "elements/SM",
        "elements before and past a row that the steps of CTAs reach, over SMs",
        "C (8 w W f P - N) / S",
        lambda p: p.ctas * (_cut_steps(p) * p.row_phases * p.chunk - p.width) / p.sm_count,
    ),
    Feature("busiest_ctas", "CTAs", "CTAs of the busiest SM", "ceil(C / S)", _ctas_per_sm),
    Feature(
        "pieces",
        "pieces/SM",
        "pieces of adjacent memory that rows are taken in, over SMs",
        "R P / S",
        lambda p: p.rows * _cut_steps(p) / p.sm_count,
    ),
)

# Held whole, a few lanes a row or many rows a run, no CTA takes more than one step: what is waited for is one chain of
# code, and what is worked off are the warps of the busiest SM. Each column is least at one element, so that no small
# problem lies below what was calibrated.


def _lane_doublings(p: Point) -> Number:
    """log2 L of whole numbers alone, so that arrays agree with numbers."""
    return sum(1 * (p.row_lanes >= 2**k) for k in range(1, 11)) + 0 * p.rows


def _busiest_warps(p: Point) -> Number:
    return _ctas_per_sm(p) * (p.threads // p.warp_threads)


_SCAN_HELD = (
    _CONSTANT,
    _TRAFFIC,
    _FAR_TRAFFIC,
    Feature(
        "batches",
        "batches",
        "capacity batches of C = ceil(R / B) CTAs",
        "H = ceil(C / (S A))",
        lambda p: p.resident_batches,
    ),
    Feature(
        "batch_elements",
        "elements",
        "elements that a thread takes one after the other over all batches, e a chunk and f chunks",
        "H e f",
        lambda p: p.resident_batches * p.items * p.row_phases,
    ),
    Feature(
        "batch_stages",
        "stages",
        "doublings from one lane to the L that take a row together, over all batches",
        "H log2 L",
        lambda p: p.resident_batches * _lane_doublings(p),
    ),
    Feature(
        "busiest_elements",
        "elements",
        "elements that the warps of the busiest SM take, masked ones too, a lane's share of each",
        "ceil(C / S) (T / w) e f",
        lambda p: _busiest_warps(p) * p.items * p.row_phases,
    ),
    Feature(
        "busiest_loads",
        "loads",
        "loads that these warps issue, of q bytes a lane",
        "ceil(C / S) (T / w) ceil(b e f / q)",
        lambda p: _busiest_warps(p) * ceil_div(p.storage_bytes * p.items * p.row_phases, p.load_bytes),
    ),
    Feature(
        "busiest_stages",
        "stages",
        "stages of these warps, one a chunk",
        "ceil(C / S) (T / w) f log2 L",
        lambda p: _busiest_warps(p) * p.row_phases * _lane_doublings(p),
    ),
)
SCAN_4 = Schema(
    id="scan/4",
    family="prefix.sum",
    roles={
        **dict.fromkeys((ORIGINAL, RECIPE, ANY), _SCAN_STEPS),
        SPLIT: _SCAN_SPLIT,
        SHORT: _SCAN_HELD,
        FLAT: _SCAN_HELD,
    },
    needs_capacity=frozenset({ORIGINAL, RECIPE, ANY, SHORT, FLAT}),
)
