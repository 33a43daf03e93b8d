"""References of reductions: NaN policies, zeros of either sign, means of what entered; extremes have no tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.recipes import original_of, recipe
from kernels.reductions import REDUCTIONS
from kernels.reference import BLOCK_ELEMENTS, Comparison, against, chain, compare, reference

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
NAN, INF = np.nan, np.inf
ROWS = np.array([[1.0, -2.0, 4.0, NAN], [-INF, -INF, -INF, -INF], [NAN, NAN, NAN, NAN], [INF, -INF, 1.0, 2.0]])
ANSWERS = {
    "reduce.sum": [NAN, -INF, NAN, NAN],
    "reduce.max": [NAN, -INF, NAN, INF],
    "reduce.min": [NAN, -INF, NAN, -INF],
    "map.divide_by_count.reduce.sum": [NAN, -INF, NAN, NAN],
    "reduce.sum.suppress": [3.0, -INF, 0.0, NAN],
    "reduce.max.suppress": [4.0, -INF, -INF, INF],
    "reduce.min.suppress": [-2.0, -INF, INF, -INF],
    "map.divide_by_count.reduce.sum.suppress": [1.0, -INF, NAN, NAN],
}


@pytest.mark.parametrize("form", REDUCTIONS)
def test_references_follow_the_policy(form: str) -> None:
    expected, scale = reference(form, np, ROWS)
    assert np.array_equal(expected[:, 0], ANSWERS[form], equal_nan=True)
    assert expected.shape == scale.shape == (4, 1)


def test_a_scale_is_what_entered() -> None:
    _, scale = reference("reduce.sum.suppress", np, ROWS[:1])
    assert scale.tolist() == [[7.0]]
    _, scale = reference("map.divide_by_count.reduce.sum.suppress", np, ROWS[:1])
    assert scale.tolist() == [[7.0 / 3]]
    _, scale = reference("map.divide_by_count.reduce.sum", np, np.array([[3.0, -5.0]]))
    assert scale.tolist() == [[4.0]]


@pytest.mark.parametrize("suffix", ["", ".suppress"])
@pytest.mark.parametrize(
    ("row", "largest", "least"),
    [
        ([-0.0, 0.0], 0.0, -0.0),
        ([0.0, -0.0], 0.0, -0.0),
        ([-0.0, -0.0], -0.0, -0.0),
        ([-0.0, -1.0], -0.0, -1.0),
        ([0.0, 0.0], 0.0, 0.0),
        ([-0.0, 2.0], 2.0, -0.0),
    ],
    ids=str,
)
def test_minus_zero_is_less_than_zero(suffix: str, row: list[float], largest: float, least: float) -> None:
    for algebra, wanted in (("max", largest), ("min", least)):
        ((found,),), _ = reference(f"reduce.{algebra}{suffix}", np, np.array([row]))
        assert (found, bool(np.signbit(found))) == (wanted, bool(np.signbit(wanted)))


def test_a_sum_of_nothing_is_zero() -> None:
    for form in ("reduce.sum", "reduce.sum.suppress"):
        expected, _ = reference(form, np, np.zeros((3, 0)))
        assert expected.tolist() == [[0.0]] * 3
        assert compare(np, form, original_of(form), "float16", np.zeros((3, 0)), np.zeros((3, 1))).right


def compared(form: str, x: Any, out: Any, dtype: str = "float32") -> Comparison:
    return compare(np, form, original_of(form), dtype, np.asarray(x, np.float64), np.asarray(out, np.float64))


def test_an_extreme_that_is_off_by_anything_is_wrong() -> None:
    x = [[1.0, 3.0, 2.0]]
    assert compared("reduce.max", x, [[3.0]]).right
    assert compared("reduce.max", x, [[np.nextafter(3.0, 4.0)]]) == Comparison(1, 2.0, 1, 0)
    assert compared("reduce.max", [[-0.0, 0.0]], [[-0.0]]).bad_finite == 1
    assert compared("reduce.min", [[-0.0, 0.0]], [[-0.0]]).right
    assert compared("reduce.max", [[NAN, 0.0]], [[0.0]]).bad_special == 1
    assert compared("reduce.max", [[NAN, 0.0]], [[NAN]]).right
    assert compared("reduce.max", [[-INF, -INF]], [[-INF]]).right
    assert compared("reduce.max", [[-INF, -INF]], [[INF]]).bad_special == 1


@pytest.mark.parametrize("form", ["reduce.sum", "map.divide_by_count.reduce.sum"])
def test_a_sum_and_a_mean_may_err_by_their_chain_and_no_more(form: str) -> None:
    """A mean's bound is the sum's over the count."""
    x = np.random.default_rng(1).uniform(-1, 1, (1, 4096))
    expected, scale = reference(form, np, x)
    growth = (chain(original_of(form), 4096) + 2) * 2.0**-24 * scale
    assert compared(form, x, expected + 0.9 * growth).right
    assert not compared(form, x, expected + growth + 2.0**-23 * np.abs(expected) + 1e-12).right


def test_a_result_past_the_storages_range_may_be_infinite() -> None:
    x = np.full((1, 100), 65504.0)
    assert compared("reduce.sum", x, [[INF]], "float16").right
    assert compared("reduce.sum", x, [[-INF]], "float16").bad_special == 1
    assert compared("reduce.max", x, [[INF]], "float16").bad_special == 1


def test_blocks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, (7, 9))
    out, _ = reference("reduce.sum", np, x)
    out[4] += 1
    whole = compared("reduce.sum", x, out)
    monkeypatch.setattr("kernels.reference.BLOCK_ELEMENTS", 18)
    assert compared("reduce.sum", x, out) == whole
    assert (whole.elements, whole.bad_finite) == (7, 1)
    assert BLOCK_ELEMENTS > 18


def test_a_reference_may_be_shared_by_recipes() -> None:
    x = np.random.default_rng(3).uniform(-1, 1, (5, 300))
    expected, scale = reference("reduce.sum", np, x)
    for name in ("sum.rows1", "sum.short8"):
        row = recipe(name)
        assert against(np, row.form, row, "float32", 300, expected, scale, expected) == compare(
            np, row.form, row, "float32", x, expected
        )
