"""`rowsmith.scan` on arrays of CuPy and torch: their dtypes, layouts and current streams; other layouts are refused."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
import pytest

import rowsmith
from features.errors import FeatureError, WorkloadError
from kernels.errors import KernelError, LaunchError
from tests.gpu.tensors import host_bits, host_values

if TYPE_CHECKING:
    from rowsmith.live import Dispatcher

pytestmark = pytest.mark.usefixtures("dispatch")

# Whole numbers whose sums are exact in FP32, so that the answer is known to the bit.
RNG = np.random.default_rng(7)
TORCH_DTYPES = ("float16", "bfloat16", "float32")
# Some milliseconds, long enough for a launch on a wrong stream to overtake what its input waits for.
PAUSE_CYCLES = 20_000_000
_PAUSE = r"""
extern "C" __global__ void pause(long long cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {}
}
"""


def whole(shape: tuple[int, ...]) -> Any:
    return RNG.integers(-8, 9, shape).astype(np.float32)


def answer(values: Any, dtype: str) -> Any:
    """Return the exact sums, rounded to the dtype, as FP32."""
    return host_values(host_bits(np.cumsum(values, axis=-1, dtype=np.float32), dtype), dtype)


def assert_scanned(out: Any, values: Any, dtype: str) -> None:
    assert np.array_equal(cupy.asnumpy(out).astype(np.float32), answer(values, dtype))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(
    "shape", [(8192,), (128, 8192), (3, 4, 2048), (2, 3, 5, 7), (1, 1), (1,), (5, 1), (1000, 513), (17, 50257)]
)
def test_cupy_arrays_of_any_rank_are_scanned(shape: tuple[int, ...], dtype: str) -> None:
    values = whole(shape)
    x = cupy.asarray(values.astype(dtype))
    out = rowsmith.scan(x)
    assert (type(out), out.shape, out.dtype) == (cupy.ndarray, shape, np.dtype(dtype))
    assert_scanned(out, values, dtype)
    assert np.array_equal(x.get(), values.astype(dtype))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (0,), (3, 0, 4), (3, 4, 0), (0, 2)])
def test_empty_arrays_give_empty_arrays(shape: tuple[int, ...]) -> None:
    x = cupy.empty(shape, cupy.float16)
    assert rowsmith.scan(x).shape == shape
    assert rowsmith.scan(x, out=x) is x
    assert rowsmith.prepare("scan", x).prepared.chosen.recipe.id == "scan.original"


def test_the_output_that_is_given_is_filled_and_returned() -> None:
    values = whole((64, 4096))
    x, out = cupy.asarray(values), cupy.full((64, 4096), cupy.nan, cupy.float32)
    assert rowsmith.scan(x, out=out) is out
    assert_scanned(out, values, "float32")
    assert rowsmith.scan(x, out=x) is x
    assert_scanned(x, values, "float32")


def test_rows_of_a_wider_array_are_taken_where_they_lie(dispatch: Dispatcher) -> None:
    """Slices of columns: the base and the pitch are the wider array's, and what lies beside is left alone."""
    values = whole((48, 4096))
    wide = cupy.asarray(values.astype(np.float16))
    for columns in (slice(0, 1024), slice(1024, 3072), slice(8, 1032), slice(3, 1027), slice(1, 4096), slice(5, 6)):
        room = cupy.full((48, 4096), 9, cupy.float16)
        assert_scanned(rowsmith.scan(wide[:, columns]), values[:, columns], "float16")
        assert rowsmith.scan(wide[:, columns], out=room[:, columns]) is not None
        assert_scanned(room[:, columns], values[:, columns], "float16")
        room[:, columns] = 9
        assert bool((room == 9).all())
    assert np.array_equal(wide.get(), values.astype(np.float16))
    readied = [ready.prepared for ready in dispatch.decided.values()]
    assert len({ready.chosen.recipe.id for ready in readied}) > 1, "the profile should admit some recipe here"
    launches = sum((ready.launches for ready in readied), Counter[str]())
    assert set(launches) == {"recipe", "misaligned"}
    assert launches.total() == 12


