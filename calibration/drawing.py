"""Drawing a plan's geometries from the committed tables: numbers that look random and depend on seed and name alone."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle

from attrs import evolve, frozen

from calibration.extents import extents
from calibration.planned import Planned
from calibration.rotation import COLD, COLD_FOOTPRINT_BYTES, pairs_needed
from calibration.strata import ELEMENTS, ElementStratum, Grid, ImageStratum, Place, RowStratum, WidthStratum
from calibration.traffic import footprint_bytes
from features.program import Program, program_of
from kernels.dtypes import storage

# Input, output, the original's output to compare with, and room for guards and the chunked reference.
BUFFERS = 4
# The same beyond the pairs of a cold geometry.
COLD_BUFFERS = 2
# An inventory keeps this far from the ends of what training spans, so that every feature of it lies inside.
MARGIN = 2
# What a training geometry stands for.
TRAINED = {"set": "training"}

Key = tuple[str, str, *tuple[int, ...]]


@frozen
class Limits:
    """What fits one geometry: memory, elements, and in the cold regime a footprint that rotation can keep out of L2."""

    sm_count: int
    l2_bytes: int
    memory_bytes: int
    max_elements: int
    regime: str

    def fits(self, program: Program, rows: int, width: int, margin: int = 1) -> bool:
        """Return whether a geometry may be measured; `margin` keeps it away from both ends."""
        footprint, tensor = footprint_bytes(program, rows, width), rows * width * storage(program.dtype).bytes
        if self.regime == COLD and footprint < margin * COLD_FOOTPRINT_BYTES:
            return False
        needed = BUFFERS * tensor
        if self.regime == COLD:
            # Each turn has a pair, a copy's target and the results that two peers hold.
            turn = 3 * footprint
            needed = pairs_needed(self.regime, footprint, self.l2_bytes) * turn + COLD_BUFFERS * tensor
        return rows * width <= self.max_elements // margin and needed <= self.memory_bytes

    def widest(self, program: Program, rows: int, margin: int = 1) -> int:
        """Return a width beyond which no geometry of these rows fits: elements and the buffers of any regime."""
        row_bytes = rows * storage(program.dtype).bytes
        return min(self.max_elements // margin // rows, self.memory_bytes // (BUFFERS * row_bytes))


@frozen
class Share:
    """Programs of one family share a fit, and so its training widths: each of `count` takes every so many of them."""

    place: int = 0
    count: int = 1


def training(
    op: str, dtypes: Sequence[str], grid: Grid, seed: int, limits: Limits, share: Share = Share()
) -> tuple[Planned, ...]:
    """Return the training geometries of an op, dtype by dtype."""
    reserved = {planned.key for planned in _named(op, grid, limits)}
    drawn = [
        planned
        for turn, dtype in enumerate(dtypes)
        for planned in _training(op, dtype, turn, dtypes, grid, seed, limits, reserved, share)
    ]
    keys = {planned.key for planned in drawn}
    anchored = [Planned(op, dtype, a.rows, a.width, TRAINED, inner=a.inner) for a in grid.anchors for dtype in a.dtypes]
    fitting = [a for a in anchored if limits.fits(a.program, a.rows, a.width) and a.key not in keys | reserved]
    return (*drawn, *fitting)


def _training(
    op: str,
    dtype: str,
    turn: int,
    dtypes: Sequence[str],
    grid: Grid,
    seed: int,
    limits: Limits,
    reserved: set[Key],
    share: Share,
) -> Iterator[Planned]:
    """Spread the picks of every width over the row counts used least so far; add the corners of the domain."""
    used: dict[Place, int] = dict.fromkeys(grid.training_places(limits.sm_count), 0)
    for place, width in enumerate(tuple(reversed(grid.widths))[share.place :: share.count]):
        possible = [
            (rows, inner)
            for rows, inner in used
            if limits.fits(program_of(op, dtype), rows, width)
            and (op, dtype, *extents(rows, width, inner)) not in reserved
        ]
        if not possible:
            continue
        corners = {possible[0]}  # the fewest rows of every width: where a row is split, features are least there
        if place % len(dtypes) == turn:
            corners.add(possible[-1])
        if width in grid.spans:
            corners.add(possible[-1])
        others = [place for place in possible if place not in corners]
        others.sort(key=lambda at, width=width: (used[at], draw(seed, op, dtype, *extents(at[0], width, at[1]))))  # type: ignore[misc]
        for rows, inner in sorted(corners | set(others[: grid.picks])):
            used[rows, inner] += 1
            yield Planned(op, dtype, rows, width, TRAINED, inner=inner)


def inventory(
    op: str, dtypes: Sequence[str], grid: Grid, seed: int, limits: Limits, trained: Iterable[Planned]
) -> tuple[Planned, ...]:
    """Return the inventory of an op: the named geometries, then every element stratum alike; peers where they join.

    No geometry that any program of the family is trained on is among them.
    """
    named = tuple(_named(op, grid, limits))
    taken: set[Key] = {(op, planned.dtype, *planned.extents) for planned in (*trained, *named)}
    drawn = tuple((_balanced if grid.balanced else _in_turn)(op, dtypes, grid, seed, limits, taken))
    return (*named, *_with_peers(drawn, grid.peers, seed))


def _named(op: str, grid: Grid, limits: Limits) -> Iterator[Planned]:
    for name in grid.named:
        count = name.rows * name.width
        elements = next(stratum.name for stratum in ELEMENTS if stratum.low <= count < stratum.high)
        for dtype in name.dtypes:
            if limits.fits(program_of(op, dtype), name.rows, name.width):
                stratum = {"elements": elements, "rows": "named", "width": "named"}
                yield Planned(op, dtype, name.rows, name.width, stratum, inner=name.inner)


def _in_turn(
    op: str, dtypes: Sequence[str], grid: Grid, seed: int, limits: Limits, taken: set[Key]
) -> Iterator[Planned]:
    """Fill every element stratum alike: each width stratum meets each row stratum and dtype equally often."""
    laps = range(max(stratum.count for stratum in grid.inventory))
    order = [stratum for lap in laps for stratum in grid.inventory if lap < stratum.count]
    for elements in ELEMENTS:
        possible = [r for r in grid.row_strata if _meets(r, elements, grid.widths, program_of(op, dtypes[0]), limits)]
        for turn, widths in enumerate(order if possible else []):
            lap, place = divmod(turn, len(grid.inventory))
            dtype = dtypes[(place + lap + lap // len(possible)) % len(dtypes)]
            first = lap % len(possible)
            for rows in (*possible[first:], *possible[:first]):
                label = (seed, op, elements.name, rows.name, widths.name, turn)
                found = _one(op, dtype, elements, rows, widths, label, grid, limits, taken)
                if found is not None:
                    taken.add(found.key)
                    yield found
                    break


def _balanced(
    op: str, dtypes: Sequence[str], grid: Grid, seed: int, limits: Limits, taken: set[Key]
) -> Iterator[Planned]:
    """Fill every element stratum alike that all width strata meet; rows and dtypes used least so far come first.

    The width strata that meet the fewest row strata are drawn first, so that the others make up for them.
    """
    met = {
        (elements, widths): [
            rows
            for rows in grid.row_strata
            if all(_meets(rows, elements, widths.widths, program_of(op, dtype), limits) for dtype in dtypes)
        ]
        for elements in ELEMENTS
        for widths in grid.inventory
    }
    whole = [elements for elements in ELEMENTS if all(met[elements, widths] for widths in grid.inventory)]
    shares = {widths: -(-widths.count * len(ELEMENTS) // max(1, len(whole))) for widths in grid.inventory}
    used = Counter[tuple[str, ...]]()
    for elements in whole:
        order = [widths for widths in grid.inventory for _ in range(shares[widths])]
        slots = sorted(
            enumerate(order), key=lambda slot: (len(met[elements, slot[1]]), draw(seed, op, elements.name, slot[0]))
        )
        for slot, widths in slots:
            label = (seed, op, elements.name, widths.name, slot)
            ways = [(rows, dtype) for rows in met[elements, widths] for dtype in dtypes]
            ways.sort(key=lambda way: _use(used, elements.name, way[0].name, way[1], draw(*label, way[0].name, way[1])))
            for rows, dtype in ways:
                found = _one(op, dtype, elements, rows, widths, (*label, rows.name), grid, limits, taken)
                if found is not None:
                    taken.add(found.key)
                    used.update(((elements.name, rows.name), (dtype,), (rows.name, dtype)))
                    yield found
                    break


def _use(used: Counter[tuple[str, ...]], elements: str, rows: str, dtype: str, number: int) -> tuple[int, ...]:
    """Return how often rows in these elements, a dtype, and the two together were drawn; a number decides a tie."""
    return used[elements, rows], used[dtype,], used[rows, dtype], number


def _one(
    op: str,
    dtype: str,
    elements: ElementStratum,
    rows: RowStratum | ImageStratum,
    widths: WidthStratum,
    label: tuple[object, ...],
    grid: Grid,
    limits: Limits,
    taken: set[Key],
) -> Planned | None:
    """Draw a geometry of the three strata that is in no other place of the plan, or None where there is none."""
    narrowest, widest = min(grid.widths), max(grid.widths)
    for count, inner in sorted(rows.places(limits.sm_count), key=lambda place: draw(*label, *_told(*place))):
        most = limits.widest(program_of(op, dtype), count, MARGIN)
        low, high = max(narrowest, -(-elements.low // count)), min(widest, most, (elements.high - 1) // count)
        fitting = [w for w in widths.widths if low <= w <= high]
        start = draw(*label, *_told(count, inner), "width") % max(1, len(fitting))
        for _, width in zip(range(16), cycle(fitting[start:] + fitting[:start]), strict=False):
            planned = (op, dtype, *extents(count, width, inner))
            if planned not in taken and limits.fits(program_of(op, dtype), count, width, MARGIN):
                stratum = {"elements": elements.name, "rows": rows.name, "width": widths.name}
                return Planned(op, dtype, count, width, stratum, inner=inner)
    return None


def _told(rows: int, inner: int) -> tuple[int, ...]:
    """Return what a number is drawn by: rows alone where none interleave, as it always was."""
    return (rows,) if inner == 1 else (rows, inner)


def _meets(
    rows: RowStratum | ImageStratum, elements: ElementStratum, widths: Sequence[int], program: Program, limits: Limits
) -> bool:
    """Return whether any of the widths and a row count of the stratum meet in the element stratum."""
    return any(
        elements.low <= count * width < elements.high and limits.fits(program, count, width, MARGIN)
        for count, _ in rows.places(limits.sm_count)
        for width in widths
    )


def _with_peers(drawn: Sequence[Planned], wanted: int | None, seed: int) -> tuple[Planned, ...]:
    """Let peers join at `wanted` geometries, one of every cell of the strata before a second of any; None is all."""
    if wanted is None:
        return tuple(drawn)
    cells: dict[tuple[str, ...], list[Planned]] = defaultdict(list)
    for planned in sorted(drawn, key=lambda p: draw(seed, "peers", *p.key)):
        cells[tuple(planned.stratum.values())].append(planned)
    ranked = sorted(
        (rank, draw(seed, "peers", *planned.key), planned.key)
        for cell in cells.values()
        for rank, planned in enumerate(cell)
    )
    joined = {key for _, _, key in ranked[:wanted]}
    return tuple(evolve(planned, peers=planned.key in joined) for planned in drawn)


def draw(*label: object) -> int:
    """Return a number that looks random and depends on the label alone: no generator whose stream could change."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, label)).encode()).digest()[:8])
