"""Whether the automatic pick runs as the same recipe forced does: one kernel, so they differ by noise or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from calibration.records import MEASURED, PLAIN, POLICY, VALIDATION, Geometry, plain_name
from calibration.stats import NOISE, Timing, geomean, same

# How the two were launched, and what each is named there.
WAYS: Mapping[str, Callable[[str], str]] = {"graph": lambda name: name, "plain": plain_name}


def agreement(records: Iterable[Geometry]) -> dict[str, Any]:
    """Return, for graphs and for plain launches, the figures of automatic over forced; null where neither was timed.

    A ratio is of two medians of one record. `within_noise_share` counts ratios that are off by 2 % or less,
    `overlap_share` pairs whose intervals [minimum, third quartile] overlap.
    """
    judged = [record for record in records if record.purpose == VALIDATION and record.status == MEASURED]
    return {way: _figures([pair for record in judged if (pair := _pair(record, named))]) for way, named in WAYS.items()}


def holds_plain(records: Iterable[Geometry]) -> bool:
    """Return whether any record holds plain launches: sweeps of earlier releases took none."""
    return any(m.kind == PLAIN for record in records for m in record.measurements)


def _pair(record: Geometry, named: Callable[[str], str]) -> tuple[Timing, Timing] | None:
    found = record.by_name.get(POLICY)
    if found is None or found.picked is None:
        return None
    pair = record.pair(named(POLICY), named(found.picked))
    return None if pair.one is None or pair.other is None else (pair.one, pair.other)


def _figures(pairs: list[tuple[Timing, Timing]]) -> dict[str, Any]:
    ratios = [automatic.median_us / forced.median_us for automatic, forced in pairs]
    count = len(ratios)
    return {
        "count": count,
        "geomean": geomean(ratios),
        "minimum": min(ratios, default=None),
        "maximum": max(ratios, default=None),
        "within_noise_share": sum(abs(ratio - 1) <= NOISE for ratio in ratios) / count if count else None,
        "overlap_share": sum(same(*pair) for pair in pairs) / count if count else None,
    }
