"""The geometry record: one measured point with its raw samples, as frozen values that docs/evidence.md describes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import Any

from attrs import field, fields, frozen

from calibration.errors import RecordError
from calibration.stats import DRIFT, Timing, drift, judge_samples, jumps, same, timing
from features.program import OPS, Program, program_of
from features.proof import form_of
from features.workload import Workload
from kernels.dtypes import STORAGE
from kernels.identity import digest
from kernels.recipes import original_of
from policy.judging import REGIMES

GEOMETRY_SCHEMA = "rowsmith.geometry/1"
TRAINING, VALIDATION = "training", "validation"
RUNS = {TRAINING: (0,), VALIDATION: (1, 2)}
RECIPE, PEER, FLOOR, POLICY, PLAIN = "recipe", "peer", "floor", "policy", "plain"
KINDS = (RECIPE, PEER, FLOOR, POLICY, PLAIN)
# The names of what is no recipe: the automatic pick is named as its kind is.
EAGER, COMPILED, COPY = "torch.eager", "torch.compile", "copy"
MEASURED, UNSTABLE, DRIFTED, WRONG, TIMED_OUT = "measured", "unstable", "drifted", "wrong", "timed_out"

# What each end of a point or a measurement means, and whether samples belong to it (None: some may have been taken).
STATUSES: dict[str, tuple[str, bool | None]] = {
    MEASURED: ("timed, and fit for use", True),
    UNSTABLE: ("two separated levels of time with unchanged source and receipt, or mostly throttled", True),
    DRIFTED: ("the original's recheck differs by more than 2 %, twice", True),
    WRONG: ("the check failed; not timed", False),
    "failed_compile": ("no kernel; the message says how", False),
    "failed_launch": ("the launch failed; the message says how", None),
    "excluded": ("the receipt excludes it; not timed", False),
    TIMED_OUT: ("not finished within the point's limit; the samples taken until then are kept", None),
}


@frozen(slots=False)
class Measurement:
    """One candidate at one geometry. A launch took `samples_ns[i] / launches`; only the original has `recheck_ns`.

    `throttled` marks samples by index: they are kept, counted and left out of every figure (`stats.timing`). A
    measurement with fewer clean samples than half is `unstable`, never `measured`.
    """

    name: str
    kind: str
    status: str
    launches: int = 0
    samples_ns: tuple[int, ...] = ()
    throttled: tuple[int, ...] = ()
    message: str | None = None
    source: str | None = None
    check: Mapping[str, Any] | None = None
    recheck_ns: tuple[int, ...] | None = None
    picked: str | None = None
    selection: str | None = None

    def __attrs_post_init__(self) -> None:
        _one_of("kind", self.kind, KINDS, self.name)
        _one_of("status", self.status, STATUSES, self.name)
        timed = STATUSES[self.status][1]
        if timed is False and self.samples_ns:
            raise RecordError(
                f"{self.name}: status {self.status} is not timed, yet there are {len(self.samples_ns)} samples"
            )
        if timed or self.samples_ns:
            judge_samples(self.samples_ns, self.launches, self.name)
        if self.recheck_ns is not None:
            judge_samples(self.recheck_ns, self.launches, f"{self.name} recheck")
        if self.status == MEASURED:
            self.timing  # noqa: B018 - refuses marks that leave too few clean samples

    @cached_property
    def timing(self) -> Timing:
        """The figures of one launch, or `RecordError` where there are no samples to take them from."""
        return timing(self.samples_ns, self.launches, self.throttled, self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the measurement as it is stored; recheck, pick and selection only where there are any."""
        document = {name: _plain(getattr(self, name)) for name in _MEASUREMENT}
        return {k: v for k, v in document.items() if v is not None or k not in _OPTIONAL}


_MEASUREMENT = tuple(f.name for f in fields(Measurement))
_OPTIONAL = ("recheck_ns", "picked", "selection")