def test_leading_axes_that_fold_are_rows_and_others_are_refused() -> None:
    values = whole((4, 6, 512))
    x = cupy.asarray(values)
    assert_scanned(rowsmith.scan(x[:, :, 64:320]), values[:, :, 64:320], "float32")
    for view in (x[:, :4], x[::2], x.transpose(1, 0, 2)):
        with pytest.raises(WorkloadError, match="x: strides do not fold into rows one pitch apart"):
            rowsmith.scan(view)
    assert_scanned(rowsmith.scan(x[:, 2]), values[:, 2], "float32")


REFUSED = {
    "every second column": lambda x: x[:, ::2],
    "transposed": lambda x: x.T,
    "columns backwards": lambda x: x[:, ::-1],
    "rows backwards": lambda x: x[::-1],
    "one row for all": lambda x: cupy.broadcast_to(x[:1], x.shape),
    "one column for all": lambda x: cupy.broadcast_to(x[:, :1], x.shape),
}


@pytest.mark.parametrize("view", REFUSED.values(), ids=REFUSED)
def test_layouts_that_are_no_rows_are_refused_by_name(view: Any) -> None:
    x = cupy.asarray(whole((96, 128)))
    with pytest.raises(WorkloadError, match=r"^x: .*stride|^x: row pitch 0 is less than the width 128"):
        rowsmith.scan(view(x))
    fresh = cupy.zeros_like(x)
    wrong = view(fresh)
    with pytest.raises(WorkloadError, match=r"^out: .*stride|^out: row pitch 0 is less than the width 128"):
        rowsmith.scan(cupy.ones(wrong.shape, x.dtype), out=wrong)
    assert not bool(fresh.any())


def test_what_does_not_fit_is_refused_with_both_sides_named() -> None:
    x = cupy.ones((4, 8), cupy.float32)
    for out in (cupy.ones((4, 7), cupy.float32), cupy.ones((32,), cupy.float32), cupy.ones((4, 8), cupy.float16)):
        with pytest.raises(LaunchError, match=r"out is float\d\d \(.*\) on device \d; it must be float32 \(4, 8\)"):
            rowsmith.scan(x, out=out)
    for array in (np.ones((4, 8), np.float32), [1.0], None):
        with pytest.raises(LaunchError, match="pass a CuPy array or a torch CUDA tensor"):
            rowsmith.scan(array)
    with pytest.raises(KernelError, match="use one of float16, bfloat16, float32"):
        rowsmith.scan(cupy.ones((4, 8), cupy.float64))
    with pytest.raises(WorkloadError, match="shape"):
        rowsmith.scan(cupy.ones((), cupy.float32))
    with pytest.raises(LaunchError, match="stream is a str"):
        rowsmith.scan(x, stream="0")


@pytest.fixture(scope="module")
def pause(device: int) -> Any:
    """Return how to keep a stream busy for some milliseconds."""
    kernel = cupy.RawKernel(_PAUSE, "pause")
    kernel((1,), (1,), (np.int64(1),))
    cupy.cuda.Device().synchronize()
    return lambda: kernel((1,), (1,), (np.int64(PAUSE_CYCLES),))


def test_the_launch_goes_to_cupys_current_stream(pause: Any) -> None:
    """The input is written on that stream after a pause: a launch anywhere else would read what was there before."""
    values = whole((32, 8192))
    fresh, x, out = cupy.asarray(values), cupy.zeros((32, 8192), cupy.float32), cupy.zeros((32, 8192), cupy.float32)
    rowsmith.scan(x, out=out)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        x[...] = fresh  # so that CuPy compiles its copy before the pause
        x.fill(0)
    cupy.cuda.Device().synchronize()
    with stream:
        pause()
        x[...] = fresh
        rowsmith.scan(x, out=out)
        assert not stream.done, "the stream was not busy, so this would prove nothing"
    stream.synchronize()
    assert_scanned(out, values, "float32")


