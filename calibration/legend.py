"""What a map's colours are and how they are listed: a span of hues for each role, columns that the picture holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import count, cycle, groupby

from attrs import frozen

from calibration.svg import Box, area, frame, text
from kernels.recipe import ORIGINAL, Recipe

KEPT = "#d4d4d4"
# Neighbours in the catalogue often are neighbours on a map: they take turns in lightness, and their hues part slowly.
LIGHTNESS = (0.42, 0.8, 0.61)
_CHROMA, _FIRST_HUE = 0.14, 90.0
# Between the hues of two roles lie as many steps more.
_APART = 1.0
ROW = 20.0
# Columns of groups have this many lines at least, so that a name stands above what it names.
_LEAST_DEPTH = 3
_BOX, _INDENT, _SIZE, _BETWEEN = 12.0, 18.0, 11.0, 22.0
# Width of a letter over the size of its type, on the wide side for Helvetica and what replaces it.
_LETTER = 0.58


def colours(rows: Sequence[Recipe]) -> dict[str, str]:
    """Return grey for the original and a colour each for the others, by role and in catalogue order within a role."""
    found = {row.id: KEPT for row in rows if row.role == ORIGINAL}
    roles = _by_role(row for row in rows if row.role != ORIGINAL)
    lightness, step = cycle(LIGHTNESS), 0.0
    steps = sum(len(of_role) + _APART for of_role in roles)
    for of_role in roles:
        for place, row in enumerate(of_role):
            found[row.id] = _rgb(next(lightness), _CHROMA, _FIRST_HUE + 360 * (step + place) / steps)
        step += len(of_role) + _APART
    return found


def _by_role(rows: Iterable[Recipe]) -> list[list[Recipe]]:
    held: dict[str, list[Recipe]] = {}
    for row in rows:
        held.setdefault(row.role, []).append(row)
    return list(held.values())


def _rgb(lightness: float, chroma: float, hue: float) -> str:
    """Return a colour of OKLCH (B. Ottosson, "A perceptual color space for image processing", 2020) as sRGB."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    cones = (
        lightness + 0.3963377774 * a + 0.2158037573 * b,
        lightness - 0.1055613458 * a - 0.0638541728 * b,
        lightness - 0.0894841775 * a - 1.2914855480 * b,
    )
    long, medium, short = (value**3 for value in cones)
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _encoded(min(1.0, max(0.0, value)))):02x}" for value in linear)


def _encoded(value: float) -> float:
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055


def text_width(said: str, size: float = _SIZE) -> float:
    """Return about how wide text is, in pixels, rather too much than too little."""
    return len(said) * size * _LETTER


@frozen
class Entry:
    """One colour and what it means. Entries of one group stand together, under its name where it has one."""

    group: str
    label: str
    colour: str


def legend(entries: Sequence[Entry], left: float, top: float, width: float) -> tuple[list[str], float]:
    """Return the drawn entries within a width, in columns from the top down, and the height that they take."""
    lines: list[str | Entry] = []
    for group, of_group in groupby(entries, key=lambda entry: entry.group):
        lines += [group] if group else []
        lines += of_group
    widest = max(_INDENT + text_width(entry.label) for entry in entries) + _BETWEEN
    columns = max(1, min(int((width + _BETWEEN) // widest), len(lines)))
    least = max(math.ceil(len(lines) / columns), _LEAST_DEPTH if any(entry.group for entry in entries) else 1)
    depth = next(d for d in count(least) if len(_columns(lines, d)) <= columns)
    parts: list[str] = []
    for across, column in enumerate(_columns(lines, depth)):
        for down, line in enumerate(column):
            x, y = left + across * widest, top + down * ROW
            if isinstance(line, str):
                parts.append(text(x, y + 1, line, size=10))
                continue
            box = Box(x, y - 9, _BOX, _BOX)
            parts += [area([box], line.colour), frame(box), text(x + _INDENT, y + 1, line.label, size=_SIZE)]
    return parts, depth * ROW


def _columns(lines: Sequence[str | Entry], depth: int) -> list[list[str | Entry]]:
    """Return lines in columns of at most a depth, none of which ends with the name of a group."""
    columns: list[list[str | Entry]] = [[]]
    for line in lines:
        room = depth - len(columns[-1])
        if room < 1 + isinstance(line, str):
            columns.append([])
        columns[-1].append(line)
    return columns
