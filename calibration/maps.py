"""Maps of a packet: which recipe its profile picks over rows and width, and what regret was measured there."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from calibration.errors import CalibrationError
from calibration.legend import Entry, legend, text_width
from calibration.legend import colours as coloured
from calibration.packet import Contents, Packet
from calibration.sources import identities
from calibration.svg import Box, area, document, dot, frame, line, text
from features.program import Program
from features.workloads import workloads
from kernels.recipe import Recipe
from kernels.recipes import recipes_of
from kernels.source import SourceIdentity, identity
from policy.batch import select_batch
from policy.profile import Profile, profile_from_document
from policy.select import Catalogue, recorded

OCTAVES = 20
# Four values an octave: as many as 15 pixels an octave show.
VALUES = tuple(
    sorted({q * 2**k // 4 for k in range(OCTAVES) for q in (4, 5, 6, 7) if q * 2**k % 4 == 0} | {2**OCTAVES})
)
PANEL, GAP, LEFT, TOP, TITLE = 300.0, 62.0, 64.0, 52.0, 14.0
OUTSIDE = "#f4f4f4"
# The most regret of each colour, and above the last the one after.
REGRETS = ((1.01, "#1a9850"), (1.02, "#91cf60"), (1.05, "#d9ef8b"), (1.08, "#fee08b"), (1.25, "#fc8d59"))
WORSE, UNMEASURED = "#d73027", "#ffffff"
Widths = tuple[str, Callable[[int], int]]
Run = tuple[str, int, int]
# Most recipes ask something of a width, so that a map over round widths alone would flatter them.
ROUND: Widths = ("round widths", lambda width: width)
ODD: Widths = ("odd widths: one past each even one", lambda width: width | 1)


@frozen
class Panel:
    """One small map: where it lies, and how rows and width become pixels, both by their logarithm."""

    box: Box

    def x(self, width: float) -> float:
        """Return where a width lies."""
        return self.box.x + self.box.width * math.log2(width) / OCTAVES

    def y(self, rows: float) -> float:
        """Return where a row count lies; few are at the bottom."""
        return self.box.y + self.box.height * (1 - math.log2(rows) / OCTAVES)

    def axes(self, title: str) -> list[str]:
        """Return the frame with ticks at every fourth octave, and a title above."""
        box, parts = self.box, [text(self.box.x, self.box.y - 8, title, size=12)]
        for octave in range(0, OCTAVES + 1, 4):
            x, y = self.x(2**octave), self.y(2**octave)
            parts += [line(x, box.y, x, box.y + box.height), line(box.x, y, box.x + box.width, y)]
            parts.append(text(x, box.y + box.height + 14, str(2**octave), size=9, anchor="middle"))
            parts.append(text(box.x - 5, y + 3, str(2**octave), size=9, anchor="end"))
        parts.append(text(box.x + box.width / 2, box.y + box.height + 28, "width", size=10, anchor="middle"))
        return [*parts, frame(box)]


def maps(packet: Packet) -> dict[str, str]:
    """Return a map of picks and one of regrets for every program form of a validated packet, by file name.

    Raises
    ------
    CalibrationError : the packet holds no validated profile.
    """
    contents = packet.contents
    if contents.profile is None or contents.validation is None:
        raise CalibrationError("the packet holds no validated profile; finish the calibration first")
    forms = sorted(contents.plan.forms)
    return {
        file_name(packet.name, form, kind): drawn(contents, form) for form in forms for kind, drawn in KINDS.items()
    }


def file_name(name: str, form: str, kind: str) -> str:
    """Return what the map of a packet by its name is called."""
    return f"map-{name}-{form.replace('.', '-')}-{kind}.svg"


def picks_map(contents: Contents, form: str) -> str:
    """Return the map of picks: what the profile decides on a dense grid, the judged geometries on top."""
    assert contents.profile is not None
    profile, catalogue = profile_from_document(contents.profile), _catalogue(contents)
    programs = _programs(contents, form)
    rows = recipes_of(form)
    colours = coloured(rows)
    seen: set[str] = set()
    parts: list[str] = []
    for down, (widths, value) in enumerate((ROUND, ODD)):
        for across, (dtype, program) in enumerate(programs.items()):
            panel = Panel(_place(across, down))
            picks = _picks(program, value, profile, catalogue, contents.plan.max_elements)
            seen |= set(picks.values())
            parts += _areas(panel, picks, colours)
            parts += panel.axes(f"{dtype}, {widths}")
            judged = [o for o in _outcomes(contents, form, dtype) if (o["width"] % 2 == 1) == (down == 1)]
            parts += [_judged(panel, o, colours.get(o["picked"], UNMEASURED)) for o in judged]
    picked = sorted((row for row in rows if row.id in seen), key=lambda row: list(colours).index(row.id))
    entries = [Entry(row.role, row.id, colours[row.id]) for row in picked]
    entries += [Entry("kept", "original: outside the domain", OUTSIDE), Entry("kept", "not calibrated", UNMEASURED)]
    title = f"{form}: the recipe that profile {profile.name} ({profile.regime}) picks; dots are judged geometries"
    return _whole(title, len(programs), 2, parts, entries)


def regret_map(contents: Contents, form: str) -> str:
    """Return the map of regrets: the worse of both runs at every judged geometry."""
    programs = _programs(contents, form)
    parts: list[str] = []
    for across, dtype in enumerate(programs):
        panel = Panel(_place(across, 0))
        parts += panel.axes(dtype)
        # The worst last, so that nothing better hides it.
        ordered = sorted(_worst(_outcomes(contents, form, dtype)), key=lambda o: o["regret"] or 0.0)
        parts += [_judged(panel, o, _regret_colour(o["regret"]), 3.6) for o in ordered]
    levels = [Entry("", f"up to {most}", colour) for most, colour in REGRETS]
    levels += [Entry("", f"above {REGRETS[-1][0]}", WORSE), Entry("", "not fit for use", UNMEASURED)]
    regime = contents.plan.regime
    title = f"{form} ({regime}): time of the pick over the fastest recipe measured, the worse of two runs"
    return _whole(title, len(programs), 1, parts, levels)


def _picks(
    program: Program, value: Callable[[int], int], profile: Profile, catalogue: Catalogue, most: int
) -> dict[tuple[int, int], str]:
    """Return the picked recipe, or `OUTSIDE`, at every place of the grid that is small enough to be calibrated."""
    places = [(rows, width) for rows in VALUES for width in VALUES if rows * value(width) <= most]
    works = workloads(program, [rows for rows, _ in places], [value(width) for _, width in places])
    made = select_batch(works, profile.target, profile, recorded(profile), catalogue=catalogue)
    names = np.array([row.id for row in made.recipes])[made.chosen]
    outside = made.reasons == "outside_calibrated_domain"
    return {place: OUTSIDE if out else str(name) for place, name, out in zip(places, names, outside, strict=True)}


def _areas(panel: Panel, picks: Mapping[tuple[int, int], str], colours: Mapping[str, str]) -> list[str]:
    """Return one path a colour: places beside each other in the grid become one box, as equal rows of them do."""
    boxes: dict[str, list[Box]] = defaultdict(list)
    open_since: dict[Run, int] = {}
    for rows in VALUES:
        runs = _runs(picks, rows) if rows != VALUES[-1] else set[Run]()
        for name, first, last in sorted(open_since.keys() - runs):
            left, top, bottom = panel.x(first), panel.y(rows), panel.y(open_since.pop((name, first, last)))
            boxes[name].append(Box(left, top, panel.x(last) - left, bottom - top))
        open_since |= dict.fromkeys(runs - open_since.keys(), rows)
    return [area(found, colours.get(name, OUTSIDE)) for name, found in sorted(boxes.items())]


def _runs(picks: Mapping[tuple[int, int], str], rows: int) -> set[Run]:
    """Return the runs of one row of the grid: what is picked, the first width of it, and the first of what follows."""
    found: set[Run] = set()
    begun: tuple[str, int] | None = None
    for width in VALUES:
        name = picks.get((rows, width)) if width != VALUES[-1] else None
        if begun is not None and begun[0] != name:
            found.add((*begun, width))
            begun = None
        if begun is None and name is not None:
            begun = (name, width)
    return found


def _judged(panel: Panel, o: Mapping[str, Any], fill: str, radius: float = 2.4) -> str:
    regret = "no regret measured" if o["regret"] is None else f"regret {o['regret']:.3f}"
    told = f"{o['dtype']} {o['rows']} x {o['width']}: {o['picked']}, {regret}"
    return dot(panel.x(max(1, o["width"])), panel.y(max(1, o["rows"])), radius, fill, told)


def _outcomes(contents: Contents, form: str, dtype: str) -> list[Mapping[str, Any]]:
    assert contents.validation is not None
    return [o for o in contents.validation["outcomes"] if (o["form"], o["dtype"]) == (form, dtype)]


def _worst(outcomes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return for each geometry the outcome of the run in which it fared worse."""
    worst: dict[tuple[int, int], Mapping[str, Any]] = {}
    for o in outcomes:
        key = o["rows"], o["width"]
        if key not in worst or (o["regret"] or 0.0) > (worst[key]["regret"] or 0.0):
            worst[key] = o
    return list(worst.values())


