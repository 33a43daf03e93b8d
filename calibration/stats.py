"""Figures of timings: medians, quartiles, the interval that tells two recipes apart, levels, geometric means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from attrs import frozen

from calibration.errors import RecordError

# A difference of less than 3 % is no regression, one of more than 2 % between two timings of the original at one point
# is drift: both lie well above the 0.25 % that an event pair, good to half a microsecond, resolves of a 200 us replay.
REGRESSION = 1.03
DRIFT = 0.02
# The automatic pick and the same recipe forced run one kernel on the same buffers, as the original and its recheck do:
# they agree where their medians are as close as the original must stay to itself, and what is left is noise.
NOISE = DRIFT
# Two levels less than 5 % apart cannot turn an admission by themselves. A level is not called one below a fifth of
# the samples: single slow replays are what the median and the third quartile are there for.
LEVEL_STEP = 0.05
LEVEL_SHARE = 0.2
# With fewer unthrottled samples than half, what is left says more about the throttling than about the kernel.
CLEAN_SHARE = 0.5
_NS_PER_US = 1000


@frozen
class Timing:
    """What the clean samples of a measurement say of one launch, in microseconds. `throttled` counts those left out."""

    count: int
    throttled: int
    minimum_us: float
    median_us: float
    third_quartile_us: float


def judge_samples(samples_ns: Sequence[int], launches: int, what: str) -> None:
    """Raise `RecordError` unless there are samples and each is a positive whole number of nanoseconds."""
    if not _is_whole(launches) or launches < 1:
        raise RecordError(f"{what}: launches is {launches!r}; a replay holds at least one launch")
    if not samples_ns:
        raise RecordError(f"{what}: the sample set is empty; measure again, or record why it was not timed")
    for index, sample in enumerate(samples_ns):
        if not _is_whole(sample) or sample <= 0:
            raise RecordError(f"{what}: sample {index} is {sample!r}, not a positive whole number of nanoseconds")


def timing(samples_ns: Sequence[int], launches: int, throttled: Sequence[int] = (), what: str = "samples") -> Timing:
    """Return the figures of one launch from whole replays.

    Parameters
    ----------
    samples_ns : nanoseconds of each replay, in the order of the rounds.
    launches : launches a replay.
    throttled : indices of samples taken while the clocks were held back. They stay in the record and are counted in
        the result; minimum, median and quartile are of the other samples.

    Raises
    ------
    RecordError : an empty, zero, negative or non-integer sample set, an index that marks no sample, or fewer clean
        samples than half of all.
    """
    judge_samples(samples_ns, launches, what)
    marked = set(throttled)
    if len(marked) != len(throttled) or not all(_is_whole(i) and 0 <= i < len(samples_ns) for i in marked):
        raise RecordError(f"{what}: throttled {list(throttled)} must be distinct indices below {len(samples_ns)}")
    clean = sorted(sample for index, sample in enumerate(samples_ns) if index not in marked)
    if len(clean) < CLEAN_SHARE * len(samples_ns):
        raise RecordError(
            f"{what}: {len(marked)} of {len(samples_ns)} samples are throttled; let it cool and measure again"
        )
    unit = launches * _NS_PER_US
    low, middle, third = (quantile(clean, share) / unit for share in (0.0, 0.5, 0.75))
    return Timing(len(clean), len(marked), low, middle, third)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values, interpolated linearly between neighbours (Hyndman and Fan's type 7)."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def same(one: Timing, other: Timing) -> bool:
    """Return whether the [minimum, third quartile] intervals overlap, so that the two cannot be told apart."""
    return one.minimum_us <= other.third_quartile_us and other.minimum_us <= one.third_quartile_us


def regresses(picked: Timing, original: Timing) -> bool:
    """Return whether the pick is slower than the original by more than 3 %, with separated intervals."""
    return picked.median_us > REGRESSION * original.median_us and picked.minimum_us > original.third_quartile_us


def improves(picked: Timing, original: Timing) -> bool:
    """Return whether the pick is faster than the original by more than 3 %, with separated intervals."""
    return regresses(original, picked)


def jumps(samples_ns: Sequence[int]) -> bool:
    """Return whether the samples lie on two separated levels.

    Sorted, they split at a gap of more than 5 % of the lower level that is wider than twice the interquartile range
    of either side, with at least a fifth of the samples on each.
    """
    ordered = sorted(samples_ns)
    least = max(3, math.ceil(LEVEL_SHARE * len(ordered)))
    for split in range(least, len(ordered) - least + 1):
        low, high = ordered[:split], ordered[split:]
        gap = high[0] - low[-1]
        if gap > LEVEL_STEP * quantile(low, 0.5) and gap > 2 * max(_spread(low), _spread(high)):
            return True
    return False


def drift(samples_ns: Sequence[int], recheck_ns: Sequence[int]) -> float:
    """Return the second median of the original over its first, minus one; both replays hold the same launches."""
    judge_samples(samples_ns, 1, "original")
    judge_samples(recheck_ns, 1, "original's recheck")
    return quantile(sorted(recheck_ns), 0.5) / quantile(sorted(samples_ns), 0.5) - 1


def geomean(values: Iterable[float]) -> float | None:
    """Return the geometric mean, or None of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def spread(values: Iterable[float]) -> dict[str, float | None]:
    """Return the geometric mean, 95th percentile and largest of ratios."""
    ordered = sorted(values)
    return {
        "geomean": geomean(ordered),
        "p95": quantile(ordered, 0.95) if ordered else None,
        "worst": ordered[-1] if ordered else None,
    }


def _spread(ordered: Sequence[int]) -> float:
    return quantile(ordered, 0.75) - quantile(ordered, 0.25)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
