"""FP64 references of normalizations are the formulas, and their bound is wide where FP32 is and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.norm_references import layer, rms, softmax
from kernels.norms import NORMS
from kernels.recipes import recipe, recipes_of
from kernels.reference import answer, chain, compare, reference

RNG = np.random.default_rng(31)
pytestmark = pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
GAMMA, BETA = RNG.normal(1, 1, 300), RNG.normal(0, 1, 300)


def rows(shape: tuple[int, int] = (7, 300), size: float = 3.0, mean: float = 0.0) -> Any:
    return RNG.normal(mean, size, shape).astype(np.float32).astype(np.float64)


def test_references_are_those_of_the_formulas() -> None:
    x, eps = rows(), float(np.float32(1e-3))
    variance = x.var(-1, keepdims=True)
    wanted = {
        "softmax": np.exp(x) / np.exp(x).sum(-1, keepdims=True),
        "rmsnorm": x / np.sqrt((x**2).mean(-1, keepdims=True) + eps),
        "layernorm": (x - x.mean(-1, keepdims=True)) / np.sqrt(variance + eps),
    }
    wanted["rmsnorm_gamma"] = wanted["rmsnorm"] * GAMMA
    wanted["layernorm_gamma"] = wanted["layernorm"] * GAMMA
    wanted["layernorm_gamma_beta"] = wanted["layernorm_gamma"] + BETA
    assert set(wanted) == {norm.op for norm in NORMS.values()}
    for form, norm in NORMS.items():
        operands = [*(GAMMA, BETA)[: norm.weights], *(1e-3 for _ in norm.parameters)]
        found, scale = reference(form, np, x, operands)
        assert np.allclose(found, wanted[norm.op], rtol=1e-13, atol=1e-15)
        assert (scale >= np.abs(found) * (1 - 1e-12)).all()


def test_eps_is_the_fp32_number_that_kernels_are_given() -> None:
    tiny = np.full((1, 4), 1e-20)
    assert rms(np, tiny, 1e-3)[0][0, 0] == 1e-20 / np.sqrt(float(np.float32(1e-3)) + 1e-40)
    assert layer(np, np.array([[0.0, 0.0, 0.0, 1.0]]), 1e-46)[0][0, 3] == pytest.approx(np.sqrt(3))


@given(st.sampled_from([rms, layer]), st.floats(-3, 3), st.integers(0, 2**16))
def test_weights_scale_results_and_bounds_alike(of: Any, factor: float, seed: int) -> None:
    x = np.random.default_rng(seed).normal(0, 1, (2, 50))
    plain, scale = of(np, x, 1e-5)
    weighed, of_weighed = of(np, x, np.full(50, factor), 1e-5)
    assert np.allclose(weighed, factor * plain)
    assert np.allclose(of_weighed, abs(factor) * scale)


def test_a_shift_moves_no_result_of_layernorm_but_widens_its_bound() -> None:
    x = rows()
    centred, near = layer(np, x, 1e-5)
    shifted, far = layer(np, x + 1000.0, 1e-5)
    assert np.allclose(centred, shifted, atol=1e-9)
    assert (far > 100 * near).all()


def test_a_factor_moves_no_result_of_either() -> None:
    x = rows()
    for of in (rms, layer):
        assert np.allclose(of(np, x, 0.0)[0], of(np, 8.0 * x, 0.0)[0])
        assert np.allclose(of(np, x, 0.0)[1], of(np, 8.0 * x, 0.0)[1])


def test_rows_of_zeros_are_nan_without_eps_and_zero_with_it() -> None:
    zeros = np.zeros((2, 9))
    for of in (rms, layer):
        assert np.isnan(of(np, zeros, 0.0)[0]).all()
        assert (of(np, zeros, 1e-5)[0] == 0).all()


@pytest.mark.parametrize("name", ["rmsnorm_gamma.original", "layernorm_gamma_beta.held32x32", "softmax.held32x32"])
def test_a_wrong_formula_is_beyond_the_bound(name: str) -> None:
    """One that divides by N - 1, forgets eps or swaps weights is told apart, in FP32 by far."""
    row = recipe(name)
    norm, x = NORMS[row.form], rows()
    operands = [*(GAMMA, BETA)[: norm.weights], *(1e-3 for _ in norm.parameters)]
    right, _ = reference(row.form, np, x, operands)
    assert compare(np, row.form, row, "float32", x, right.astype(np.float32), operands).right
    for wrong in (right * np.sqrt(299 / 300), right * (1 + 2e-5), np.roll(right, 1, axis=-1)):
        assert not compare(np, row.form, row, "float32", x, wrong.astype(np.float32), operands).right
    known = answer(np, row.form, x, operands)
    assert known.compare(np, row, "float32", right).right
    if norm.weights:
        swapped, _ = reference(row.form, np, x, [*reversed(operands[: norm.weights]), *operands[norm.weights :]])
        assert norm.weights == 1 or not known.compare(np, row, "float32", swapped).right
        without, _ = reference(row.form, np, x, [*operands[: norm.weights], 0.0])
        assert not known.compare(np, row, "float32", without).right


def fp32(values: Any) -> Any:
    return np.asarray(values, np.float32)


@given(st.integers(0, 2**16), st.sampled_from([0.0, 3.0, 100.0, 1e4]), st.sampled_from([0.0, 1e-5, 1e-3]))
def test_plain_fp32_in_any_order_stays_within_the_bound(seed: int, mean: float, eps: float) -> None:
    """Two passes in FP32, of sums from left to right: with the chain of that, 300, and so for means far from zero."""
    rng = np.random.default_rng(seed)
    x = fp32(rng.normal(mean, 1, (3, 300)))
    near = fp32(np.cumsum(x, -1, dtype=np.float32)[:, -1:] / np.float32(300))
    squares = np.cumsum(fp32((x - near) ** 2), -1, dtype=np.float32)[:, -1:]
    out = fp32((x - near) * fp32(1 / np.sqrt(squares / np.float32(300) + np.float32(eps))))
    expected, scale = layer(np, x.astype(np.float64), eps)
    assert (np.abs(out - expected) <= 2.0**-24 * (np.abs(expected) + 304 * scale)).all()


@pytest.mark.parametrize("form", NORMS, ids=lambda form: NORMS[form].op)
def test_chains_of_rows_that_lanes_hold_are_short(form: str) -> None:
    """No longer than what a lane holds, its warp and its CTA take; those of steps grow with the steps alone."""
    for row in recipes_of(form):
        if row.template == "norm_held.cu":
            assert chain(row, 64) == chain(row, 30_000) <= 108
        else:
            assert chain(row, 2**20) <= 6 * (2**20 // (8 * 256) + 64)


def test_softmax_takes_no_operands() -> None:
    with pytest.raises(TypeError):
        softmax(np, rows(), 1e-5)
