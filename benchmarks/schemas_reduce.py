"""Candidate schemas of row reductions, judged at geometries they were not fitted on.

`python -m benchmarks.schemas_reduce PACKET` prints a table. Published schemas are in `features/`; these are not. Many
change one thing of reduce/2, so that the table tells what mattered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from attrs import evolve, frozen

from calibration.cohort import accepted
from calibration.crossval import GROUPS, hold_out, judge_held_out
from calibration.design import Design, by_recipe, design
from calibration.fit import ways_of
from calibration.joining import current
from calibration.packet import Contents, read
from calibration.verify import target_of
from features.schema import MIB, Feature, Number, Point, Schema, ceil_div
from features.schemas_reduce import REDUCE_2, is_far, row_pieces, stages, steps, traffic, turns
from kernels.recipe import ORIGINAL, Recipe
from kernels.reductions import FLAT, SEVERAL, SHORT, SPLIT, STAGED

# Bytes that an SM moves while one step of a CTA waits, as of scan/2.
STEP_BYTES = 14 * 2**10


def waiting(p: Point) -> Number:
    """MiB that an SM could have moved while its CTAs wait at steps, beyond what it moves."""
    step = p.lane_bytes * p.threads * p.row_phases
    step = step + (STEP_BYTES - step) * (step < STEP_BYTES)
    excess = p.resident_batches * steps(p) * step / MIB - traffic(p)
    return excess * (excess > 0) + 0.0  # not -0.0


def loads(p: Point) -> Number:
    """Loads that warps issue, over SMs."""
    a_piece = p.lane_bytes // p.load_bytes
    return p.ctas * turns(p) * row_pieces(p) * a_piece * (p.threads / p.warp_threads) / p.sm_count


def combined(p: Point) -> Number:
    """Stages of the busiest SM's warps."""
    return ceil_div(p.ctas, p.sm_count) * turns(p) * (p.threads / p.warp_threads) * stages(p)


_COLUMNS = {
    feature.name: feature
    for feature in (
        *REDUCE_2.roles[SPLIT],
        *REDUCE_2.roles[STAGED],
        Feature("waiting", "MiB/SM", "", "max(0, H P max(14336, q T f) - b R (N + 1) / S) / 2^20", waiting),
        Feature("batches", "batches", "", "H", lambda p: p.resident_batches),
        Feature("far_batch_steps", "steps", "", "F H P", lambda p: is_far(p) * p.resident_batches * steps(p)),
        Feature("loads", "loads/SM", "", "C V J (q / load) (T / w) / S", loads),
        Feature("combined", "stages", "", "ceil(C / S) V (T / w) log2 L", combined),
        Feature("busiest_steps", "steps", "", "ceil(C / S) P", lambda p: ceil_div(p.ctas, p.sm_count) * steps(p)),
        Feature(
            "row_warps", "warps", "", "max(1, L / w)", lambda p: ceil_div(p.row_lanes, p.warp_threads) + 0 * p.rows
        ),
        Feature("latency", "steps", "", "P + log2 L", lambda p: steps(p) + stages(p)),
    )
}
_WAYS = tuple(feature.name for feature in REDUCE_2.roles[ORIGINAL])
_SPARE = ("waiting", "batches", "loads", "combined", "far_batch_steps")


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in _WAYS if name not in names)


# The columns of every role but those with few of their own, which keep theirs: a first guess, what the first report's
# fit used, the terms of scan/2, latency first, throughput first, all that was tried, and reduce/2 with one left out.
CANDIDATES: dict[str, tuple[str, ...]] = {
    "guess": ("constant", "traffic", "batch_steps", "batches", "row_warps"),
    "programs": ("constant", "traffic", "programs", "batch_steps", "masked"),
    "as scan/2": (
        *("constant", "traffic", "far_traffic", "waiting", "batches", "batch_steps", "loads", "combined", "masked"),
    ),
    "latency": ("constant", "traffic", "far_traffic", "latency", "batches", "busiest_steps", "combining"),
    "throughput": ("constant", "traffic", "far_traffic", "batch_bytes", "loads", "programs", "combined", "masked"),
    "all": (*_WAYS, *_SPARE),
    "with waiting": (*_without("batch_bytes"), "waiting"),
    **{f"no {name}": _without(name) for name in _WAYS[1:]},
}
OWN_COLUMNS = (FLAT, SEVERAL, STAGED)


def candidate(name: str) -> Schema:
    """Return a candidate; splits have their parts besides."""
    columns = tuple(_COLUMNS[column] for column in CANDIDATES[name])
    roles = {
        role: own if role in OWN_COLUMNS else (*columns, _COLUMNS["parts"]) if role == SPLIT else columns
        for role, own in REDUCE_2.roles.items()
    }
    return Schema(name, REDUCE_2.family, roles, REDUCE_2.needs_capacity)


@frozen(eq=False)
class Variant:
    """A schema, and the role whose coefficients a recipe shares."""

    schema: Schema
    shares: Callable[[Recipe], str] = lambda recipe: recipe.role


def _by_template(recipe: Recipe) -> str:
    """One line of coefficients for all recipes of a template; the original keeps its own."""
    return recipe.role if recipe.role in (ORIGINAL, SHORT) else recipe.template


def _one_of_bank_turns() -> Schema:
    plain = {**REDUCE_2.roles, STAGED: tuple(f for f in REDUCE_2.roles[STAGED] if f.name != "bank_turns")}
    return Schema("no bank_turns", REDUCE_2.family, plain, REDUCE_2.needs_capacity)


VARIANTS = (
    Variant(REDUCE_2),
    Variant(evolve(REDUCE_2, id="shared lines"), _by_template),
    Variant(_one_of_bank_turns()),
    *(Variant(candidate(name)) for name in CANDIDATES),
)


def regrouped(made: Design, shares: Callable[[Recipe], str]) -> Design:
    """Return a design whose recipes have the roles that they are to share coefficients by."""
    rows = tuple(evolve(row, recipe=evolve(row.recipe, role=shares(row.recipe))) for row in made.rows)
    roles = {new.recipe.role: made.schema.roles[old.recipe.role] for new, old in zip(rows, made.rows, strict=True)}
    return Design(evolve(made.schema, roles=roles), rows)


def judged(contents: Contents) -> Iterator[str]:
    """Yield a line of figures for every schema, way of sharing dtypes and way of holding out.

    Of the cohort counts what was measured from the sources and under the proofs of this release.
    """
    known, target = by_recipe(contents.receipts), target_of(contents)
    used = accepted(tuple(record for record in map(current, contents.cohort) if record is not None))
    for variant in VARIANTS:
        made = regrouped(design(variant.schema, used, known, target), variant.shares)
        for sharing in ways_of(made):
            for split in GROUPS:
                found = judge_held_out(made, hold_out(made, sharing, split))
                figures = (found[f"regret_{name}"] for name in ("geomean", "p95", "worst"))
                told = "  ".join("   none" if figure is None else f"{figure:7.4f}" for figure in figures)
                yield f"{variant.schema.id:<18} {sharing:<13} {split:<9} {told}  {found['regressions']:4}"


def main(arguments: Sequence[str]) -> int:
    """Print the table of a packet."""
    print(f"{'schema':<18} {'dtypes':<13} {'held out':<9} geomean      p95    worst  regressions")
    for line in judged(read(Path(arguments[0])).contents):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
