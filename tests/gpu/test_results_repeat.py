"""Results repeat bit for bit, run after run, in threads and on streams; and which recipes equal the original."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
import pytest

import rowsmith
from kernels.recipe import Recipe
from kernels.scans import COVER, FLAT, TINY
from tests.gpu.geometries import fewest_rows, geometry_of, shapes_at, takes
from tests.gpu.tensors import (
    DTYPES,
    ORIGINAL,
    OTHERS,
    SCANS,
    Kernels,
    blank,
    host_bits,
    host_values,
    prepared,
    random,
    run,
)

if TYPE_CHECKING:
    from rowsmith.live import Dispatcher


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("recipe", SCANS, ids=lambda row: row.id)
def test_runs_repeat_bit_for_bit(kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str) -> None:
    wide = ((1, 131072), (33, 8192), (1000, 24576))
    for rows, width in (*shapes_at(recipe, dtype, ()), *(shape for shape in wide if takes(recipe, dtype, *shape))):
        ready = prepared(kernels, recipe, dtype, rows, width, sm_count)
        x, y, again = random(dtype, rows, width), blank(dtype, rows, width), blank(dtype, rows, width)
        run(ready, x, y)
        for _ in range(10):
            again.bits.fill(0)
            run(ready, x, again)
            assert bool(cupy.array_equal(y.bits, again.bits))


@pytest.mark.parametrize(
    "recipe", [row for row in OTHERS if row.role not in (COVER, FLAT, TINY)], ids=lambda row: row.id
)
def test_a_row_gives_the_same_bits_wherever_it_stands(kernels: Kernels, sm_count: int, recipe: Recipe) -> None:
    """A recipe's order depends on its threads alone: not on the number of rows, the row's number or the pitch.

    A run's depends on where a row lies in it, of a covered row on where it begins. Tiny rows leave no gaps.
    """
    _, width = geometry_of(recipe, "float32")
    fewest = fewest_rows(recipe, "float32", width)
    rows = fewest + 45 if takes(recipe, "float32", fewest + 45, width) else 48
    rows = 300 if takes(recipe, "float32", 300, width) else rows
    x = random("float32", rows, width)
    y = blank("float32", rows, width, pitch=width + 4)
    run(prepared(kernels, recipe, "float32", rows, width, sm_count), x, y)
    for first in (0, 1, 131, 132, rows - 1):
        others, out = blank("float32", fewest, width), blank("float32", fewest, width)
        others.bits[...] = cupy.roll(x.bits, -first, axis=0)[:fewest]
        run(prepared(kernels, recipe, "float32", fewest, width, sm_count), others, out)
        assert bool(cupy.array_equal(out.bits, cupy.roll(y.bits, -first, axis=0)[:fewest]))


def test_it_is_stated_which_recipes_are_bit_equal_to_the_original(
    kernels: Kernels, sm_count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over all shapes together: the share of elements that equal the original's, by recipe and dtype."""
    lines = []
    for recipe in OTHERS:
        shares = {}
        for dtype in DTYPES:
            equal = total = 0
            for rows, width in (*shapes_at(recipe, dtype, (8192, 50_257), 17), *shapes_at(recipe, dtype, (), 400)):
                x, y, other = random(dtype, rows, width), blank(dtype, rows, width), blank(dtype, rows, width)
                run(prepared(kernels, recipe, dtype, rows, width, sm_count), x, y)
                run(prepared(kernels, ORIGINAL, dtype, rows, width, sm_count), x, other)
                equal += int((y.bits == other.bits).sum())
                total += rows * width
            shares[dtype] = equal / total
            assert recipe.numerics != "bit_equal" or equal == total, f"{recipe.id} {dtype} claims to be bit_equal"
        told = ", ".join(f"{dtype} {share:.2%}" for dtype, share in shares.items())
        verdict = "bit-equal to the original" if min(shares.values()) == 1 else "reordered"
        lines.append(f"{recipe.id}: {verdict}; elements equal: {told}")
    with capsys.disabled():
        print("", *lines, sep="\n")
    assert len(lines) == len(OTHERS)


