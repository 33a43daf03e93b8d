"""The evaluator's predicate: its relative term scales with the candidate, and NaN are equal where that is asked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.channel_references import ATOL, RTOL, is_close
from kernels.channels import CHANNEL_NORMS
from kernels.reference import reference

NUMBERS = st.floats(-1e6, 1e6, width=32)


def close(one: float, other: float, *, equal_nan: bool = False) -> bool:
    return is_close(np, np.float32([one]), np.float32([other]), equal_nan=equal_nan)


def test_the_second_argument_scales() -> None:
    """A larger candidate may differ by more: up to 1.0002 of 1e4 + 1e-4, and 1.0001 the other way round."""
    reference, candidate = np.array([1e4]), np.array([1e4 + 1.00015])
    assert 1e4 * RTOL + ATOL < 1.00015 < (1e4 + 1.00015) * RTOL + ATOL
    assert is_close(np, reference, candidate)
    assert not is_close(np, candidate, reference)


@given(NUMBERS, NUMBERS)
def test_it_is_the_inequality(one: float, other: float) -> None:
    a, b = np.float32(one), np.float32(other)
    assert close(one, other) == bool(a == b or abs(a - b) <= ATOL + RTOL * abs(b))


@pytest.mark.parametrize("other", [0.0, math.inf, -math.inf, math.nan])
def test_nan_is_close_to_nothing_unless_it_is_asked_to_be_close_to_itself(other: float) -> None:
    assert not close(math.nan, other)
    assert not close(other, math.nan)
    assert close(math.nan, other, equal_nan=True) is math.isnan(other)


def test_infinities_are_close_to_themselves_alone() -> None:
    assert close(math.inf, math.inf)
    assert not close(math.inf, -math.inf)
    assert not close(math.inf, 3e38)
    assert not close(3e38, math.inf)


def test_one_element_decides() -> None:
    ones = np.ones((3, 4), np.float32)
    other = ones.copy()
    assert is_close(np, ones, other)
    other[2, 3] = 1.001
    assert not is_close(np, ones, other)


@pytest.mark.parametrize("form", CHANNEL_NORMS)
def test_a_reference_is_its_formula(form: str) -> None:
    """3 and -4: squares of 25, magnitudes of 7. Rows of zeros are NaN where nothing is added to them."""
    norm = CHANNEL_NORMS[form].norm
    expected = {"rms": math.sqrt(12.5 + 1e-5), "mean_abs": 3.5, "l2": 5.0}[norm]
    parameters = (1e-5,) if norm == "rms" else ()
    with np.errstate(invalid="ignore"):
        found, scale = reference(form, np, np.array([[3.0, -4.0], [0.0, 0.0]]), parameters)
    assert found[0].tolist() == [3 / expected, -4 / expected]
    assert np.isnan(found[1]).all() == (norm != "rms")
    assert scale[0].tolist() == [3 / expected, 4 / expected]