@frozen(slots=False)
class Geometry:
    """One measured point: whole or absent, named by its digest."""

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

    def __attrs_post_init__(self) -> None:
        where = self.label
        _one_of("purpose", self.purpose, RUNS, where)
        _one_of("run", self.run, RUNS[self.purpose], where)
        _one_of("regime", self.regime, REGIMES, where)
        _one_of("dtype", self.dtype, STORAGE, where)
        _one_of("status", self.status, STATUSES, where)
        for name in ("rows", "width"):
            if not isinstance(extent := getattr(self, name), int) or isinstance(extent, bool) or extent < 0:
                raise RecordError(f"{where}: {name} is {extent!r}, not a whole number of at least 0")
        if self.form != form_of(self.workload.program):
            raise RecordError(f"{where}: the program's form is {form_of(self.workload.program)}")
        names = [m.name for m in self.measurements]
        if len(set(names)) != len(names):
            raise RecordError(f"{where}: a candidate is measured twice in one record: {', '.join(names)}")
        if self.baseline is not None:
            judge_samples(self.baseline["samples_ns"], self.baseline["launches"], f"{where} baseline")

    @property
    def label(self) -> str:
        """What people call the point: form, dtype, rows and width, and the run of a validation."""
        run = f" run {self.run}" if self.run else ""
        return f"{self.form} {self.dtype} {self.rows} x {self.width}{run}"

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What canonical order sorts by: form, dtype, rows, width."""
        return self.form, self.dtype, self.rows, self.width

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the stored document."""
        return digest(self.to_json())

    @cached_property
    def workload(self) -> Workload:
        """The workload that was measured: contiguous rows at 16-byte aligned bases."""
        return Workload(_program(self.program, self.dtype), self.rows, self.width, self.width)

    @cached_property
    def by_name(self) -> Mapping[str, Measurement]:
        """Every measurement, by candidate."""
        return {m.name: m for m in self.measurements}

    def timing(self, name: str) -> Timing | None:
        """Return the figures of a candidate that was measured and is fit for use, or None."""
        found = self.by_name.get(name)
        return found.timing if found is not None and found.status == MEASURED else None

    def recipes(self) -> tuple[Measurement, ...]:
        """Return the recipes that were measured in graphs and are fit for use; no peer, pick or plain launch is one."""
        return tuple(m for m in self.measurements if m.kind == RECIPE and m.status == MEASURED and m.name != POLICY)

    def to_json(self) -> dict[str, Any]:
        """Return the record as it is stored."""
        document = {name: getattr(self, name) for name in _GEOMETRY}
        return {"schema": GEOMETRY_SCHEMA, **document, "measurements": [m.to_json() for m in self.measurements]}


_GEOMETRY = tuple(f.name for f in fields(Geometry))


def measurement_from_json(document: Mapping[str, Any]) -> Measurement:
    """Read a measurement, or raise `RecordError`."""
    _keys(document, _MEASUREMENT, _OPTIONAL, "measurement")
    lists = ("samples_ns", "throttled", "recheck_ns")
    facts: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in document.items()}
    return Measurement(**facts)


def geometry_from_json(document: Mapping[str, Any]) -> Geometry:
    """Read a record, or raise `RecordError` naming what is wrong with it."""
    try:
        if document["schema"] != GEOMETRY_SCHEMA:
            raise RecordError(f"schema {document['schema']!r} is not {GEOMETRY_SCHEMA}; use a matching release")
        facts = {k: v for k, v in document.items() if k != "schema"}
        _keys(facts, _GEOMETRY, (), "record")
        facts["measurements"] = tuple(measurement_from_json(part) for part in facts["measurements"])
        return Geometry(**facts)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"record is malformed: {type(error).__name__} {error}") from error


def timed_status(samples_ns: tuple[int, ...], launches: int, throttled: tuple[int, ...] = ()) -> str:
    """Return `measured` or `unstable` for samples just taken; raise `RecordError` where they are none at all."""
    judge_samples(samples_ns, launches, "samples")
    marked = set(throttled)
    clean = [sample for index, sample in enumerate(samples_ns) if index not in marked]
    try:
        timing(samples_ns, launches, throttled)
    except RecordError:
        return UNSTABLE
    return UNSTABLE if jumps(clean) else MEASURED


