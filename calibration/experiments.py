"""The page of the experiments in `docs/`: what each changes, how it fared, what the first report found beside it.

`python -m calibration.experiments packet.zip` writes it from a packet; `calibration.bundle` does so too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from calibration.errors import CalibrationError
from calibration.isolated import Compared, Isolated, Stratum, isolated, measured, standings
from calibration.packet import Packet, read
from calibration.report import show
from kernels.dtypes import STORAGE
from kernels.experiments import REPORT, Change
from kernels.receipt import Receipt
from kernels.recipes import RECIPES

DOCS = Path(__file__).resolve().parent.parent / "docs"
HOT = "hot"
_RESOURCES = (
    ("registers", "registers a thread"),
    ("static_shared_bytes", "static shared bytes"),
    ("local_bytes", "local bytes a thread"),
    ("resident_ctas_per_sm", "resident CTAs an SM"),
)
_FIGURES = ("geometries", "wins", "losses", "not separable", "ratio, geometric mean", "best", "worst")
_METHOD = (
    "Experimental recipes are measured, priced and kept with their losses; a profile admits one only where a "
    "validation earned it. Each comparison below is of two recipes in one record, of the training set and of both runs "
    "of the validation, each run counted. Ratios are medians of the first recipe over the second, below 1 where it is "
    "faster. It wins or loses where the intervals [minimum, third quartile] do not overlap, else the two are not "
    "separable. Best and worst are the least and the largest ratio, with microseconds of the first and the second "
    "recipe. Counts marked * hold comparisons across two rounds. What stands beside as the report's was measured "
    f"elsewhere, on other kernels: {REPORT}. None of its figures is a denominator here."
)


def file_name(regime: str) -> str:
    """Return what the page of a packet of this regime is called: hot is what the experiments are about."""
    return "experiments.md" if regime == HOT else f"experiments-{regime}.md"


def pages(packet: Packet) -> dict[str, str]:
    """Return the page of a packet by its file name; nothing where it holds no experimental recipe."""
    contents = packet.contents
    if not measured((*contents.cohort, *contents.validation_records)):
        return {}
    return {file_name(contents.plan.regime): page(packet)}


def page(packet: Packet) -> str:
    """Return the page as Markdown; it counts every record of the packet, and hides no pair that has none."""
    contents = packet.contents
    records = (*contents.cohort, *contents.validation_records)
    found = isolated(records)
    names = tuple(dict.fromkeys(name for one in found for name in (one.pair.of, one.pair.against)))
    target = contents.environment["target"]
    where = f"{target['label']}, cc {target['compute_capability']}, {target['sm_count']} SMs, {contents.plan.regime}"
    parts = [
        "# Experiments",
        f"Packet `{packet.digest}` ({packet.name}), {where}. Made by `python -m calibration.experiments`.",
        _METHOD,
        "## Whether one was ever the fastest",
        _standings(records, names),
        "## Resources",
        _resources(contents.receipts, names),
    ]
    for change, of_change in groupby(found, key=lambda one: one.pair.change):
        parts += [
            f"## {change.name[0].upper()}{change.name[1:]}",
            *_change(change, tuple(of_change), contents.receipts),
        ]
    return "\n\n".join(parts) + "\n"


def _standings(records: Sequence[Any], names: Iterable[str]) -> str:
    tried = {row.id for row in RECIPES if row.experimental}
    note = (
        "Among all recipes of a record. Alone is where every other can be told from it; nearest is its least ratio to "
        "the fastest other recipe. What an experiment is compared with is listed too, without the mark."
    )
    lines = _head(("recipe",), ("timed", "fastest", "of these alone", "nearest"), ("at", "not fit for use"))
    for held in standings(records, names):
        name = f"{held.recipe} (experimental)" if held.recipe in tried else held.recipe
        ratio, at = (None, "–") if held.nearest is None else (held.nearest[0], _at(held.nearest[1]))
        untimed = ", ".join(f"{status} {count}" for status, count in held.untimed.items()) or "–"
        lines.append(_row(name, held.timed, held.fastest, held.alone, ratio, at, untimed))
    return "\n\n".join((note, "\n".join(lines)))


def _resources(receipts: Iterable[Receipt], names: Iterable[str]) -> str:
    by_key = {(receipt.recipe, receipt.dtype): receipt for receipt in receipts}
    lines = _head(("recipe", "dtype"), tuple(label for _, label in _RESOURCES))
    for name in names:
        for dtype in STORAGE:
            if (receipt := by_key.get((name, dtype))) is not None:
                lines.append(_row(name, dtype, *(getattr(receipt, fact) for fact, _ in _RESOURCES)))
    return "\n".join(lines)


def _change(change: Change, found: Sequence[Isolated], receipts: Iterable[Receipt]) -> Iterator[str]:
    """Yield the paragraphs and tables of one change."""
    alone = "Nothing else differs." if change.isolated else "More than one thing differs."
    yield f"{change.meaning[0].upper()}{change.meaning[1:]}. {alone}"
    yield "\n".join(_reports(found))
    registers = {(receipt.recipe, receipt.dtype): receipt.registers for receipt in receipts}
    lines = _head(("recipe", "against", "dtype"), (*_FIGURES, "registers"))
    for one in found:
        pair = one.pair
        for stratum in one.by_dtype:
            held = [show(registers.get((name, stratum.dtype))) for name in (pair.of, pair.against)]
            lines.append(_row(pair.of, pair.against, stratum.dtype, *_figures(stratum), " / ".join(held)))
        if not one.by_dtype:
            lines.append(_row(pair.of, pair.against, "–", 0, *["–"] * len(_FIGURES)))
    yield "\n".join(lines)
    if missing := [one for one in found if not one.by_dtype]:
        yield "\n".join(_missing(missing))
    lines = _head(("recipe", "against", "dtype", "rows", "width"), _FIGURES)
    for one in found:
        for s in one.by_stratum:
            lines.append(_row(one.pair.of, one.pair.against, s.dtype, s.rows, s.widths, *_figures(s)))
    if any(one.by_stratum for one in found):
        yield "By rows and width, strata that hold no comparison left out:"
        yield "\n".join(lines)


def _reports(found: Iterable[Isolated]) -> Iterator[str]:
    """Yield what the report found, once for all pairs of which it is told."""
    told: dict[str | None, list[str]] = {}
    for one in found:
        told.setdefault(one.pair.report, []).append(f"{one.pair.of} against {one.pair.against}")
    for report, names in told.items():
        said = "The report tried nothing like it." if report is None else f"The report: {report}"
        yield f"- {'; '.join(names)}. {said}"


def _missing(found: Iterable[Isolated]) -> Iterator[str]:
    for one in found:
        of, against = one.timed
        yield (
            f"- No record holds {one.pair.of} and {one.pair.against} both fit for use: the first is in {of}, the "
            f"second in {against}. Nothing is said of this pair."
        )


def _figures(stratum: Stratum) -> tuple[Any, ...]:
    tally = stratum.tally
    count = f"{tally.geometries} *" if tally.across else tally.geometries
    ends = _end(tally.best), _end(tally.worst)
    return count, tally.wins, tally.loses, tally.same, tally.ratio_geomean, *ends


def _end(compared: Compared) -> str:
    us = f"{show(compared.one.median_us)} / {show(compared.other.median_us)} us"
    return f"{show(compared.ratio)}: {compared.record.rows} x {compared.record.width}, {us}"


def _at(record: Any) -> str:
    return f"{record.dtype} {record.rows} x {record.width}"


def _head(left: Sequence[str], right: Sequence[str], rest: Sequence[str] = ()) -> list[str]:
    ruler = "|" + "---|" * len(left) + "---:|" * len(right) + "---|" * len(rest)
    return ["| " + " | ".join((*left, *right, *rest)) + " |", ruler]


def _row(*cells: Any) -> str:
    return "| " + " | ".join(show(cell) for cell in cells) + " |"


def main(arguments: list[str], docs: Path = DOCS) -> None:
    """Write the page of each packet, or end with one line that says why not."""
    if not arguments:
        sys.exit("error: name a packet, as in `python -m calibration.experiments packet.zip`")
    try:
        for argument in arguments:
            drawn = pages(read(argument))
            if not drawn:
                raise CalibrationError(f"{argument} holds no measurement of an experimental recipe")
            for name, text in drawn.items():
                (docs / name).write_text(text, encoding="utf-8")
                print(docs / name)
    except (CalibrationError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