def test_the_launch_goes_to_the_stream_that_is_named(pause: Any) -> None:
    values = whole((32, 8192))
    fresh, x, out = cupy.asarray(values), cupy.zeros((32, 8192), cupy.float32), cupy.zeros((32, 8192), cupy.float32)
    x[...] = fresh
    rowsmith.scan(x, out=out)
    stream = cupy.cuda.Stream(non_blocking=True)
    for named in (stream, int(stream.ptr)):
        x.fill(0)
        out.fill(0)
        cupy.cuda.Device().synchronize()
        with stream:
            pause()
            x[...] = fresh
        rowsmith.scan(x, out=out, stream=named)
        assert not stream.done, "the stream was not busy, so this would prove nothing"
        stream.synchronize()
        assert_scanned(out, values, "float32")


def tensor(torch: Any, values: Any, dtype: str) -> Any:
    return torch.tensor(values, device="cuda").to(getattr(torch, dtype))


def assert_tensor(torch: Any, out: Any, values: Any, dtype: str) -> None:
    assert out.dtype is getattr(torch, dtype)
    assert np.array_equal(out.float().cpu().numpy(), answer(values, dtype))


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
@pytest.mark.parametrize("shape", [(128, 8192), (3, 4, 1024), (7, 513), (1, 1), (0, 4), (4, 0)])
def test_torch_tensors_are_scanned(torch: Any, shape: tuple[int, ...], dtype: str) -> None:
    values = whole(shape)
    x = tensor(torch, values, dtype)
    given = x.clone()
    out = rowsmith.scan(x)
    assert isinstance(out, torch.Tensor)
    assert tuple(out.shape) == shape
    assert_tensor(torch, out, values, dtype)
    assert torch.equal(x, given)
    assert rowsmith.scan(x, out=x) is x
    assert_tensor(torch, x, values, dtype)


@pytest.mark.parametrize("dtype", TORCH_DTYPES)
def test_the_launch_goes_to_torchs_current_stream(torch: Any, dtype: str) -> None:
    values = whole((32, 8192))
    fresh = tensor(torch, values, dtype)
    x, out = torch.zeros_like(fresh), torch.zeros_like(fresh)
    rowsmith.scan(x, out=out)
    side = torch.cuda.Stream()
    for named in (None, side):
        x.zero_()
        out.zero_()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(PAUSE_CYCLES)
            x.copy_(fresh)
            if named is None:
                rowsmith.scan(x, out=out)
        if named is not None:
            rowsmith.scan(x, out=out, stream=named)
        assert not side.query(), "the stream was not busy, so this would prove nothing"
        side.synchronize()
        assert_tensor(torch, out, values, dtype)


def test_torch_views_that_are_no_rows_are_refused_and_slices_are_taken(torch: Any) -> None:
    values = whole((96, 128))
    x = tensor(torch, values, "bfloat16")
    for view in (x[:, ::2], x.t(), x[:1].expand(96, 128), x[:, :1].expand(96, 128)):
        with pytest.raises(WorkloadError, match=r"^x: .*stride|^x: row pitch 0 is less than the width 128"):
            rowsmith.scan(view)
    for columns in (slice(0, 64), slice(1, 65), slice(3, 128)):
        assert_tensor(torch, rowsmith.scan(x[:, columns]), values[:, columns], "bfloat16")
    with pytest.raises(LaunchError, match="x is a torch tensor on cpu; move it to a CUDA device"):
        rowsmith.scan(x.cpu())
    with pytest.raises(LaunchError, match="out is a torch tensor on cpu"):
        rowsmith.scan(x, out=x.cpu())
    with pytest.raises((KernelError, FeatureError), match="use one of float16, bfloat16, float32"):
        rowsmith.scan(x.double())


def test_torch_and_cupy_may_be_mixed(torch: Any) -> None:
    """A torch input and a CuPy output, or the reverse, on memory that both see."""
    values = whole((16, 2048))
    x, out = tensor(torch, values, "float16"), cupy.zeros((16, 2048), cupy.float16)
    torch.cuda.synchronize()
    assert rowsmith.scan(x, out=out) is out
    torch.cuda.synchronize()
    assert_scanned(out, values, "float16")