def _regret_colour(regret: float | None) -> str:
    if regret is None:
        return UNMEASURED
    return next((colour for most, colour in REGRETS if regret <= most), WORSE)


def _programs(contents: Contents, form: str) -> dict[str, Program]:
    """Return the program of each dtype that the plan measures."""
    return {planned.dtype: planned.program for planned in contents.plan.points if planned.form == form}


def _catalogue(contents: Contents) -> Catalogue:
    """Return the catalogue of the packet: kernels made from its own sources, this release's where it has none."""
    made_with = contents.environment["catalogue"]
    held = identities(made_with, contents.sources, contents.options, contents.receipts)

    def of(recipe: Recipe, dtype: str) -> SourceIdentity:
        return held.get((recipe.id, dtype)) or identity(recipe, dtype)

    return Catalogue(made_with["digest"], of)


def _place(across: int, down: int) -> Box:
    return Box(LEFT + across * (PANEL + GAP), TOP + down * (PANEL + GAP), PANEL, PANEL)


def _whole(title: str, across: int, down: int, parts: list[str], entries: Sequence[Entry]) -> str:
    """Return the picture with its title, the label of the rows' axis, and the legend below in columns."""
    width = LEFT + max(across * (PANEL + GAP), text_width(title, TITLE))
    below = TOP + down * (PANEL + GAP)
    keys, taken = legend(entries, LEFT, below, width - LEFT)
    height = below + taken
    rows = [
        text(16, _place(0, row).y + PANEL / 2, "rows", size=10, anchor="middle", turned=True) for row in range(down)
    ]
    return document(width, height, title, [text(LEFT, 22, title, size=TITLE), *rows, *parts, *keys])


KINDS: Mapping[str, Callable[[Contents, str], str]] = {"picks": picks_map, "regret": regret_map}
