"""The first feature schemas of the row scans, `scan/1` to `scan/3`, and columns that later ones share with them."""

from __future__ import annotations

from features.schema import MIB, Feature, Number, Point, Schema, ceil_div
from kernels.recipe import ORIGINAL, RECIPE, SPLIT


def _one(p: Point) -> Number:
    return 1 + 0 * p.rows


def _traffic(p: Point) -> Number:
    return p.traffic


def _chunks(p: Point) -> Number:
    return p.width // (p.items * p.threads)


def _batches(p: Point) -> Number:
    return ceil_div(p.rows, p.sm_count * p.resident_ctas_per_sm)


CONSTANT = Feature("constant", "1", "what every launch costs", "1", _one)
TRAFFIC = Feature("traffic", "MiB/SM", "bytes read and written over SMs", "2 b R N / (S 2^20)", _traffic)

SCAN_1 = Schema(
    id="scan/1",
    family="prefix.sum",
    roles={
        ORIGINAL: (
            CONSTANT,
            TRAFFIC,
            Feature(
                "serial_elements",
                "elements",
                "elements that one SM takes, a row at a time",
                "ceil(R / S) N",
                lambda p: ceil_div(p.rows, p.sm_count) * p.width,
            ),
        ),
        RECIPE: (
            CONSTANT,
            TRAFFIC,
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


def is_far(p: Point) -> Number:
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


FAR_TRAFFIC = Feature(
    "far_traffic",
    "MiB/SM",
    "the traffic again where it does not stay in L2; F = 1 if 2 b R N > 0.75 L2, else 0",
    "F 2 b R N / (S 2^20)",
    lambda p: is_far(p) * p.traffic,
)
BATCHES = Feature(
    "batches",
    "batches",
    "capacity batches of C = ceil(w W R / T) CTAs, W warps taking a row",
    "H = ceil(C / (S A))",
    lambda p: p.resident_batches,
)
_SCAN_2 = (
    CONSTANT,
    TRAFFIC,
    FAR_TRAFFIC,
    Feature(
        "waiting",
        "MiB/SM",
        "what an SM could have moved while its CTAs wait at steps, beyond what it moves",
        "max(0, H P max(14336, 16 b T f) - 2 b R N / S) / 2^20",
        _waiting,
    ),
    BATCHES,
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
        lambda p: is_far(p) * p.resident_batches * p.row_steps,
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


def busiest_ctas(p: Point) -> Number:
    return ceil_div(p.ctas, p.sm_count)


def busiest_warps(p: Point) -> Number:
    return busiest_ctas(p) * (p.threads // p.warp_threads)


SPLIT_COLUMNS = (
    CONSTANT,
    TRAFFIC,
    FAR_TRAFFIC,
    Feature("numbered", "CTAs", "numbers drawn one after the other from one counter", "C", lambda p: p.ctas),
    Feature(
        "busiest_chunks",
        "chunks",
        "chunks that the busiest SM takes",
        "ceil(C / S) f",
        lambda p: busiest_ctas(p) * p.row_phases,
    ),
    Feature(
        "warp_totals",
        "totals",
        "totals that warps add up at the chunks of the busiest SM, each warp those of its CTA",
        "ceil(C / S) f (T / w)^2",
        lambda p: busiest_ctas(p) * p.row_phases * p.row_warps * p.row_warps,
    ),
)
SCAN_3 = Schema(
    id="scan/3",
    family="prefix.sum",
    roles={ORIGINAL: _SCAN_2, RECIPE: _SCAN_2, SPLIT: SPLIT_COLUMNS},
    needs_capacity=frozenset({ORIGINAL, RECIPE}),
)
