"""Every published feature schema. The vectors of a schema are frozen under its name."""

from __future__ import annotations

from features.schema import Feature, Number, Point, Schema, ceil_div
from kernels.recipes import ORIGINAL, RECIPE

MIB = 2**20


def _one(p: Point) -> Number:
    return 1 + 0 * p.rows


def _traffic(p: Point) -> Number:
    return (2 * p.storage_bytes * p.rows * p.width) / (p.sm_count * MIB)


def _chunks(p: Point) -> Number:
    return p.width // (p.items * p.threads)


def _batches(p: Point) -> Number:
    return ceil_div(p.rows, p.sm_count * p.resident_ctas_per_sm)


_CONSTANT = Feature("constant", "1", "what every launch costs", "1", _one)
_TRAFFIC = Feature("traffic", "MiB/SM", "bytes read and written over SMs", "2 b R N / (S 2^20)", _traffic)

SCAN_1 = Schema(
    id="scan/1",
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
)

SCHEMAS: dict[str, Schema] = {schema.id: schema for schema in (SCAN_1,)}