def together(*work: Callable[[], object]) -> None:
    """Run in fresh threads that start at once, and raise what any of them raised."""
    barrier = threading.Barrier(len(work))

    def start(part: Callable[[], object]) -> None:
        barrier.wait(timeout=60)
        part()

    with ThreadPoolExecutor(len(work)) as pool:
        for done in [pool.submit(start, part) for part in work]:
            done.result(timeout=60)


def whole(rows: int, width: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(-8, 9, (rows, width)).astype(np.float32)


def answer(values: Any, dtype: str) -> Any:
    return host_values(host_bits(np.cumsum(values, axis=-1, dtype=np.float32), dtype), dtype)


SHAPES = ((128, 8192), (64, 3584), (500, 1024))


def test_threads_that_start_together_decide_once_and_are_all_right(dispatch: Dispatcher) -> None:
    """Each thread with a stream of its own; nothing is decided, compiled or loaded when they start."""

    def worker(number: int) -> Callable[[], None]:
        def work() -> None:
            with cupy.cuda.Stream(non_blocking=True) as stream:
                for turn in range(12):
                    rows, width = SHAPES[turn % len(SHAPES)]
                    values = whole(rows, width, 100 * number + turn)
                    x = cupy.asarray(values.astype(np.float16))
                    out = rowsmith.scan(x)
                    stream.synchronize()
                    assert np.array_equal(out.get().astype(np.float32), answer(values, "float16"))

        return work

    together(*(worker(number) for number in range(4)))
    assert len(dispatch.decided) == len(SHAPES)
    assert sum(ready.prepared.launches.total() for ready in dispatch.decided.values()) == 4 * 12


def test_streams_at_once_keep_their_results_apart(dispatch: Dispatcher) -> None:
    """Launches of the same kernels in flight on several streams, in place and overlapping ones among them."""
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    values = [whole(256, 16384, number) for number in range(4)]
    rooms = [cupy.zeros((257, 16384), cupy.float32) for _ in streams]
    outs = [cupy.empty((256, 16384), cupy.float32) for _ in streams]
    rowsmith.scan(rooms[0][:256], out=outs[0])
    for turn in range(5):
        for room, fresh in zip(rooms, values, strict=True):
            room[:256] = cupy.asarray(fresh)
        cupy.cuda.Device().synchronize()
        for number, stream in enumerate(streams):
            room = rooms[number]
            x, out = room[:256], (outs[number], room[:256], room[1:])[(turn + number) % 3]
            rowsmith.scan(x, out=out, stream=stream)
        cupy.cuda.Device().synchronize()
        for number in range(4):
            room = rooms[number]
            out = (outs[number], room[:256], room[1:])[(turn + number) % 3]
            assert np.array_equal(out.get(), answer(values[number], "float32"))
    launches = [ready.prepared.launches for ready in dispatch.decided.values()]
    assert {name for counted in launches for name in counted} >= {"overlap"}


def test_a_thread_that_never_called_cuda_may_launch(dispatch: Dispatcher) -> None:
    """Arrays, stream and kernels come from another thread; the launch is this one's first call."""
    values = whole(128, 8192, 5)
    x, out = cupy.asarray(values), cupy.zeros((128, 8192), cupy.float32)
    room = cupy.zeros((129, 8192), cupy.float32)
    room[:128] = x
    rowsmith.prepare("scan", x)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    together(lambda: rowsmith.scan(x, out=out, stream=int(stream.ptr)))
    together(lambda: rowsmith.scan(room[:128], out=room[1:], stream=int(stream.ptr)))
    stream.synchronize()
    for found in (out, room[1:]):
        assert np.array_equal(found.get(), answer(values, "float32"))


def test_a_second_device_is_served_with_the_first_one_current(torch: Any) -> None:
    """The launch makes the array's device current and gives the caller's back."""
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one CUDA device only")
    values = whole(128, 8192, 6)
    with cupy.cuda.Device(1):
        x = cupy.asarray(values)
    for _ in range(2):
        out = rowsmith.scan(x)
        assert cupy.cuda.Device().id == 0
        assert out.device.id == 1
        assert np.array_equal(out.get(), answer(values, "float32"))
    there = torch.tensor(values, device="cuda:1")
    assert np.array_equal(rowsmith.scan(there).cpu().numpy(), answer(values, "float32"))
