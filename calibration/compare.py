"""Findings: where a stored document differs from the same document done again, which part, expected and found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

# One sum in another order moves a float64 by a few parts in 10^15 a term; anything an editor would gain from is larger.
EXACT = 1e-12
# Re-solved coefficients, and what is predicted with them, are not bit-portable between BLAS builds.
RESOLVED = 1e-6


@frozen
class Finding:
    """One difference: the part of the packet, the item in it, what the arithmetic gives and what is there."""

    part: str
    item: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.part}: {self.item}: expected {_short(self.expected)}, found {_short(self.found)}"


def told(findings: Iterable[Finding], most: int = 20) -> Iterator[str]:
    """Yield a line for each finding, and for the parts with more than `most` of them how many were left out.

    What depends on one changed number differs with it, so that one coefficient changes thousands of residuals.
    """
    counted = Counter[str]()
    for finding in findings:
        counted[finding.part] += 1
        if counted[finding.part] <= most:
            yield str(finding)
    for part, count in counted.items():
        if count > most:
            yield f"{part}: {count - most} more differences"


def differences(part: str, item: str, expected: Any, found: Any, tolerance: float = EXACT) -> Iterator[Finding]:
    """Yield every place in which two JSON values differ; floats may differ relatively by `tolerance`."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        for key in sorted(expected.keys() | found.keys()):
            yield from _at(
                part, f"{item}.{key}", key in expected, key in found, expected.get(key), found.get(key), tolerance
            )
    elif _is_list(expected) and _is_list(found):
        for place in range(max(len(expected), len(found))):
            here, there = place < len(expected), place < len(found)
            values = expected[place] if here else None, found[place] if there else None
            yield from _at(part, f"{item}[{place}]", here, there, *values, tolerance)
    elif not _equal(expected, found, tolerance):
        yield Finding(part, item, expected, found)


def _at(
    part: str, item: str, here: bool, there: bool, expected: Any, found: Any, tolerance: float
) -> Iterator[Finding]:
    if here and there:
        yield from differences(part, item, expected, found, tolerance)
    else:
        yield Finding(part, item, expected if here else "nothing", found if there else "nothing")


def _equal(expected: Any, found: Any, tolerance: float) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, int | float) and isinstance(found, int | float):
        if isinstance(expected, int) and isinstance(found, int):
            return expected == found
        return math.isclose(expected, found, rel_tol=tolerance, abs_tol=tolerance * tolerance)
    return bool(expected == found)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."
