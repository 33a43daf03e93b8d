"""One candidate's samples at one geometry, and the rounds that joined a record later, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from attrs import field, fields, frozen

from calibration.errors import RecordError
from calibration.stats import DRIFT, Timing, drift, judge_samples, jumps, same, timing

RECIPE, PEER, FLOOR, POLICY, PLAIN = "recipe", "peer", "floor", "policy", "plain"
KINDS = (RECIPE, PEER, FLOOR, POLICY, PLAIN)
# The names of what is no recipe: the automatic pick is named as its kind is.
EAGER, COMPILED, CUPY, LIGER, QUACK = "torch.eager", "torch.compile", "cupy", "liger", "quack"
# What is no peer: the same bytes read and written, and CUB's scan of all elements as one row.
FLOORS = COPY, CUB_SCAN = "copy", "cub.device_scan"
MEASURED, UNSTABLE, DRIFTED, WRONG, TIMED_OUT = "measured", "unstable", "drifted", "wrong", "timed_out"
FIRST_ROUND = 1

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
    measurement with fewer clean samples than half is `unstable`, never `measured`. `round` is that of a measurement
    which joined its record later (`Joined`), None where it is of the first.
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
    round: int | None = None

    def __attrs_post_init__(self) -> None:
        one_of("kind", self.kind, KINDS, self.name)
        one_of("status", self.status, STATUSES, self.name)
        timed = STATUSES[self.status][1]
        if timed is False and self.samples_ns:
            raise RecordError(
                f"{self.name}: status {self.status} is not timed, yet there are {len(self.samples_ns)} samples"
            )
        if timed or self.samples_ns:
            judge_samples(self.samples_ns, self.launches, self.name)
        if self.recheck_ns is not None:
            judge_samples(self.recheck_ns, self.launches, f"{self.name} recheck")
        if self.round is not None:
            judge_round(self.round, self.name)
        if self.status == MEASURED:
            self.timing  # noqa: B018 - refuses marks that leave too few clean samples

    @cached_property
    def timing(self) -> Timing:
        """The figures of one launch, or `RecordError` where there are no samples to take them from."""
        return timing(self.samples_ns, self.launches, self.throttled, self.name)

    @property
    def in_round(self) -> int:
        """The number of the round that it was taken in."""
        return self.round or FIRST_ROUND

    def to_json(self) -> dict[str, Any]:
        """Return the measurement as it is stored; recheck, pick, selection and round only where there are any."""
        document = {name: _plain(getattr(self, name)) for name in _MEASUREMENT}
        return {k: v for k, v in document.items() if v is not None or k not in _OPTIONAL}


_MEASUREMENT = tuple(f.name for f in fields(Measurement))
_OPTIONAL = ("recheck_ns", "picked", "selection", "round")


@frozen(slots=False)
class Joined:
    """A later round of a record: candidates that came later, timed with the original before and after (A, B, A).

    Attributes
    ----------
    number : 2 for the first that joined; its measurements carry it.
    moved : the original's median of this round over that of the first, minus one; at most 2 % either way.
    again : what the record holds from an earlier round and was timed again: the original with its recheck, and the
        recipe that the automatic pick ran, so that the two are of one round.
    """

    number: int
    seed: int
    attempt: int
    moved: float
    drift: float | None
    baseline: Mapping[str, Any] | None
    again: tuple[Measurement, ...] = field(repr=False)

    def __attrs_post_init__(self) -> None:
        judge_round(self.number, "joined")
        if self.baseline is not None:
            judge_samples(self.baseline["samples_ns"], self.baseline["launches"], f"round {self.number} baseline")

    def to_json(self) -> dict[str, Any]:
        """Return the round as it is stored."""
        document = {name: getattr(self, name) for name in _JOINED}
        return {**document, "again": [m.to_json() for m in self.again]}


_JOINED = tuple(f.name for f in fields(Joined))


def measurement_from_json(document: Mapping[str, Any]) -> Measurement:
    """Read a measurement, or raise `RecordError`."""
    judge_keys(document, _MEASUREMENT, _OPTIONAL, "measurement")
    lists = ("samples_ns", "throttled", "recheck_ns")
    facts: dict[str, Any] = {k: tuple(v) if k in lists else v for k, v in document.items()}
    return Measurement(**facts)


def joined_from_json(document: Mapping[str, Any]) -> Joined:
    """Read a later round, or raise `RecordError`."""
    judge_keys(document, _JOINED, (), "joined round")
    return Joined(**{**document, "again": tuple(measurement_from_json(part) for part in document["again"])})


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


def ordered(measurements: Iterable[Measurement], original: str) -> tuple[Measurement, ...]:
    """Return measurements as a record holds them: recipes first, and the original before them."""
    return tuple(sorted(measurements, key=lambda m: (m.kind != RECIPE, m.name != original, m.name)))


def plain_name(name: str) -> str:
    """Return what a candidate's plain launches are named."""
    return f"{name}.{PLAIN}"


def one_of(name: str, value: object, known: Iterable[object], where: str) -> None:
    """Raise `RecordError` unless a value is a known one."""
    if isinstance(value, bool) or value not in tuple(known):
        raise RecordError(f"{where}: {name} {value!r} is not one of {', '.join(map(str, known))}")


def judge_round(number: object, where: str) -> None:
    """Raise `RecordError` unless a number is that of a round after the first."""
    if not isinstance(number, int) or isinstance(number, bool) or number <= FIRST_ROUND:
        raise RecordError(f"{where}: round is {number!r}; a later round is 2 or more")


def judge_keys(document: Mapping[str, Any], known: tuple[str, ...], optional: tuple[str, ...], what: str) -> None:
    """Raise `RecordError` for keys that are unknown, missing, or null where they are left out."""
    unknown = sorted(set(document) - set(known))
    missing = [name for name in known if name not in document and name not in optional]
    empty = [name for name in optional if name in document and document[name] is None]
    if unknown or missing or empty:
        raise RecordError(
            f"{what} has unknown keys {unknown}, lacks {missing}, and must leave out rather than null {empty}"
        )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
