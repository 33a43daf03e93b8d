"""A plan is data: what is measured to fit on, and the inventory that judges the fit, drawn before there is one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import cycle
from typing import Any

from attrs import asdict, frozen

from calibration.errors import PlanError
from calibration.strata import ELEMENTS, GRIDS, ROWS, ElementStratum, Grid, RowStratum, WidthStratum
from features.program import Program, program_of
from features.proof import form_of
from kernels.dtypes import STORAGE, storage
from kernels.identity import digest
from kernels.recipes import family_of
from kernels.target import Target

PLAN_SCHEMA = "rowsmith.plan/1"
# 2^28 elements of FP32 are 2 GiB of traffic, about half a millisecond on an H200: a sweep of 200 points stays short.
MAX_ELEMENTS = 2**28
# Input, output, the original's output to compare with, and room for guards and the chunked reference.
BUFFERS = 4
COLD_FOOTPRINT_BYTES = 2**20


@frozen
class Planned:
    """One geometry to measure."""

    op: str
    dtype: str
    rows: int
    width: int
    stratum: Mapping[str, str]

    @property
    def program(self) -> Program:
        """The program to measure."""
        return program_of(self.op, self.dtype)

    @property
    def form(self) -> str:
        """The form of the program."""
        return form_of(self.program)

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What tells two geometries apart: op, dtype, rows, width."""
        return self.op, self.dtype, self.rows, self.width


