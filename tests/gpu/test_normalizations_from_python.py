"""`rowsmith.softmax`, `rmsnorm` and `layernorm` on arrays of CuPy and torch: results, operands, errors and graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
import pytest

import rowsmith
from features.errors import WorkloadError
from kernels.errors import LaunchError
from tests.gpu.tensors import host_bits, host_values

if TYPE_CHECKING:
    from calibration.gpu import Session
    from rowsmith.live import Dispatcher

RNG = np.random.default_rng(23)
SHAPES = ((5, 7), (65, 2048), (300, 64), (2, 3, 1000), (1, 2**18), (9,), (4, 1), (33, 50257))
LOOSE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5}


def stored(values: Any, dtype: str) -> Any:
    """Return what the storage dtype holds of values, as FP64."""
    return host_values(host_bits(values, dtype), dtype).astype(np.float64)


def rms(x: Any, gamma: Any = 1.0, eps: float = 1e-6) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gamma


def layer(x: Any, gamma: Any = 1.0, beta: Any = 0.0, eps: float = 1e-5) -> Any:
    apart = x - x.mean(-1, keepdims=True)
    return apart / np.sqrt((apart * apart).mean(-1, keepdims=True) + eps) * gamma + beta


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cupy_arrays_are_normalized_along_their_last_axis(
    dispatch: Dispatcher, shape: tuple[int, ...], dtype: str
) -> None:
    values, gamma, beta = RNG.normal(0, 2, shape), *RNG.normal(1, 0.3, (2, shape[-1]))
    x, g, b = (cupy.asarray(host_bits(part, dtype).view(dtype)) for part in (values, gamma, beta))
    held, gamma, beta = stored(values, dtype), stored(gamma, dtype), stored(beta, dtype)
    raised = np.exp(held - held.max(-1, keepdims=True))
    wanted = {
        "softmax": (rowsmith.softmax(x), raised / raised.sum(-1, keepdims=True)),
        "rms": (rowsmith.rmsnorm(x), rms(held)),
        "rms, weighed": (rowsmith.rmsnorm(x, g, eps=1e-3), rms(held, gamma, 1e-3)),
        "layer": (rowsmith.layernorm(x, eps=1e-3), layer(held, eps=1e-3)),
        "layer, weighed": (rowsmith.layernorm(x, g), layer(held, gamma)),
        "layer, all": (rowsmith.layernorm(x, g, b), layer(held, gamma, beta)),
    }
    for name, (out, expected) in wanted.items():
        assert (out.shape, str(out.dtype)) == (shape, dtype)
        got = out.get().astype(np.float64)
        assert np.allclose(got, expected, rtol=LOOSE[dtype], atol=LOOSE[dtype]), name


def test_torch_tensors_are_normalized_as_torch_normalizes_them(dispatch: Dispatcher, torch: Any) -> None:
    functional = torch.nn.functional
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        loose = LOOSE[str(dtype).removeprefix("torch.")]
        for shape in ((33, 1000), (128, 8192), (3, 5, 333)):
            x = torch.randn(shape, device="cuda", dtype=dtype)
            g, b = (torch.randn(shape[-1], device="cuda", dtype=dtype) for _ in range(2))
            n = x.shape[-1:]
            pairs = (
                (rowsmith.softmax(x), x.softmax(-1)),
                (rowsmith.rmsnorm(x, g, eps=1e-6), functional.rms_norm(x, n, g, 1e-6)),
                (rowsmith.layernorm(x, g, b), functional.layer_norm(x, n, g, b)),
                (rowsmith.layernorm(x), functional.layer_norm(x, n)),
            )
            for got, wanted in pairs:
                assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
                assert torch.allclose(got.float(), wanted.float(), rtol=loose, atol=loose)


def test_out_may_be_x_and_is_returned(dispatch: Dispatcher) -> None:
    values, gamma = RNG.normal(0, 1, (64, 1024)).astype(np.float32), RNG.normal(1, 1, 1024).astype(np.float32)
    x, g, out = cupy.asarray(values), cupy.asarray(gamma), cupy.empty((64, 1024), cupy.float32)
    assert rowsmith.rmsnorm(x, g, out=out) is out
    assert rowsmith.rmsnorm(x, g, out=x) is x
    expected = rms(values.astype(np.float64), gamma)
    for found in (out, x):
        assert np.allclose(found.get(), expected, rtol=1e-5, atol=1e-6)
    assert np.array_equal(g.get(), gamma)


def test_operands_that_do_not_fit_are_refused_by_name(dispatch: Dispatcher) -> None:
    x, g = cupy.ones((4, 8), cupy.float32), cupy.ones(8, cupy.float32)
    for wrong in (cupy.ones(7, cupy.float32), cupy.ones((1, 8), cupy.float32), cupy.ones(8, cupy.float16)):
        with pytest.raises(LaunchError, match=r"^gamma is float"):
            rowsmith.rmsnorm(x, wrong)
        with pytest.raises(LaunchError, match=r"^beta is float"):
            rowsmith.layernorm(x, g, wrong)
    with pytest.raises(LaunchError, match="gamma has stride 2"):
        rowsmith.layernorm(x, cupy.ones(16, cupy.float32)[::2])
    with pytest.raises(LaunchError, match="gamma overlaps out"):
        rowsmith.rmsnorm(x, x[2], out=x)
    with pytest.raises(LaunchError, match="beta is given without gamma"):
        rowsmith.layernorm(x, beta=g)
    for eps in (-1.0, float("nan"), float("inf"), "1e-6", None):
        with pytest.raises(LaunchError, match=r"eps .* is not a finite number of at least 0"):
            rowsmith.rmsnorm(x, g, eps=eps)
    with pytest.raises(WorkloadError, match="inner stride 2"):
        rowsmith.softmax(x[:, ::2])


def test_empty_arrays_give_empty_arrays(dispatch: Dispatcher) -> None:
    for shape in ((0, 5), (5, 0), (0, 0)):
        x, g = cupy.empty(shape, cupy.float16), cupy.empty(shape[-1], cupy.float16)
        for out in (rowsmith.softmax(x), rowsmith.rmsnorm(x, g), rowsmith.layernorm(x, g, g)):
            assert out.shape == shape


def test_a_prepared_normalization_is_captured(dispatch: Dispatcher, session: Session) -> None:
    """With its weights, whose values are those of the replay's time."""
    for shape in ((65, 2048), (1, 2**18), (4000, 27)):
        x, out = cupy.zeros(shape, cupy.float16), cupy.zeros(shape, cupy.float16)
        g, b = cupy.zeros(shape[1], cupy.float16), cupy.zeros(shape[1], cupy.float16)
        assert rowsmith.prepare("layernorm_gamma_beta", x).selection is not None
        session.synchronize()

        def launch(x: Any = x, g: Any = g, b: Any = b, out: Any = out) -> None:
            rowsmith.layernorm(x, g, b, out=out, stream=session.stream)

        graph = session.capture(launch, 2)
        for _ in range(3):
            parts = RNG.normal(0, 1, shape), *RNG.normal(0, 1, (2, shape[1]))
            for array, part in zip((x, g, b), parts, strict=True):
                array[...] = cupy.asarray(part.astype(np.float16))
            cupy.cuda.Device().synchronize()
            graph.replay()
            session.synchronize()
            expected = layer(*(stored(part, "float16") for part in parts))
            assert np.allclose(out.get().astype(np.float64), expected, rtol=4e-3, atol=4e-3)
