"""How every recipe fared against the original and the fastest: wins, losses and ratios, those never picked included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from calibration.records import MEASURED, RECIPE, Geometry
from calibration.stats import improves, quantile, regresses
from kernels.recipes import RECIPES, original_of


@frozen
class Fared:
    """What became of one recipe over the records of a packet; ratios are of medians, below 1 where it is faster.

    Attributes
    ----------
    timed : geometries at which it was measured, each run counted.
    fastest, beats, loses : at how many it was the fastest recipe, and more than 3 % faster or slower than the original
        with separated intervals.
    over_original : the least, median and largest ratio to the original, of one round where one holds both.
    over_fastest : the median ratio to the fastest recipe of the record.
    picked : validation outcomes that ran it.
    untimed : how often it ended otherwise, by status.
    """

    form: str
    recipe: str
    timed: int
    fastest: int
    beats: int
    loses: int
    over_original: tuple[float, float, float] | None
    over_fastest: float | None
    picked: int
    untimed: Mapping[str, int]


def contest(records: Iterable[Geometry], outcomes: Iterable[Mapping[str, Any]]) -> tuple[Fared, ...]:
    """Return how the recipes of every form fared, the original of a form first and the others by name."""
    records, picked = tuple(records), Counter(o["picked"] for o in outcomes)
    fared = []
    for form in sorted({record.form for record in records}):
        of_form = [record for record in records if record.form == form]
        original = original_of(form).id
        names = {m.name for record in of_form for m in record.measurements if m.kind == RECIPE}
        fared += [
            _fared(of_form, name, original, picked[name]) for name in sorted(names, key=lambda n: (n != original, n))
        ]
    return tuple(fared)


def experimental() -> frozenset[str]:
    """Return the recipes of this release that take part and are not admitted until a validation earns it."""
    return frozenset(row.id for row in RECIPES if row.experimental)


def _fared(records: Sequence[Geometry], name: str, original: str, picked: int) -> Fared:
    held = [(record, m) for record in records if (m := record.by_name.get(name)) is not None]
    timed = [record for record, m in held if record.status == m.status == MEASURED]
    untimed = Counter(m.status if record.status == MEASURED else record.status for record, m in held)
    pairs = [pair for record in timed if (pair := record.pair(name, original)).other is not None]
    judged = [(pair.one, pair.other) for pair in pairs if pair.one is not None and pair.other is not None]
    ratios = sorted(one.median_us / other.median_us for one, other in judged)
    best_us = [min(m.timing.median_us for m in record.recipes()) for record in timed]
    own_us = [record.by_name[name].timing.median_us for record in timed]
    over_fastest = sorted(own / best for own, best in zip(own_us, best_us, strict=True))
    return Fared(
        form=records[0].form,
        recipe=name,
        timed=len(timed),
        fastest=sum(own == best for own, best in zip(own_us, best_us, strict=True)),
        beats=sum(improves(*pair) for pair in judged),
        loses=sum(regresses(*pair) for pair in judged),
        over_original=(ratios[0], quantile(ratios, 0.5), ratios[-1]) if ratios else None,
        over_fastest=quantile(over_fastest, 0.5) if over_fastest else None,
        picked=picked,
        untimed={status: count for status, count in sorted(untimed.items()) if status != MEASURED},
    )
