"""Samples become figures only where they can: nothing empty, zero, negative or NaN ever enters a median."""

import math
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.errors import RecordError
from calibration.records import Measurement, timed_status
from calibration.stats import drift, improves, jumps, quantile, regresses, same, timing

SAMPLES = st.lists(st.integers(1, 10**9), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ((), "empty"),
        ((1000, 0, 1000), "sample 1 is 0"),
        ((1000, -5), "sample 1 is -5"),
        ((math.nan, 1000), "sample 0 is nan"),
        ((1000.0,), "sample 0 is 1000.0"),
        ((True,), "sample 0 is True"),
    ],
)
def test_a_sample_set_without_a_figure_is_an_error_that_says_why(samples: Any, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        timing(samples, 10)
    with pytest.raises(RecordError, match=said):
        Measurement("scan.original", "recipe", "measured", 10, samples)


@given(SAMPLES, st.integers(1, 1000))
def test_the_median_is_the_middle_replay_over_its_launches(samples: list[int], launches: int) -> None:
    figures = timing(samples, launches)
    assert figures.median_us == pytest.approx(median(samples) / launches / 1000)
    in_order = (figures.minimum_us, figures.median_us, figures.third_quartile_us)
    assert list(in_order) == sorted(in_order)
    assert figures.minimum_us == min(samples) / (launches * 1000)


@given(SAMPLES.filter(lambda s: len(s) >= 4), st.randoms())
def test_figures_do_not_depend_on_the_order_of_the_rounds(samples: list[int], rng: Any) -> None:
    shuffled = list(samples)
    rng.shuffle(shuffled)
    assert timing(samples, 7) == timing(shuffled, 7)


def test_throttled_samples_are_counted_and_leave_the_figures_alone() -> None:
    figures = timing((100, 900, 101, 950, 102), 1, (1, 3))
    assert (figures.count, figures.throttled, figures.third_quartile_us) == (3, 2, 0.1015)
    assert figures.median_us == 0.101


def test_too_much_throttling_is_unstable_and_never_a_figure() -> None:
    samples = (100, 900, 950)
    assert timed_status(samples, 1, (1, 2)) == "unstable"
    with pytest.raises(RecordError, match="2 of 3 samples are throttled"):
        Measurement("scan.original", "recipe", "measured", 1, samples, (1, 2))
    for marks in ((3,), (0, 0), (-1,)):
        with pytest.raises(RecordError, match="distinct indices"):
            timing(samples, 1, marks)


def test_two_separated_levels_are_a_jump_and_noise_or_an_outlier_is_not() -> None:
    assert jumps([1000 + i for i in range(13)] + [1300 + i for i in range(12)])
    assert timed_status(tuple([1000 + i for i in range(13)] + [1300 + i for i in range(12)]), 1) == "unstable"
    assert not jumps([1000 + 8 * i for i in range(25)])
    assert not jumps([1000 + i for i in range(24)] + [5000])
    assert not jumps([1000] * 13 + [1020] * 12)


def test_drift_is_the_second_median_over_the_first() -> None:
    assert drift((100, 101, 102), (103, 103, 103)) == pytest.approx(103 / 101 - 1)


@given(SAMPLES, SAMPLES)
def test_two_timings_are_the_same_or_one_is_slower_never_both(one: list[int], other: list[int]) -> None:
    a, b = timing(one, 1), timing(other, 1)
    assert same(a, b) == same(b, a)
    assert same(a, a)
    assert not (regresses(a, b) and (same(a, b) or regresses(b, a)))
    assert improves(a, b) == regresses(b, a)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_a_quantile_lies_between_the_extremes(values: list[float]) -> None:
    ordered = sorted(values)
    assert quantile(ordered, 0) == ordered[0]
    assert quantile(ordered, 1) == ordered[-1]
    assert ordered[0] <= quantile(ordered, 0.3) <= ordered[-1]
