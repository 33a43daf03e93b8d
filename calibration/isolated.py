"""How experimental recipes fared in comparisons that change one thing: by dtype, rows and width, from records.

What is compared with what is the table of `kernels.experiments`. A comparison is of two recipes in one record; each run
counts. Two are told apart as everywhere: by the intervals [minimum, third quartile] of their launches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from calibration.records import MEASURED, Geometry
from calibration.stats import Timing, geomean, same
from kernels.dtypes import STORAGE
from kernels.experiments import Pair, pairs
from kernels.recipes import RECIPES


@frozen
class Span:
    """Row counts or widths from `low` to `high`, both included; None has no end."""

    low: int
    high: int | None

    def holds(self, extent: int) -> bool:
        """Whether an extent is within."""
        return self.low <= extent and (self.high is None or extent <= self.high)

    def __str__(self) -> str:
        return f"{self.low} and more" if self.high is None else f"{self.low} to {self.high}"


# Few, some waves of CTAs, and many; short rows, those of a CTA's step or two, hidden sizes, and longer ones.
ROW_SPANS = (Span(0, 64), Span(65, 2048), Span(2049, None))
WIDTH_SPANS = (Span(0, 128), Span(129, 2048), Span(2049, 16384), Span(16385, None))


@frozen
class Compared:
    """Two recipes in one record: the first is `of` the pair. `across` tells that no round holds both."""

    record: Geometry
    one: Timing
    other: Timing
    across: bool

    @property
    def ratio(self) -> float:
        """The median of the first over that of the second."""
        return self.one.median_us / self.other.median_us

    @property
    def verdict(self) -> str:
        """`wins`, `loses`, or `same` where the intervals overlap."""
        if same(self.one, self.other):
            return "same"
        return "wins" if self.one.median_us < self.other.median_us else "loses"


@frozen
class Tally:
    """What comparisons come to. `best` and `worst` are those with the least and the largest ratio."""

    geometries: int
    wins: int
    loses: int
    same: int
    across: int
    ratio_geomean: float
    best: Compared
    worst: Compared


@frozen
class Stratum:
    """The comparisons of one dtype and a part of the rows and widths; None is all of them."""

    dtype: str
    rows: Span | None
    widths: Span | None
    tally: Tally


@frozen
class Isolated:
    """A pair over a packet: how often each of both was fit for use, and the comparisons, where there are any."""

    pair: Pair
    timed: tuple[int, int]
    by_dtype: tuple[Stratum, ...]
    by_stratum: tuple[Stratum, ...]


@frozen
class Standing:
    """What became of one recipe of an experiment: how often it was timed, and how near it came to the fastest.

    `fastest` counts records in which no other recipe took less, `alone` those of them in which every other can be told
    from it; `nearest` is its least ratio to the fastest other recipe, with the record of it.
    """

    recipe: str
    timed: int
    fastest: int
    alone: int
    nearest: tuple[float, Geometry] | None
    untimed: Mapping[str, int]


def isolated(records: Iterable[Geometry]) -> tuple[Isolated, ...]:
    """Return every pair of the table that is of a form of the records, in the table's order."""
    records = tuple(records)
    forms = {record.form for record in records}
    return tuple(_isolated(records, pair) for pair in pairs(RECIPES) if pair.form in forms)


def measured(records: Iterable[Geometry]) -> bool:
    """Return whether records hold an experimental recipe, timed or not."""
    names = {row.id for row in RECIPES if row.experimental}
    return any(names & record.by_name.keys() for record in records)


def standings(records: Iterable[Geometry], names: Iterable[str]) -> tuple[Standing, ...]:
    """Return what became of each recipe, in the order of the names."""
    records = tuple(records)
    return tuple(_standing(records, name) for name in names)


def _isolated(records: Sequence[Geometry], pair: Pair) -> Isolated:
    of_form = [record for record in records if record.form == pair.form and record.status == MEASURED]
    timed = [sum(record.timing(name) is not None for record in of_form) for name in (pair.of, pair.against)]
    found = [one for record in of_form if (one := _compared(record, pair)) is not None]
    spans = [(None, None)], [(rows, widths) for rows in ROW_SPANS for widths in WIDTH_SPANS]
    whole, parts = (tuple(_strata(found, of)) for of in spans)
    return Isolated(pair, (timed[0], timed[1]), whole, parts)


def _compared(record: Geometry, pair: Pair) -> Compared | None:
    found = record.pair(pair.of, pair.against)
    if found.one is None or found.other is None:
        return None
    return Compared(record, found.one, found.other, found.across)


def _strata(found: Sequence[Compared], spans: Iterable[tuple[Span | None, Span | None]]) -> Iterator[Stratum]:
    """Yield the strata that hold a comparison, by dtype, rows and width."""
    spans = tuple(spans)
    for dtype in STORAGE:
        for rows, widths in spans:
            within = [c for c in found if c.record.dtype == dtype and _within(c.record, rows, widths)]
            if within:
                yield Stratum(dtype, rows, widths, _tally(within))


def _within(record: Geometry, rows: Span | None, widths: Span | None) -> bool:
    return (rows is None or rows.holds(record.rows)) and (widths is None or widths.holds(record.width))


def _tally(found: Sequence[Compared]) -> Tally:
    verdicts = Counter(compared.verdict for compared in found)
    mean = geomean(compared.ratio for compared in found)
    assert mean is not None
    ordered = sorted(found, key=lambda compared: compared.ratio)
    return Tally(
        geometries=len({compared.record.key for compared in found}),
        wins=verdicts["wins"],
        loses=verdicts["loses"],
        same=verdicts["same"],
        across=sum(compared.across for compared in found),
        ratio_geomean=mean,
        best=ordered[0],
        worst=ordered[-1],
    )


def _standing(records: Sequence[Geometry], name: str) -> Standing:
    held = [(record, m) for record in records if (m := record.by_name.get(name)) is not None]
    timed = [(record, m) for record, m in held if record.status == m.status == MEASURED]
    untimed = Counter(m.status if record.status == MEASURED else record.status for record, m in held)
    ratios: list[tuple[float, Geometry]] = []
    fastest = alone = 0
    for record, m in timed:
        others = [other for other in record.recipes() if other.name != name]
        if not others:
            continue
        best_us = min(other.timing.median_us for other in others)
        ratios.append((m.timing.median_us / best_us, record))
        if m.timing.median_us <= best_us:
            fastest += 1
            alone += not any(same(m.timing, other.timing) for other in others)
    return Standing(
        recipe=name,
        timed=len(timed),
        fastest=fastest,
        alone=alone,
        nearest=min(ratios, key=lambda ratio: ratio[0]) if ratios else None,
        untimed={status: count for status, count in sorted(untimed.items()) if status != MEASURED},
    )
