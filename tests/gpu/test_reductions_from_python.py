"""`rowsmith.sum`, `max`, `min` and `mean` on arrays of CuPy and torch: shapes, results, errors and graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
import pytest

import rowsmith
from features.errors import WorkloadError
from kernels.errors import LaunchError

if TYPE_CHECKING:
    from calibration.gpu import Session
    from rowsmith.live import Dispatcher

RNG = np.random.default_rng(17)
OPS = {"sum": np.sum, "max": np.max, "min": np.min, "mean": np.mean}
NAN_OPS = {"sum": np.nansum, "max": np.nanmax, "min": np.nanmin, "mean": np.nanmean}
SHAPES = ((5, 7), (65, 2048), (300, 64), (2, 3, 1000), (1, 2**20), (9,), (4, 1))


def whole(shape: tuple[int, ...]) -> Any:
    return RNG.integers(-8, 9, shape).astype(np.float32)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cupy_arrays_are_reduced_along_their_last_axis(dispatch: Dispatcher, op: str, shape: tuple[int, ...]) -> None:
    values = whole(shape)
    for dtype in ("float16", "float32"):
        out = getattr(rowsmith, op)(cupy.asarray(values.astype(dtype)))
        assert (out.shape, str(out.dtype)) == (shape[:-1], dtype)
        wanted = OPS[op](values.astype(np.float64), axis=-1).astype(np.float32).astype(dtype)
        assert np.allclose(
            out.get().astype(np.float64), wanted.astype(np.float64), rtol=2e-3 if dtype == "float16" else 1e-6
        )


@pytest.mark.parametrize("op", NAN_OPS)
def test_nan_is_suppressed_where_that_is_asked(dispatch: Dispatcher, op: str) -> None:
    values = whole((40, 300))
    values[::3, ::7] = np.nan
    out = getattr(rowsmith, op)(cupy.asarray(values), nan="suppress")
    assert np.allclose(out.get(), NAN_OPS[op](values, axis=-1), rtol=1e-6)
    assert np.isnan(getattr(rowsmith, op)(cupy.asarray(values)).get()[::3]).all()
    with pytest.raises(WorkloadError, match="not one of propagate, suppress"):
        getattr(rowsmith, op)(cupy.asarray(values), nan="ignore")


def test_out_is_written_and_must_have_the_results_shape(dispatch: Dispatcher) -> None:
    values = whole((6, 100))
    x, wide = cupy.asarray(values), cupy.full((6, 2), cupy.nan, cupy.float32)
    assert rowsmith.sum(x, out=wide[:, 0]) is not None
    assert np.array_equal(wide[:, 0].get(), values.sum(-1))
    assert np.isnan(wide[:, 1].get()).all()
    with pytest.raises(LaunchError, match="like x without its last axis"):
        rowsmith.sum(x, out=cupy.empty((6, 1), cupy.float32))
    with pytest.raises(LaunchError, match=r"out is float16 \(6,\)"):
        rowsmith.max(x, out=cupy.empty(6, cupy.float16))


def test_empty_rows_have_a_sum_and_no_extreme(dispatch: Dispatcher) -> None:
    empty = cupy.empty((5, 0), cupy.float32)
    assert (rowsmith.sum(empty).get() == 0).all()
    assert rowsmith.max(cupy.empty((0, 4), cupy.float32)).shape == (0,)
    for op in (rowsmith.max, rowsmith.min, rowsmith.mean):
        with pytest.raises(WorkloadError, match="rows of no element"):
            op(empty)


def test_a_prepared_reduction_is_captured(dispatch: Dispatcher, session: Session) -> None:
    for shape in ((65, 2048), (1, 2**20), (4000, 27)):
        x, out = cupy.zeros(shape, cupy.float16), cupy.zeros(shape[0], cupy.float16)
        ready = rowsmith.prepare("max", x)
        assert ready.selection is not None
        session.synchronize()
        graph = session.capture(lambda x=x, out=out: rowsmith.max(x, out=out, stream=session.stream), 2)
        for _ in range(3):
            values = whole(shape)
            x[...] = cupy.asarray(values.astype(np.float16))
            cupy.cuda.Device().synchronize()
            graph.replay()
            session.synchronize()
            assert np.array_equal(out.get().astype(np.float32), values.max(-1))


@pytest.mark.parametrize("op", OPS)
def test_torch_tensors_are_reduced_as_torch_reduces_them(dispatch: Dispatcher, torch: Any, op: str) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        x = torch.randn(33, 1000, device="cuda", dtype=dtype)
        x[3, 17] = torch.nan
        wanted = getattr(x, {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}[op])(-1)
        got = getattr(rowsmith, op)(x)
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        exact = op in ("max", "min")
        assert torch.allclose(got, wanted, rtol=0 if exact else 1e-2, atol=0 if exact else 1e-2, equal_nan=True)
