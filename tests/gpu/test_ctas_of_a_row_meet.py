"""Kernels whose CTAs wait for one another: right at any grid, launch after launch, on streams at once and in graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
import pytest

from kernels.execute import Prepared
from kernels.guard import Verdict
from kernels.recipe import Recipe
from kernels.reference import compare
from kernels.workspace import SPARE_ANNOUNCED, workspaces
from tests.gpu.tensors import (
    FORM,
    SPLITS,
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

ANY_SPLIT = pytest.mark.parametrize("recipe", SPLITS, ids=lambda row: row.id)


def launch(ready: Prepared, x: Tensor, y: Tensor, stream: Any) -> None:
    assert ready.run(x.span, y.span, int(stream.ptr)) is Verdict.RECIPE


def assert_right(recipe: Recipe, x: Tensor, y: Tensor) -> None:
    assert compare(cupy, FORM, recipe, x.dtype, x.values(), y.values()).right


@ANY_SPLIT
def test_more_launches_than_the_counter_has_turns_repeat_bit_for_bit(
    kernels: Kernels, sm_count: int, recipe: Recipe
) -> None:
    """A word of an earlier launch is never taken for one of this launch: the input changes all the time."""
    rows, width = 2, whole_width(recipe, 5) + 1
    ready = prepared(kernels, recipe, "float32", rows, width, sm_count)
    inputs = [random("float32", rows, width, seed=seed) for seed in range(5)]
    wanted = [blank("float32", rows, width) for _ in inputs]
    for x, y in zip(inputs, wanted, strict=True):
        check(ready, x, y)
    outs = [blank("float32", rows, width) for _ in range(205)]
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(12):
            for turn, out in enumerate(outs):
                launch(ready, inputs[turn % 5], out, stream)
            stream.synchronize()
            for turn, out in enumerate(outs):
                assert bool(cupy.array_equal(out.bits, wanted[turn % 5].bits))
                out.bits.fill(0)
            stream.synchronize()


@ANY_SPLIT
def test_grids_of_one_size_share_a_workspace_whatever_their_rows(
    kernels: Kernels, sm_count: int, recipe: Recipe
) -> None:
    part = whole_width(recipe, 1)
    shapes = ((2, 15 * part - 8), (3, 10 * part - 8), (1, 30 * part - 8))
    readies = [prepared(kernels, recipe, "float16", rows, width, sm_count) for rows, width in shapes]
    assert len({ready.chosen_shape.workspace_bytes for ready in readies}) == 1
    for turn in range(20):
        for ready, (rows, width) in zip(readies, shapes, strict=True):
            check(ready, random("float16", rows, width, seed=turn), blank("float16", rows, width))


@ANY_SPLIT
def test_a_grid_that_is_not_resident_at_once_ends_and_is_right(kernels: Kernels, sm_count: int, recipe: Recipe) -> None:
    """8,000 CTAs, while other work holds SMs: those that wait do so for CTAs that run."""
    rows = 40
    width = whole_width(recipe, 200) - 8
    ready = prepared(kernels, recipe, "float16", rows, width, sm_count)
    capacity = kernels[recipe.id, "float16"].receipt.resident_ctas_per_sm
    assert capacity is not None
    assert ready.chosen_shape.ctas > sm_count * capacity
    x, y = random("float16", rows, width), blank("float16", rows, width)
    busy, work = cupy.cuda.Stream(non_blocking=True), cupy.ones(2**26, cupy.float32)
    cupy.cuda.Device().synchronize()
    with busy:
        for _ in range(20):
            cupy.sin(work, out=work)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        launch(ready, x, y, stream)
    cupy.cuda.Device().synchronize()
    assert_right(recipe, x, y)


@ANY_SPLIT
def test_streams_at_once_have_workspaces_of_their_own(kernels: Kernels, sm_count: int, recipe: Recipe) -> None:
    rows, width = 4, whole_width(recipe, 20) - 8
    ready = prepared(kernels, recipe, "float16", rows, width, sm_count)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(6)]
    pairs = [(random("float16", rows, width, seed=n), blank("float16", rows, width)) for n in range(6)]
    cupy.cuda.Device().synchronize()
    for _ in range(200):
        for (x, y), stream in zip(pairs, streams, strict=True):
            launch(ready, x, y, stream)
    cupy.cuda.Device().synchronize()
    for x, y in pairs:
        assert_right(recipe, x, y)
    held = workspaces(ready.chosen.device)
    size = ready.chosen_shape.workspace_bytes
    assert len({held.of(int(stream.ptr), ready.chosen.recipe.template, size) for stream in streams}) == len(streams)


@ANY_SPLIT
def test_graphs_replayed_at_once_do_not_meet(kernels: Kernels, sm_count: int, session: Session, recipe: Recipe) -> None:
    """Two captures of one workload, replayed on two streams; a capture's own launches follow one another."""
    rows, width = 4, whole_width(recipe, 20) - 8
    ready = prepared(kernels, recipe, "float16", rows, width, sm_count)
    pairs = [(random("float16", rows, width, seed=n), blank("float16", rows, width)) for n in range(2)]
    session.synchronize()
    graphs = [
        session.capture(lambda pair=pair: ready.run(*(t.span for t in pair), session.pointer), 30) for pair in pairs
    ]
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in graphs]
    for seed in (3, 4):
        for x, y in pairs:
            refill(x, seed)
            y.bits.fill(0)
        session.synchronize()
        for _ in range(10):
            for graph, stream in zip(graphs, streams, strict=True):
                graph.handle.launch(stream)
        session.synchronize()
        for x, y in pairs:
            assert_right(recipe, x, y)
    assert ready.launches == {Verdict.RECIPE.value: 60}