def original_drift(original: Measurement | None) -> float | None:
    """Return the drift of an original that was timed twice, or None."""
    if original is None or not original.samples_ns or original.recheck_ns is None:
        return None
    return drift(original.samples_ns, original.recheck_ns)


def geometry_status(original: Measurement) -> str:
    """Return how a point ended: as its original did, or `drifted` where the recheck differs by more than 2 %."""
    moved = original_drift(original)
    return DRIFTED if original.status == MEASURED and moved is not None and abs(moved) > DRIFT else original.status


def is_ambiguous(measurements: Iterable[Measurement]) -> bool:
    """Return whether the fastest recipe cannot be separated from another one."""
    timings = [m.timing for m in measurements if m.kind == RECIPE and m.name != POLICY and m.status == MEASURED]
    fastest = min(timings, key=lambda t: t.median_us, default=None)
    return fastest is not None and any(t is not fastest and same(t, fastest) for t in timings)


def inconsistencies(record: Geometry) -> tuple[tuple[str, Any, Any], ...]:
    """Return (what, as the samples say, as the record says) wherever the two differ."""
    found: list[tuple[str, Any, Any]] = [
        (f"{m.name} status", UNSTABLE, m.status)
        for m in record.measurements
        if m.status == MEASURED and timed_status(m.samples_ns, m.launches, m.throttled) != MEASURED
    ]
    recipes = [m for m in record.measurements if m.kind == RECIPE]
    found += [(f"{m.name} check", "one that passed", m.check) for m in recipes if m.samples_ns and not _passed(m.check)]
    found += [
        (f"{m.name} check", "one that failed", m.check) for m in recipes if m.status == WRONG and _passed(m.check)
    ]
    original = record.by_name.get(original_of(record.form).id)
    moved = original_drift(original)
    if moved != record.drift and (moved is None or record.drift is None or abs(moved - record.drift) > 1e-12):
        found.append(("drift", moved, record.drift))
    if record.status in (MEASURED, DRIFTED):
        status = "without an original" if original is None else geometry_status(original)
        if status != record.status:
            found.append(("status", status, record.status))
    if (ambiguous := is_ambiguous(record.measurements)) != record.ambiguous:
        found.append(("ambiguous", ambiguous, record.ambiguous))
    return tuple(found)


def _passed(check: Mapping[str, Any] | None) -> bool:
    """Return whether a check says, in every field, that the output was right: only then may a recipe be timed."""
    if check is None:
        return False
    said = check["right"] is True and check["guards_and_input_intact"] is True
    return said and check["worst_share"] <= 1 and check["bad_finite"] == check["bad_special"] == 0


def plain_name(name: str) -> str:
    """Return what a candidate's plain launches are named."""
    return f"{name}.{PLAIN}"


@cache
def _built_in(dtype: str) -> tuple[Program, ...]:
    return tuple(program_of(op, dtype) for op in OPS)


def _program(tree: list[Any], dtype: str) -> Program:
    for program in _built_in(dtype):
        if program.tree() == tree:
            return program
    raise RecordError(f"program {str(tree)[:120]} for {dtype} is none that this release can build")


def _one_of(name: str, value: object, known: Iterable[object], where: str) -> None:
    if isinstance(value, bool) or value not in tuple(known):
        raise RecordError(f"{where}: {name} {value!r} is not one of {', '.join(map(str, known))}")


def _keys(document: Mapping[str, Any], known: tuple[str, ...], optional: tuple[str, ...], what: str) -> None:
    unknown = sorted(set(document) - set(known))
    missing = [name for name in known if name not in document and name not in optional]
    empty = [name for name in optional if name in document and document[name] is None]
    if unknown or missing or empty:
        raise RecordError(
            f"{what} has unknown keys {unknown}, lacks {missing}, and must leave out rather than null {empty}"
        )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
