"""The geometry record: one measured point with its raw samples, as frozen values that docs/evidence.md describes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any

from attrs import field, fields, frozen

from calibration.errors import RecordError
from calibration.extents import extents, shape_text
from calibration.measurement import (
    COMPILED,
    COPY,
    CUB_SCAN,
    CUPY,
    DRIFTED,
    EAGER,
    FIRST_ROUND,
    FLOOR,
    FLOORS,
    KINDS,
    LIGER,
    MEASURED,
    PEER,
    PLAIN,
    POLICY,
    QUACK,
    RECIPE,
    STATUSES,
    TIMED_OUT,
    UNSTABLE,
    WRONG,
    Joined,
    Measurement,
    geometry_status,
    is_ambiguous,
    joined_from_json,
    judge_keys,
    measurement_from_json,
    one_of,
    original_drift,
    plain_name,
    timed_status,
)
from calibration.stats import DRIFT, Timing, judge_samples
from features.program import OPS, Program, program_of
from features.proof import form_of
from features.workload import Workload
from kernels.dtypes import STORAGE
from kernels.identity import digest
from kernels.recipes import original_of
from policy.judging import REGIMES

__all__ = [
    "COMPILED",
    "COPY",
    "CUB_SCAN",
    "CUPY",
    "DRIFTED",
    "EAGER",
    "FLOOR",
    "FLOORS",
    "GEOMETRY_SCHEMA",
    "KINDS",
    "LIGER",
    "MEASURED",
    "PEER",
    "PLAIN",
    "POLICY",
    "QUACK",
    "RECIPE",
    "RUNS",
    "STATUSES",
    "TIMED_OUT",
    "TRAINING",
    "UNSTABLE",
    "VALIDATION",
    "WRONG",
    "Geometry",
    "Joined",
    "Measurement",
    "Pair",
    "geometry_from_json",
    "geometry_status",
    "inconsistencies",
    "is_ambiguous",
    "measurement_from_json",
    "original_drift",
    "plain_name",
    "timed_status",
]

GEOMETRY_SCHEMA = "rowsmith.geometry/1"
TRAINING, VALIDATION = "training", "validation"
RUNS = {TRAINING: (0,), VALIDATION: (1, 2)}


@frozen
class Pair:
    """Two timings to compare; `across` tells that no round holds both."""

    one: Timing | None
    other: Timing | None
    across: bool = False

    @property
    def ratio(self) -> float | None:
        """The median of the first over that of the second, None where one is missing."""
        return None if self.one is None or self.other is None else self.one.median_us / self.other.median_us


@frozen(slots=False)
class Geometry:
    """One measured point: whole or absent, named by its digest. `joined` holds the rounds after the first."""

    purpose: str
    run: int
    regime: str
    form: str
    program: list[Any]
    rows: int
    width: int
    dtype: str
    stratum: Mapping[str, Any]
    seed: int
    attempt: int
    drift: float | None
    status: str
    ambiguous: bool
    baseline: Mapping[str, Any] | None
    measurements: tuple[Measurement, ...] = field(repr=False)
    joined: tuple[Joined, ...] = field(default=(), repr=False)
    inner: int = 1

    def __attrs_post_init__(self) -> None:
        if type(self.inner) is not int or self.inner < 1:
            raise RecordError(f"{self.form} {self.dtype}: inner is {self.inner!r}, not a whole number of at least 1")
        where = self.label
        one_of("purpose", self.purpose, RUNS, where)
        one_of("run", self.run, RUNS[self.purpose], where)
        one_of("regime", self.regime, REGIMES, where)
        one_of("dtype", self.dtype, STORAGE, where)
        one_of("status", self.status, STATUSES, where)
        for name in ("rows", "width"):
            if not isinstance(extent := getattr(self, name), int) or isinstance(extent, bool) or extent < 0:
                raise RecordError(f"{where}: {name} is {extent!r}, not a whole number of at least 0")
        if self.rows % self.inner:
            raise RecordError(f"{where}: {self.rows} rows are no whole images of {self.inner}")
        if self.form != form_of(self.workload.program):
            raise RecordError(f"{where}: the program's form is {form_of(self.workload.program)}")
        for part in (self.measurements, *(later.again for later in self.joined)):
            names = [m.name for m in part]
            if len(set(names)) != len(names):
                raise RecordError(f"{where}: a candidate is measured twice in one record: {', '.join(names)}")
        if self.baseline is not None:
            judge_samples(self.baseline["samples_ns"], self.baseline["launches"], f"{where} baseline")

    @property
    def label(self) -> str:
        """What people call the point: form, dtype, rows and width, and the run of a validation."""
        run = f" run {self.run}" if self.run else ""
        return f"{self.form} {self.dtype} {shape_text(self.rows, self.width, self.inner)}{run}"

    @property
    def key(self) -> tuple[str, str, *tuple[int, ...]]:
        """What canonical order sorts by: form, dtype and extents."""
        return self.form, self.dtype, *extents(self.rows, self.width, self.inner)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the stored document."""
        return digest(self.to_json())

    @cached_property
    def workload(self) -> Workload:
        """The workload that was measured: contiguous rows at 16-byte aligned bases."""
        return Workload(_program(self.program, self.dtype), self.rows, self.width, self.width, inner=self.inner)

    @cached_property
    def by_name(self) -> Mapping[str, Measurement]:
        """Every measurement, by candidate."""
        return {m.name: m for m in self.measurements}

    @cached_property
    def by_round(self) -> Mapping[tuple[str, int], Measurement]:
        """Every measurement that is fit for use, those taken again included, by candidate and round."""
        held = {(m.name, m.in_round): m for m in self.measurements}
        again = {(m.name, later.number): m for later in self.joined for m in later.again}
        return {key: m for key, m in {**again, **held}.items() if m.status == MEASURED}

    def timing(self, name: str) -> Timing | None:
        """Return the figures of a candidate that was measured and is fit for use, or None."""
        found = self.by_name.get(name)
        return found.timing if found is not None and found.status == MEASURED else None

    def pair(self, one: str, other: str) -> Pair:
        """Return two candidates' figures of the last round that holds both, else of the rounds that hold each."""
        rounds = {number for name, number in self.by_round if name == one}
        for number in sorted(rounds, reverse=True):
            if (other, number) in self.by_round:
                return Pair(self.by_round[one, number].timing, self.by_round[other, number].timing)
        found = self.timing(one), self.timing(other)
        return Pair(*found, across=None not in found)

    def recipes(self) -> tuple[Measurement, ...]:
        """Return the recipes that were measured in graphs and are fit for use; no peer, pick or plain launch is one."""
        return tuple(m for m in self.measurements if m.kind == RECIPE and m.status == MEASURED and m.name != POLICY)

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is stored; `joined` only where a round did, `inner` only where rows interleave."""
        document = {name: getattr(self, name) for name in _GEOMETRY if name not in _OPTIONAL}
        later: dict[str, Any] = {"joined": [part.to_json() for part in self.joined]} if self.joined else {}
        if self.inner != 1:
            later["inner"] = self.inner
        measurements = [m.to_json() for m in self.measurements]
        return {"schema": GEOMETRY_SCHEMA, **document, "measurements": measurements, **later}


_GEOMETRY = tuple(f.name for f in fields(Geometry))
_OPTIONAL = ("joined", "inner")


def geometry_from_json(document: Mapping[str, Any]) -> Geometry:
    """Read a record, or raise `RecordError` naming what is wrong with it."""
    try:
        if document["schema"] != GEOMETRY_SCHEMA:
            raise RecordError(f"schema {document['schema']!r} is not {GEOMETRY_SCHEMA}; use a matching release")
        facts = {k: v for k, v in document.items() if k != "schema"}
        judge_keys(facts, _GEOMETRY, _OPTIONAL, "record")
        facts["measurements"] = tuple(measurement_from_json(part) for part in facts["measurements"])
        facts["joined"] = tuple(joined_from_json(part) for part in facts.get("joined", ()))
        return Geometry(**facts)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"record is malformed: {type(error).__name__} {error}") from error


Inconsistency = tuple[str, Any, Any]


def inconsistencies(record: Geometry) -> tuple[Inconsistency, ...]:
    """Return (what, as the samples say, as the record says) wherever the two differ."""
    found = list(_candidates(record.measurements, ""))
    original = record.by_name.get(original_of(record.form).id)
    found += _moved("drift", original_drift(original), record.drift)
    if record.status in (MEASURED, DRIFTED):
        status = "without an original" if original is None else geometry_status(original)
        if status != record.status:
            found.append(("status", status, record.status))
    if (ambiguous := is_ambiguous(record.measurements)) != record.ambiguous:
        found.append(("ambiguous", ambiguous, record.ambiguous))
    return (*found, *_rounds(record, original))


def _candidates(measurements: Iterable[Measurement], where: str) -> Iterator[Inconsistency]:
    for m in measurements:
        if m.status == MEASURED and timed_status(m.samples_ns, m.launches, m.throttled) != MEASURED:
            yield f"{where}{m.name} status", UNSTABLE, m.status
        if m.kind == RECIPE and m.samples_ns and not _passed(m.check):
            yield f"{where}{m.name} check", "one that passed", m.check
        if m.kind == RECIPE and m.status == WRONG and _passed(m.check):
            yield f"{where}{m.name} check", "one that failed", m.check


def _rounds(record: Geometry, first: Measurement | None) -> Iterator[Inconsistency]:
    """What joined later did so beside an original that was as it was, and every measurement is of a known round."""
    numbers = [later.number for later in record.joined]
    if numbers != sorted(set(numbers)):
        yield "joined rounds", sorted(set(numbers)), numbers
    for m in record.measurements:
        if m.in_round not in (FIRST_ROUND, *numbers):
            yield f"{m.name} round", f"one of {[FIRST_ROUND, *numbers]}", m.in_round
    for later in record.joined:
        where = f"round {later.number} "
        yield from _candidates(later.again, where)
        original = next((m for m in later.again if first is not None and m.name == first.name), None)
        if original is None or first is None or MEASURED not in (original.status, first.status):
            yield f"{where}original", "measured again", None if original is None else original.status
            continue
        if original.source != first.source:
            yield f"{where}original source", first.source, original.source
        yield from _moved(f"{where}drift", original_drift(original), later.drift)
        yield from _moved(f"{where}moved", original.timing.median_us / first.timing.median_us - 1, later.moved)
        for name in ("drift", "moved"):
            if (value := getattr(later, name)) is None or not abs(value) <= DRIFT:
                yield f"{where}{name}", f"at most {DRIFT}", value


def _moved(name: str, again: float | None, stored: float | None) -> Iterator[Inconsistency]:
    if again != stored and (again is None or stored is None or not abs(again - stored) <= 1e-12):
        yield name, again, stored


def _passed(check: Mapping[str, Any] | None) -> bool:
    """Return whether a check says, in every field, that the output was right: only then may a recipe be timed."""
    if check is None:
        return False
    said = check["right"] is True and check["guards_and_input_intact"] is True
    return said and check["worst_share"] <= 1 and check["bad_finite"] == check["bad_special"] == 0


@cache
def _built_in(dtype: str) -> tuple[Program, ...]:
    return tuple(program_of(op, dtype) for op in OPS)


def _program(tree: list[Any], dtype: str) -> Program:
    for program in _built_in(dtype):
        if program.tree() == tree:
            return program
    raise RecordError(f"program {str(tree)[:120]} for {dtype} is none that this release can build")