@frozen(slots=False)
class Plan:
    """What a sweep measures. `training` is for fitting, `validation` is never looked at by a fit."""

    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    seed: int
    regime: str
    sm_count: int
    memory_bytes: int
    max_elements: int
    training: tuple[Planned, ...]
    validation: tuple[Planned, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as it is stored."""
        document = asdict(self)
        return {"schema": PLAN_SCHEMA, **{k: list(v) if isinstance(v, tuple) else v for k, v in document.items()}}

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the stored document."""
        return digest(self.to_json())


def plan_from_json(document: Mapping[str, Any]) -> Plan:
    """Read a plan, or raise `PlanError`."""
    try:
        if document["schema"] != PLAN_SCHEMA:
            raise PlanError(f"plan schema {document['schema']!r} is not {PLAN_SCHEMA}; use a matching release")
        facts: dict[str, Any] = {
            k: tuple(v) if k in ("ops", "dtypes") else v for k, v in document.items() if k != "schema"
        }
        for part in ("training", "validation"):
            facts[part] = tuple(Planned(**planned) for planned in facts[part])
        return Plan(**facts)
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanError(f"plan is malformed: {type(error).__name__} {error}") from error


def draw_plan(
    ops: Sequence[str],
    seed: int,
    target: Target,
    memory_bytes: int,
    *,
    dtypes: Sequence[str] = tuple(STORAGE),
    regime: str = "hot",
    max_elements: int = MAX_ELEMENTS,
) -> Plan:
    """Draw the plan of a sweep; the same arguments give the same plan on every machine.

    Parameters
    ----------
    memory_bytes : what the buffers of one geometry may take together, four of them counted.
    max_elements : the largest training geometry. The inventory stays below half of it, so that every feature of it lies
        inside the ranges that training spans.

    Raises
    ------
    PlanError : no grid for an op's family, or nothing fits the limits.
    """
    limits = _Limits(target.sm_count, memory_bytes, max_elements, regime)
    training: list[Planned] = []
    validation: list[Planned] = []
    for op in ops:
        family = family_of(form_of(program_of(op, dtypes[0])))
        if family not in GRIDS:
            raise PlanError(f"no grid says where {family} is measured; there are {', '.join(GRIDS)}")
        grid = GRIDS[family]
        fitted = tuple(
            p for i, dtype in enumerate(dtypes) for p in _training(op, dtype, i, len(dtypes), grid, seed, limits)
        )
        if not fitted:
            raise PlanError(f"no geometry of {op} fits {memory_bytes} bytes and {max_elements} elements ({regime})")
        training += fitted
        validation += _inventory(op, dtypes, grid, seed, limits, fitted)
    return Plan(
        tuple(ops),
        tuple(dtypes),
        seed,
        regime,
        target.sm_count,
        memory_bytes,
        max_elements,
        tuple(training),
        tuple(validation),
    )


@frozen
class _Limits:
    sm_count: int
    memory_bytes: int
    max_elements: int
    regime: str

    def fits(self, rows: int, width: int, dtype: str, max_elements: int | None = None) -> bool:
        tensor_bytes = rows * width * storage(dtype).bytes
        cold = self.regime == "cold" and 2 * tensor_bytes < COLD_FOOTPRINT_BYTES
        in_limits = rows * width <= (max_elements or self.max_elements) and BUFFERS * tensor_bytes <= self.memory_bytes
        return in_limits and not cold


def _training(op: str, dtype: str, turn: int, turns: int, grid: Grid, seed: int, limits: _Limits) -> Iterator[Planned]:
    """Spread the picks of every width over the row counts used least so far; add the corners of the domain."""
    used: dict[int, int] = dict.fromkeys(grid.training_rows(limits.sm_count), 0)
    for place, width in enumerate(reversed(grid.widths)):
        possible = [rows for rows in used if limits.fits(rows, width, dtype)]
        if not possible:
            continue
        corners = {possible[0]} if width == min(grid.widths) else set()
        if place % turns == turn:
            corners.add(possible[-1])
        others = [rows for rows in possible if rows not in corners]
        others.sort(key=lambda rows, width=width: (used[rows], _draw(seed, op, dtype, rows, width)))  # type: ignore[misc]
        for rows in sorted(corners | set(others[: grid.picks])):
            used[rows] += 1
            yield Planned(op, dtype, rows, width, {"set": "training"})


def _inventory(
    op: str, dtypes: Sequence[str], grid: Grid, seed: int, limits: _Limits, training: Iterable[Planned]
) -> Iterator[Planned]:
    """Fill every element stratum alike, its row strata in turn, by the width strata's counts."""
    taken = {planned.key for planned in training}
    span = (min(grid.widths), max(grid.widths))
    for elements in ELEMENTS:
        order = [stratum for stratum in grid.inventory for _ in range(stratum.count)]
        slots = sorted(enumerate(order), key=lambda slot: _draw(seed, op, elements.name, slot[0]))
        possible = [r for r in ROWS if _meets(r, elements, grid, dtypes[0], limits)]
        for turn, (slot, widths) in enumerate(slots if possible else []):
            dtype = dtypes[turn // len(possible) % len(dtypes)]
            first = turn % len(possible)
            for rows in (*possible[first:], *possible[:first]):
                label = (seed, op, elements.name, rows.name, widths.name, slot)
                found = _one(op, dtype, elements, rows, widths, label, limits, span, taken)
                if found is not None:
                    taken.add(found.key)
                    yield found
                    break


def _one(
    op: str,
    dtype: str,
    elements: ElementStratum,
    rows: RowStratum,
    widths: WidthStratum,
    label: tuple[object, ...],
    limits: _Limits,
    span: tuple[int, int],
    taken: set[tuple[str, str, int, int]],
) -> Planned | None:
    """Draw a geometry of the three strata that is in no other place of the plan, or None where there is none."""
    for count in sorted(rows.rows(limits.sm_count), key=lambda count: _draw(*label, count)):
        low, high = max(span[0], -(-elements.low // count)), min(span[1], (elements.high - 1) // count)
        fitting = [w for w in widths.widths if low <= w <= high]
        start = _draw(*label, count, "width") % max(1, len(fitting))
        for _, width in zip(range(16), cycle(fitting[start:] + fitting[:start]), strict=False):
            planned = (op, dtype, count, width)
            if planned not in taken and limits.fits(count, width, dtype, limits.max_elements // 2):
                stratum = {"elements": elements.name, "rows": rows.name, "width": widths.name}
                return Planned(op, dtype, count, width, stratum)
    return None


def _meets(rows: RowStratum, elements: ElementStratum, grid: Grid, dtype: str, limits: _Limits) -> bool:
    """Return whether any training width and a row count of the stratum meet in the element stratum."""
    return any(
        elements.low <= count * width < elements.high and limits.fits(count, width, dtype, limits.max_elements // 2)
        for count in rows.rows(limits.sm_count)
        for width in grid.widths
    )


def _draw(*label: object) -> int:
    """Return a number that looks random and depends on the label alone: no generator whose stream could change."""
    return int.from_bytes(hashlib.sha256("|".join(map(str, label)).encode()).digest()[:8])
