"""What the guard lets run on awkward buffers is right, counted, and in a capture either ready or a clear error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
import pytest
from attrs import evolve

from kernels.errors import LaunchError
from kernels.execute import Prepared
from kernels.guard import Verdict
from kernels.recipe import Recipe
from kernels.reference import compare
from tests.gpu.geometries import geometry_of
from tests.gpu.tensors import (
    CUBS,
    DTYPES,
    FORM,
    ORIGINAL,
    SCANS,
    Kernels,
    Tensor,
    blank,
    check,
    prepared,
    random,
    refill,
    run,
    whole_width,
)

if TYPE_CHECKING:
    from calibration.gpu import Session

ANY_RECIPE = pytest.mark.parametrize("recipe", SCANS, ids=lambda row: row.id)
ANY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)


@ANY_DTYPE
@pytest.mark.parametrize("recipe", CUBS, ids=lambda row: row.id)
def test_misaligned_buffers_get_the_original_bit_for_bit(
    kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str
) -> None:
    rows, width = 7, whole_width(recipe)
    ready = prepared(kernels, recipe, dtype, rows, width, sm_count)
    original = prepared(kernels, ORIGINAL, dtype, rows, width, sm_count)
    vector = 4 if dtype == "float32" else 8
    fallbacks = 0
    offsets = [(o, 0) for o in range(9)] + [(0, o) for o in range(9)] + [(3, 3)]
    for x_offset, y_offset, gap in [(*both, 0) for both in offsets] + [(0, 0, 1)]:
        x = random(dtype, rows, width, seed=x_offset, offset=x_offset, pitch=width + gap)
        y = blank(dtype, rows, width, offset=y_offset)
        aligned = x_offset % vector == y_offset % vector == gap
        check(ready, x, y, Verdict.RECIPE if aligned else Verdict.MISALIGNED)
        if not aligned:
            fallbacks += 1
            again = blank(dtype, rows, width, offset=y_offset)
            check(original, x, again)
            assert bool(cupy.array_equal(y.bits, again.bits))
    assert ready.launches[Verdict.MISALIGNED.value] == fallbacks > 0
    assert ready.launches.total() == 20
    assert original.launches == {Verdict.RECIPE.value: fallbacks}


@ANY_DTYPE
@ANY_RECIPE
def test_exactly_in_place_is_right(kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str) -> None:
    """Through the original, which gives the same bits there as into another buffer at the same offset."""
    rows, width = geometry_of(recipe, dtype)
    for offset, gap in ((0, 0), (0, 8), (3, 1)):
        ready = prepared(kernels, recipe, dtype, rows, width, sm_count)
        x = random(dtype, rows, width, seed=rows, offset=offset, pitch=width + gap)
        apart = blank(dtype, rows, width, offset=offset, pitch=width + gap)
        check(prepared(kernels, ORIGINAL, dtype, rows, width, sm_count), x, apart)
        before, given = x.raw.copy(), x.values().copy()
        # The original is what would run anyway, so for it nothing is a fallback.
        assert run(ready, x, x) is (Verdict.RECIPE if recipe is ORIGINAL else Verdict.IN_PLACE)
        assert x.outside_equals(before)
        assert compare(cupy, FORM, ORIGINAL, dtype, given, x.values()).right
        assert bool(cupy.array_equal(x.bits, apart.bits))


@ANY_DTYPE
def test_the_original_works_in_place_at_every_width_and_offset(kernels: Kernels, sm_count: int, dtype: str) -> None:
    for number, width in enumerate((1, 2, 8, 9, 100, 256, 257, 511, 700, 1024, 1025, 2304, 2305, 3584, 4097, 50257)):
        for rows in (1, 3, 300):
            x = random(dtype, rows, width, seed=width, offset=number % 9, pitch=width + number % 3)
            before, given = x.raw.copy(), x.values().copy()
            run(prepared(kernels, ORIGINAL, dtype, rows, width, sm_count), x, x)
            assert x.outside_equals(before)
            assert compare(cupy, FORM, ORIGINAL, dtype, given, x.values()).right, f"{rows} x {width}"


def overlapping(dtype: str, rows: int, width: int) -> list[tuple[str, Tensor, Tensor]]:
    """Return input and output in one allocation: shifted by elements and rows, both ways, and inside each other."""
    size = 4 if dtype == "float32" else 2
    found = []
    shifts = {
        "one element on": 1,
        "one element back": -1,
        "one vector on": 16 // size,
        "one row on": width,
        "one row back": -width,
        "half a row on": width // 2,
    }
    for name, shift in shifts.items():
        room = blank(dtype, rows + 2, width)
        x = evolve(room, rows=rows, first=room.first + width * size)
        found.append((name, x, evolve(x, first=x.first + shift * size)))
    halves = blank(dtype, rows, 2 * width)
    left = evolve(halves, width=width)
    right = evolve(left, first=left.first + width * size)
    found += [("the other half of a wider tensor", left, right), ("the other half, swapped", right, left)]
    dense = evolve(left, pitch=width, first=left.first + 5 * size)
    found.append(("rows of another pitch", left, dense))
    return found


def assert_right_from_a_copy(x: Tensor, y: Tensor, before: Any, given: Any) -> None:
    assert y.outside_equals(before), "a byte outside the output changed"
    assert compare(cupy, FORM, ORIGINAL, x.dtype, given, y.values()).right


@ANY_DTYPE
@ANY_RECIPE
def test_overlapping_buffers_are_right_from_a_copy(kernels: Kernels, sm_count: int, recipe: Recipe, dtype: str) -> None:
    rows, width = geometry_of(recipe, dtype)
    ready = prepared(kernels, recipe, dtype, rows, width, sm_count)
    cases = overlapping(dtype, rows, width)
    for seed, (name, x, y) in enumerate(cases):
        refill(x, seed)
        before, given = x.raw.copy(), x.values().copy()
        assert run(ready, x, y) is Verdict.OVERLAP, name
        assert_right_from_a_copy(x, y, before, given)
    assert ready.launches == {Verdict.OVERLAP.value: len(cases)}


@ANY_RECIPE
def test_a_capture_without_scratch_refuses_overlap_and_says_what_to_do(
    kernels: Kernels, sm_count: int, session: Session, recipe: Recipe
) -> None:
    rows, width = geometry_of(recipe, "float16")
    ready = prepared(kernels, recipe, "float16", rows, width, sm_count)
    _, x, y = overlapping("float16", rows, width)[0]
    refill(x, 1)
    before = x.raw.copy()
    session.synchronize()
    with pytest.raises(LaunchError, match=r"rowsmith\.prepare\(\.\.\., scratch=True\)"):
        session.capture(lambda: ready.run(x.span, y.span, session.pointer), 1)
    session.synchronize()
    assert bool(cupy.array_equal(x.raw, before))
    assert ready.launches.total() == 0
    # The session is as good as before: the same capture goes through once there is scratch.
    ready.reserve(x.span.bytes + 16)
    replayed(session, ready, x, y)


@ANY_DTYPE
def test_with_scratch_prepared_every_replay_reads_the_input_of_its_time(
    kernels: Kernels, sm_count: int, session: Session, dtype: str
) -> None:
    rows, width = 9, 2048
    for recipe in (ORIGINAL, CUBS[0]):
        for _, x, y in overlapping(dtype, rows, width):
            ready = prepared(kernels, recipe, dtype, rows, width, sm_count)
            ready.reserve(x.span.bytes + 16)
            replayed(session, ready, x, y)
            assert ready.launches == {Verdict.OVERLAP.value: 1}


def replayed(session: Session, ready: Prepared, x: Tensor, y: Tensor) -> None:
    """Capture a launch once and replay it on three inputs."""
    refill(x, 0)
    session.synchronize()
    pool = cupy.get_default_memory_pool()
    held = pool.total_bytes(), pool.used_bytes()
    graph = session.capture(lambda: ready.run(x.span, y.span, session.pointer), 1)
    assert (pool.total_bytes(), pool.used_bytes()) == held, "the capture allocated"
    for seed in (1, 2, 3):
        refill(x, seed)
        before, given = x.raw.copy(), x.values().copy()
        session.synchronize()
        graph.replay()
        session.synchronize()
        assert_right_from_a_copy(x, y, before, given)


def test_launches_on_two_streams_never_share_a_copy(kernels: Kernels, sm_count: int) -> None:
    """Overlapping launches of one prepared workload on two streams at once: each reads a copy of its own."""
    rows, width = 64, 65536
    ready = prepared(kernels, CUBS[0], "float32", rows, width, sm_count)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    pairs = [overlapping("float32", rows, width)[0][1:] for _ in streams]
    for turn in range(10):
        for seed, (x, _) in enumerate(pairs):
            refill(x, 10 * turn + seed)
        kept = [(x.raw.copy(), x.values().copy()) for x, _ in pairs]
        cupy.cuda.Device().synchronize()
        for (x, y), stream in zip(pairs, streams, strict=True):
            ready.run(x.span, y.span, int(stream.ptr))
        cupy.cuda.Device().synchronize()
        for (x, y), (before, given) in zip(pairs, kept, strict=True):
            assert_right_from_a_copy(x, y, before, given)
