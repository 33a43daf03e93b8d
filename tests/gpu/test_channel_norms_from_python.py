"""Channel norms of CuPy arrays and torch tensors: along dimension 1, of any further extents, to new or given memory."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
import pytest

import rowsmith
from features.errors import WorkloadError
from kernels.errors import LaunchError
from kernels.recipe import ORIGINAL
from rowsmith.live import Dispatcher

SHAPES = ((2, 64, 24, 16), (3, 5), (1, 3, 7), (2, 100, 3, 4, 5), (4, 128, 33), (0, 4, 5), (2, 0, 5), (2, 3, 0))
FUNCTIONS = {
    "channel_rms": lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5),
    "channel_mean_abs": lambda x: x / abs(x).mean(1, keepdims=True),
    "channel_l2": lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)),
}


def values(shape: tuple[int, ...], seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape)


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_arrays_are_divided_along_dimension_1(dispatch: Dispatcher, op: str, dtype: str) -> None:
    for shape in SHAPES:
        given = values(shape).astype(dtype)
        x = cupy.asarray(given)
        expected = FUNCTIONS[op](given.astype(np.float64)) if given.size else np.empty(shape)
        tolerance = 2e-6 if dtype == "float32" else 2e-3
        out = getattr(rowsmith, op)(x)
        assert (out.shape, out.dtype) == (x.shape, x.dtype)
        assert np.allclose(out.get(), expected, rtol=tolerance, atol=tolerance), shape
        assert getattr(rowsmith, op)(x, out=x) is x
        assert np.allclose(x.get(), expected, rtol=tolerance, atol=tolerance), shape


def test_eps_is_the_callers(dispatch: Dispatcher) -> None:
    x = cupy.zeros((2, 3, 4), cupy.float32)
    assert not rowsmith.channel_rms(x).get().any()
    assert np.isnan(rowsmith.channel_rms(x, eps=0).get()).all()
    assert np.isnan(rowsmith.channel_l2(x).get()).all()
    with pytest.raises(LaunchError, match="eps -1 is not a finite number"):
        rowsmith.channel_rms(x, eps=-1)


def test_other_layouts_are_refused_by_name(dispatch: Dispatcher) -> None:
    x = cupy.zeros((2, 8, 4, 6), cupy.float32)
    for strided in (x.transpose(0, 2, 3, 1), x[:, :4], x[..., ::2]):
        with pytest.raises(WorkloadError, match=r"x: stride .* copy to a contiguous array first"):
            rowsmith.channel_l2(strided)
    with pytest.raises(WorkloadError, match=r"out: stride"):
        rowsmith.channel_l2(x, out=cupy.zeros((2, 4, 6, 8), cupy.float32).transpose(0, 3, 1, 2))
    with pytest.raises(WorkloadError, match="has no channels"):
        rowsmith.channel_l2(cupy.zeros(8, cupy.float32))


def test_a_recipe_can_be_prepared_and_captured(dispatch: Dispatcher) -> None:
    x = cupy.asarray(values((4, 64, 32, 32)).astype(np.float32))
    ready = rowsmith.prepare("channel_l2", x, recipe="channel_l2.retained64")
    assert ready.workload.inner == 1024
    assert ready.prepared.chosen.recipe.role != ORIGINAL


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_torch_tensors_are_taken(dispatch: Dispatcher, torch: Any, dtype: str) -> None:
    x = torch.from_numpy(values((2, 96, 20, 12)).astype(np.float32)).cuda().to(getattr(torch, dtype))
    wide = x.double()
    expected = wide / wide.norm(2, 1, keepdim=True)
    out = rowsmith.channel_l2(x)
    assert out.dtype == x.dtype
    assert torch.allclose(out.double(), expected, rtol=1e-2 if dtype == "bfloat16" else 2e-3)
    with pytest.raises(WorkloadError, match="copy to a contiguous array first"):
        rowsmith.channel_l2(x.contiguous(memory_format=torch.channels_last))