def test_branches_of_one_capture_have_workspaces_of_their_own(
    kernels: Kernels, sm_count: int, session: Session
) -> None:
    recipe = SPLITS[0]
    rows, width = 8, whole_width(recipe, 30) - 8
    ready = prepared(kernels, recipe, "float16", rows, width, sm_count)
    pairs = [(random("float16", rows, width, seed=n), blank("float16", rows, width)) for n in range(2)]
    branch = cupy.cuda.Stream(non_blocking=True)
    forked, joined = cupy.cuda.Event(disable_timing=True), cupy.cuda.Event(disable_timing=True)

    def both() -> None:
        forked.record(session.stream)
        branch.wait_event(forked)
        for (x, y), stream in zip(pairs, (session.stream, branch), strict=True):
            for _ in range(20):
                launch(ready, x, y, stream)
        joined.record(branch)
        session.stream.wait_event(joined)

    session.synchronize()
    graph = session.capture(both, 1)
    for _ in range(5):
        graph.replay()
    session.synchronize()
    for x, y in pairs:
        assert_right(recipe, x, y)


def test_a_capture_without_a_workspace_runs_the_original(kernels: Kernels, sm_count: int, session: Session) -> None:
    """Captures cannot allocate; the next launch outside of one makes room for more of them."""
    recipe = SPLITS[0]
    rows, width = 3, whole_width(recipe, 11) - 8
    ready = prepared(kernels, recipe, "float16", rows, width, sm_count)
    x, y = random("float16", rows, width), blank("float16", rows, width)
    session.synchronize()

    def capture() -> Any:
        return session.capture(lambda: ready.run(x.span, y.span, session.pointer), 1)

    graphs = [capture() for _ in range(2 * SPARE_ANNOUNCED)]
    assert ready.launches[Verdict.NO_WORKSPACE.value] > 0
    assert ready.launches[Verdict.RECIPE.value] >= SPARE_ANNOUNCED
    graphs[-1].replay()
    session.synchronize()
    assert_right(recipe, x, y)
    assert run(ready, x, y) is Verdict.RECIPE
    missed = ready.launches[Verdict.NO_WORKSPACE.value]
    capture()
    assert ready.launches[Verdict.NO_WORKSPACE.value] == missed
    workspaces(ready.chosen.device).release_captures()
