"""The columns that price rows of a scan that no CTA takes in steps: held whole, covered, or eight a thread."""

from __future__ import annotations

from features.schema import Feature, Number, Point, ceil_div
from features.schemas_scan import CONSTANT, FAR_TRAFFIC, TRAFFIC, busiest_warps

# Held whole, a few lanes a row or many rows a run, no CTA takes more than one step: what is waited for is one chain of
# code, and what is worked off are the warps of the busiest SM. Each column is least at one element, so that no small
# problem lies below what was calibrated.


def _lane_doublings(p: Point) -> Number:
    """log2 L of whole numbers alone, so that arrays agree with numbers."""
    return sum(1 * (p.row_lanes >= 2**k) for k in range(1, 11)) + 0 * p.rows


HELD_COLUMNS = (
    CONSTANT,
    TRAFFIC,
    FAR_TRAFFIC,
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
        lambda p: busiest_warps(p) * p.items * p.row_phases,
    ),
    Feature(
        "busiest_loads",
        "loads",
        "loads that these warps issue, of q bytes a lane",
        "ceil(C / S) (T / w) ceil(b e f / q)",
        lambda p: busiest_warps(p) * ceil_div(p.storage_bytes * p.items * p.row_phases, p.load_bytes),
    ),
    Feature(
        "busiest_stages",
        "stages",
        "stages of these warps, one a chunk",
        "ceil(C / S) (T / w) f log2 L",
        lambda p: busiest_warps(p) * p.row_phases * _lane_doublings(p),
    ),
)

# Rows that lanes cover: as held rows, but every vector is moved by one access and by one for each of its elements, most
# of which do not happen, so loads tell no more than elements do.
COVER_COLUMNS = tuple(feature for feature in HELD_COLUMNS if feature.name != "busiest_loads")

# Rows of which a thread takes eight, n = 8 rows of N elements: vectors without padding.


def _thread_elements(p: Point) -> Number:
    """Elements that a thread takes: its rows'."""
    return (p.rows_per_cta // p.threads) * p.width


TINY_COLUMNS = (
    CONSTANT,
    TRAFFIC,
    FAR_TRAFFIC,
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
        "elements that a thread takes one after the other over all batches, those of n = B / T rows",
        "H n N",
        lambda p: p.resident_batches * _thread_elements(p),
    ),
    Feature(
        "busiest_warps",
        "warps",
        "warps of the busiest SM",
        "ceil(C / S) (T / w)",
        busiest_warps,
    ),
    Feature(
        "busiest_elements",
        "elements",
        "elements that the warps of the busiest SM take, masked ones too, a lane's share of each",
        "ceil(C / S) (T / w) n N",
        lambda p: busiest_warps(p) * _thread_elements(p),
    ),
)
