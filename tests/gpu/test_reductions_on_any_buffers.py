"""Reductions whose result lies in or near the input, in graphs, in flight together and again and again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import cupy
import pytest
from attrs import evolve

from kernels.guard import Verdict
from kernels.recipe import Recipe
from kernels.recipes import original_of, recipe
from kernels.reference import compare
from tests.gpu.geometries import geometry_of, shapes
from tests.gpu.reductions import EVERY, FORMS, bits_of, legal
from tests.gpu.tensors import DTYPES, Kernels, Tensor, blank, prepared, random, refill, results, run

if TYPE_CHECKING:
    from calibration.gpu import Session

ANY_DTYPE = pytest.mark.parametrize("dtype", DTYPES)


def right(row: Recipe, given: Any, y: Tensor) -> bool:
    return compare(cupy, row.form, row, y.dtype, given, y.values()).right


@ANY_DTYPE
@pytest.mark.parametrize("form", FORMS)
def test_rows_of_one_element_work_in_place(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    for row in (original_of(form), *legal(form, random(dtype, 300, 1))):
        for offset in (0, 1, 3):
            x = random(dtype, 300, 1, offset=offset)
            given = x.values().copy()
            verdict = run(prepared(kernels, row, dtype, 300, 1, sm_count), x, x)
            assert verdict is (Verdict.RECIPE if row.role == "original" else Verdict.IN_PLACE)
            assert right(original_of(form), given, x)


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.id)
def test_a_result_inside_the_input_is_right_from_a_copy(kernels: Kernels, sm_count: int, row: Recipe) -> None:
    for dtype in row.dtypes:
        rows, width = geometry_of(row, dtype)
        size = 4 if dtype == "float32" else 2
        ready = prepared(kernels, row, dtype, rows, width, sm_count)
        for place in (0, width - 1, width + 3, rows * width - rows):
            x = random(dtype, rows, width, seed=place)
            y = Tensor(x.raw, dtype, rows, 1, 1, x.first + place * size)
            before, given = x.raw.copy(), x.values().copy()
            assert run(ready, x, y) is Verdict.OVERLAP
            assert y.outside_equals(before)
            assert right(original_of(row.form), given, y)


@pytest.mark.parametrize("row", [row for row in EVERY if row.alignment[0] != "any"], ids=lambda row: row.id)
def test_a_misaligned_input_gets_the_original_bit_for_bit(kernels: Kernels, sm_count: int, row: Recipe) -> None:
    """And a misaligned result changes nothing: it is written by elements."""
    rows, width = geometry_of(row, "bfloat16")
    ready = prepared(kernels, row, "bfloat16", rows, width, sm_count)
    for offset in range(9):
        x = random("bfloat16", rows, width, seed=offset, offset=offset)
        y = results(row, x, offset=(offset + 1) % 3)
        assert run(ready, x, y) is (Verdict.RECIPE if offset % 8 == 0 else Verdict.MISALIGNED)
        if offset % 8:
            assert (y.bits.get() == bits_of(kernels, sm_count, original_of(row.form), x)).all()


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.id)
def test_a_graph_replays_on_the_input_of_its_time(
    kernels: Kernels, sm_count: int, session: Session, row: Recipe
) -> None:
    """Three launches in one graph, so that a split finds the workspace as its last launch left it."""
    for dtype in row.dtypes:
        rows, width = geometry_of(row, dtype)
        x, ready = random(dtype, rows, width), prepared(kernels, row, dtype, rows, width, sm_count)
        y = results(row, x)
        assert run(ready, x, y) is Verdict.RECIPE  # so that whatever a launch needs is there
        session.synchronize()
        graph = session.capture(partial(ready.run, x.span, y.span, session.pointer), 3)
        for seed in (1, 2, 3):
            refill(x, seed)
            y.raw.fill(0xFF)
            cupy.cuda.Device().synchronize()
            graph.replay()
            session.synchronize()
            assert right(row, x.values(), y)
            assert y.outside_equals(0xFF)
        assert ready.launches == {Verdict.RECIPE.value: 4}


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.id)
def test_runs_repeat_bit_for_bit(kernels: Kernels, sm_count: int, row: Recipe) -> None:
    """Whoever of a split's CTAs is last."""
    for dtype in row.dtypes:
        for rows, width in shapes(row, dtype):
            x = random(dtype, rows, width, seed=3)
            first = bits_of(kernels, sm_count, row, x)
            assert all((bits_of(kernels, sm_count, row, x) == first).all() for _ in range(5))


@ANY_DTYPE
@pytest.mark.parametrize("name", ["sum.split", "max.split", "mean.split"])
def test_splits_stand_being_launched_again_and_again(kernels: Kernels, sm_count: int, name: str, dtype: str) -> None:
    """2000 launches without a wait between them, of shapes with few and many parts, on one prepared workload each."""
    row = recipe(name)
    stream = cupy.cuda.get_current_stream()
    for rows, width in ((1, 2**20), (1, 8200), (3, 300_001), (132, 20_000)):
        x, ready = random(dtype, rows, width, seed=rows), prepared(kernels, row, dtype, rows, width, sm_count)
        outs = [results(row, x) for _ in range(20)]
        cupy.cuda.Device().synchronize()
        for turn in range(500):
            ready.run(x.span, outs[turn % len(outs)].span, int(stream.ptr))
        cupy.cuda.Device().synchronize()
        first = outs[0].bits.get()
        assert all((out.bits.get() == first).all() for out in outs)
        assert right(row, x.values(), outs[0])


@pytest.mark.parametrize("name", ["sum.split", "max.split"])
def test_splits_on_several_streams_never_meet(kernels: Kernels, sm_count: int, name: str) -> None:
    """One prepared workload in flight on four streams at once, each with an input of its own."""
    row, rows, width = recipe(name), 2, 2**20
    ready = prepared(kernels, row, "float32", rows, width, sm_count)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
    inputs = [random("float32", rows, width, seed=number) for number in range(4)]
    outs = [results(row, x) for x in inputs]
    for _ in range(50):
        for out in outs:
            out.raw.fill(0xFF)
        cupy.cuda.Device().synchronize()
        for x, y, stream in zip(inputs, outs, streams, strict=True):
            for _ in range(5):
                ready.run(x.span, y.span, int(stream.ptr))
        cupy.cuda.Device().synchronize()
        assert all(right(row, x.values(), y) for x, y in zip(inputs, outs, strict=True))


def test_a_split_leaves_other_launches_alone(kernels: Kernels, sm_count: int) -> None:
    """Between two splits of one workload runs another kernel on the same tensors."""
    x = random("float32", 1, 2**20, seed=9)
    split, whole = (prepared(kernels, recipe(f"sum.{n}"), "float32", 1, 2**20, sm_count) for n in ("split", "lean1024"))
    y, z = blank("float32", 1, 1), blank("float32", 1, 1)
    for _ in range(5):
        run(split, x, y)
        run(whole, x, z)
        assert right(recipe("sum.split"), x.values(), y)
        assert right(recipe("sum.lean1024"), x.values(), z)
    assert evolve(y, first=y.first).outside_equals(0xFF)
