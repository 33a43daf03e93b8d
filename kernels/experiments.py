"""What the experiments are compared with: pairs of recipes of one form that differ in one thing, as a table of changes.

A pair is found by what its recipes are made of, so that a recipe that joins the catalogue joins its comparisons. Beside
each change stands what the first research report found where it made that change, on another GPU and other kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from kernels.recipe import ORIGINAL, Recipe
from kernels.reductions import CHUNK, SCALAR, SUBGROUP

REPORT = "the research report's GPU: compute capability 8.9, 24 SMs, CUDA 13.4"
_APART = ("template", "threads", "rows_per_cta", "items", "phases")
# Whose recipes give every row the same lanes: from any base, and in whole vectors.
_ROWS = ("reduce_rows.cu", "reduce_lean.cu")


@frozen
class Change:
    """One thing that the second recipe of a comparison lacks.

    Attributes
    ----------
    isolated : whether nothing else differs. Where it is false the whole way through a row does.
    takes : tells of (recipe, the one it is compared with), both of one form, whether they are such a pair.
    report : what the research report found, by the role of the recipe; a role that is not there was not tried.
    """

    name: str
    meaning: str
    isolated: bool
    takes: Callable[[Recipe, Recipe], bool] = field(eq=False, repr=False)
    report: Mapping[str, str]


@frozen
class Pair:
    """Two recipe ids to compare, in what the first differs, and what the report found of it, None where nothing."""

    change: Change
    form: str
    of: str
    against: str
    report: str | None


def _facts(recipe: Recipe) -> dict[str, Any]:
    return {name: getattr(recipe, name) for name in _APART} | dict(recipe.constants)


def apart(one: Recipe, other: Recipe) -> dict[str, tuple[Any, Any]]:
    """Return what two recipes are launched or compiled with differently, by name; None where one knows no such thing.

    Proofs and demands on boundaries are not among it: they follow from the loads.
    """
    mine, theirs = _facts(one), _facts(other)
    names = dict.fromkeys((*mine, *theirs))
    return {name: (mine.get(name), theirs.get(name)) for name in names if mine.get(name) != theirs.get(name)}


def _aligned(one: Recipe, other: Recipe) -> bool:
    return apart(one, other) == {"ALIGNED": ("1", "0")}


def _more(name: str) -> Callable[[Recipe, Recipe], bool]:
    def takes(one: Recipe, other: Recipe) -> bool:
        more: bool = getattr(one, name) > getattr(other, name)
        return one.experimental and other.experimental and set(apart(one, other)) == {name} and more

    return takes


def _carries(one: Recipe, other: Recipe) -> bool:
    return one.experimental and apart(one, other) == {"CARRY": ("chunk_shaped", "scalar")}


def _as_many_lanes(one: Recipe, other: Recipe) -> bool:
    alike = one.alignment == other.alignment and one.lanes == other.lanes
    return one.experimental and other.template in _ROWS and alike


def _original(one: Recipe, other: Recipe) -> bool:
    return one.experimental and other.role == ORIGINAL


CHANGES: tuple[Change, ...] = (
    Change(
        "aligned loads",
        "16-byte loads under the proof of aligned rows, in place of loads that take any base",
        True,
        _aligned,
        {
            "aligned": (
                "Four cases of SUM and MAX 256 x 128 took 31 to 35 % less time, and an FP16 scan 128 x 8192 took 37 % "
                "more. Of sums over whole rows several FP16 cases took 6 to 9 % less, and BF16 3 x 16384 about 82 % "
                "more, with 46 registers where the plain one had 137."
            ),
            CHUNK: (
                "All 16 cases took longer, 1.54 to 2.41 times, with 8 or 16 KiB of static shared memory a CTA where "
                "the plain ones had 16 bytes."
            ),
            SCALAR: "The 16 streamed cases with aligned loads, which all took longer, carried chunks.",
        },
    ),
    Change(
        "unroll",
        "eight chunks of a row asked for before the first is added, in place of one",
        True,
        _more("phases"),
        {
            SUBGROUP: (
                "With 8 elements a lane a BF16 RMSNorm with a tail took about 30 % less time; most of the other "
                "RMSNorm and softmax cases changed little."
            )
        },
    ),
    Change(
        "elements a lane",
        "eight elements a lane and chunk, in place of one",
        True,
        _more("items"),
        {
            SUBGROUP: (
                "The other way round, one element in place of eight: five of six RMSNorm and softmax cases got faster, "
                "and the BF16 one with a tail took about 32 % longer with 304 bytes of local memory a thread. Its "
                "second-level merge was narrower as well, so that these times are not of one change."
            )
        },
    ),
    Change(
        "carry",
        "an accumulator as wide as a chunk that is reduced once, in place of one number to which each chunk is reduced",
        True,
        _carries,
        {},
    ),
    Change(
        "way, at as many lanes a row",
        "the experiment's way through a row, in place of that of the recipe with as many lanes a row and equal loads",
        False,
        _as_many_lanes,
        {},
    ),
    Change(
        "way, beside the original",
        "the experiment's whole way through a row, in place of the original's",
        False,
        _original,
        {
            SUBGROUP: (
                "128 threads, 2 rows a CTA, 8 elements a lane, unroll 1: all six RMSNorm and softmax cases took "
                "longer, 1.33 to 3.00 times."
            ),
            SCALAR: "All 24 cases of SUM took longer, up to 2.369 times.",
            CHUNK: (
                "Few rows of FP32 took 4 to 6 % less time, most cases of 128 rows about as much; BF16 3 x 16384 with a "
                "carry of 2048 elements took 2.177 us where the original took 1.405."
            ),
        },
    ),
)


def pairs(rows: Iterable[Recipe], changes: Iterable[Change] = CHANGES) -> tuple[Pair, ...]:
    """Return every comparison among recipes, by change and then in the order of the rows."""
    return tuple(_pairs(tuple(rows), changes))


def _pairs(rows: tuple[Recipe, ...], changes: Iterable[Change]) -> Iterator[Pair]:
    for change in changes:
        for one in rows:
            for other in rows:
                if one.form == other.form and one.id != other.id and change.takes(one, other):
                    yield Pair(change, one.form, one.id, other.id, change.report.get(one.role))
