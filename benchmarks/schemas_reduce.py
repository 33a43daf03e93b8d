"""Candidate schemas of row reductions, judged at geometries they were not fitted on.

`python -m benchmarks.schemas_reduce PACKET` prints a table. Published schemas are in `features/`; these are not.
Several leave one thing out of reduce/1, so that the table tells what mattered.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from calibration.cohort import accepted
from calibration.crossval import GROUPS, hold_out, judge_held_out
from calibration.design import by_recipe, design
from calibration.fit import ways_of
from calibration.packet import Contents, read
from calibration.verify import target_of
from features.schema import MIB, Feature, Schema, ceil_div
from features.schemas_reduce import REDUCE_1, row_pieces, stages, steps, turns
from kernels.reductions import SPLIT

_COLUMNS = {
    feature.name: feature
    for feature in (
        *REDUCE_1.roles["split"],
        Feature(
            "batch_bytes",
            "MiB",
            "bytes of a CTA over batches",
            "H q T J / 2^20",
            lambda p: p.resident_batches * turns(p) * row_pieces(p) * p.lane_bytes * p.threads / MIB,
        ),
        Feature(
            "busiest_steps",
            "steps",
            "steps of the busiest SM's CTAs",
            "ceil(C / S) P",
            lambda p: ceil_div(p.ctas, p.sm_count) * steps(p),
        ),
        Feature(
            "row_warps",
            "warps",
            "warps that meet for a row",
            "max(1, L / w)",
            lambda p: ceil_div(p.row_lanes, p.warp_threads) + 0 * p.rows,
        ),
        Feature(
            "latency",
            "steps",
            "one after the other in one CTA: steps and stages",
            "P + log2 L",
            lambda p: steps(p) + stages(p),
        ),
        Feature(
            "masked_rows",
            "CTAs",
            "shares of CTAs without a row",
            "C - R p / B",
            lambda p: p.ctas - p.rows * p.row_parts / p.rows_per_cta,
        ),
    )
}
# A first guess, what the report's fit used, the decoupled terms of scan/2, latency first, throughput first, and
# reduce/1 with one thing left out at a time.
CANDIDATES: dict[str, tuple[str, ...]] = {
    "guess": ("constant", "traffic", "batch_steps", "batches", "row_warps"),
    "programs": ("constant", "traffic", "programs", "batch_steps", "masked"),
    "as scan/2": (
        "constant",
        "traffic",
        "far_traffic",
        "waiting",
        "batches",
        "batch_steps",
        "loads",
        "combined",
        "masked",
    ),
    "latency": ("constant", "traffic", "far_traffic", "latency", "batches", "busiest_steps", "combining"),
    "throughput": ("constant", "traffic", "far_traffic", "batch_bytes", "loads", "programs", "combined", "masked"),
    "no waiting": tuple(f.name for f in REDUCE_1.roles["recipe"] if f.name != "waiting"),
    "no combination": tuple(f.name for f in REDUCE_1.roles["recipe"] if not f.name.startswith("combin")),
    "no masks": tuple(f.name for f in REDUCE_1.roles["recipe"] if f.name != "masked"),
}


def candidate(name: str) -> Schema:
    """Return a candidate; splits have their parts besides."""
    columns = tuple(_COLUMNS[column] for column in CANDIDATES[name])
    roles = {role: (*columns, _COLUMNS["parts"]) if role == SPLIT else columns for role in REDUCE_1.roles}
    return Schema(name, REDUCE_1.family, roles, REDUCE_1.needs_capacity)


def judged(contents: Contents) -> Iterator[str]:
    """Yield a line of figures for every schema, way of sharing dtypes and way of holding out."""
    used, known, target = accepted(contents.cohort), by_recipe(contents.receipts), target_of(contents)
    for schema in (REDUCE_1, *map(candidate, CANDIDATES)):
        made = design(schema, used, known, target)
        for sharing in ways_of(made):
            for split in GROUPS:
                found = judge_held_out(made, hold_out(made, sharing, split))
                figures = (found[f"regret_{name}"] for name in ("geomean", "p95", "worst"))
                told = "  ".join("   none" if figure is None else f"{figure:7.4f}" for figure in figures)
                yield f"{schema.id:<16} {sharing:<9} {split:<9} {told}  {found['regressions']:4}"


def main(arguments: Sequence[str]) -> int:
    """Print the table of a packet."""
    print(f"{'schema':<16} {'dtypes':<9} {'held out':<9} geomean      p95    worst  regressions")
    for line in judged(read(Path(arguments[0])).contents):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
