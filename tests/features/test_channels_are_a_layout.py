"""A program that reads along channels takes contiguous images, whose positions are rows that interleave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import features.program
from features.errors import ProgramError, WorkloadError
from features.expression import CHANNELS, Cast, Combine, Load, Map, Reduce, Store, expression_from_tree
from features.program import Program, axis_of, scan
from features.proof import form_of
from features.workload import workload
from features.workloads import workloads

X = np.zeros((3, 4, 5, 6), dtype=np.float32)


def shares(dtype: str, along: str = CHANNELS) -> Program:
    """Every element over the sum of its row."""
    row = Cast(Load(dtype, along), "float32")
    return Program(Store(Cast(Combine(row, Reduce(row), "divide"), dtype), dtype))


@pytest.fixture(autouse=True)
def op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(features.program.OPS, "shares", shares)


def test_a_load_along_channels_is_told_in_tree_and_form() -> None:
    """A load of rows is written as it always was."""
    assert Load("float16").tree() == ["load", "float16"]
    assert Load("float16", CHANNELS).tree() == ["load", "float16", "channels"]
    assert form_of(shares("float16")) == "divide(c,reduce.sum.c)"
    assert form_of(shares("float16", "last")) == "divide(x,reduce.sum)"
    assert shares("float16").digest() != shares("float16", "last").digest()
    assert expression_from_tree(shares("float16").tree()) == shares("float16").expression
    assert (axis_of(shares("float16")), axis_of(scan("float16"))) == (CHANNELS, "last")


def test_loads_that_disagree_are_no_program() -> None:
    mixed = Program(Store(Combine(Load("float32"), Map(Load("float32", CHANNELS), "abs"), "divide"), "float32"))
    with pytest.raises(ProgramError, match="all along last or all along channels"):
        axis_of(mixed)


@pytest.mark.parametrize(
    ("shape", "rows", "width", "inner"),
    [
        ((3, 4, 5, 6), 90, 4, 30),
        ((3, 4), 3, 4, 1),
        ((3, 4, 7), 21, 4, 7),
        ((1, 1, 1, 1, 1), 1, 1, 1),
        ((0, 4, 5), 0, 4, 1),
        ((3, 0, 5), 15, 0, 5),
        ((3, 4, 0), 0, 4, 1),
        ((0, 4, 2**40, 2**40), 0, 4, 1),
    ],
)
def test_every_position_of_an_image_is_a_row(shape: tuple[int, ...], rows: int, width: int, inner: int) -> None:
    work = workload("shares", shape, "float32")
    assert (work.rows, work.width, work.row_pitch, work.inner) == (rows, width, width, inner)


def test_an_element_lies_where_the_workload_says() -> None:
    work = workload("shares", (3, 4, 5), "float32")
    memory = np.arange(60)
    array = memory.reshape(3, 4, 5)
    for r in range(work.rows):
        for c in range(work.width):
            place = r // work.inner * work.row_pitch * work.inner + c * work.inner + r % work.inner
            assert memory[place] == array[r // 5, c, r % 5]


def test_an_array_without_channels_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"shape \(8,\) has no channels; shares needs images") as caught:
        workload("shares", (8,), "float32")
    assert (caught.value.code, caught.value.field) == ("shape_invalid", "shape")


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (X.transpose(0, 2, 3, 1), "stride 30 on axis 3 is not 1"),
        (np.zeros((3, 5, 6, 4)).transpose(0, 3, 1, 2), "stride 4 on axis 3 is not 1"),  # channels last
        (X[:, :2], "stride 120 on axis 0 is not 60"),
        (X[:, :, :, ::2], "stride 2 on axis 3 is not 1"),
        (X[..., ::-1], "stride -1 on axis 3 is not 1"),
        (np.broadcast_to(X[:1], (3, 4, 5, 6)), "stride 0 on axis 0 is not 120"),
    ],
)
def test_an_array_with_gaps_or_another_order_is_refused(array: np.ndarray[Any, Any], said: str) -> None:
    steps = tuple(step // array.itemsize for step in array.strides)
    with pytest.raises(WorkloadError, match=f"{said}; .*copy to a contiguous array first") as caught:
        workload("shares", array.shape, "float32", strides=steps)
    assert (caught.value.code, caught.value.field) == ("layout_unsupported", "strides")


@pytest.mark.parametrize("strides", [(120, 30, 6, 1), (np.int64(120), 30, 6, 1)])
def test_the_strides_of_a_contiguous_array_are_taken(strides: tuple[int, ...]) -> None:
    assert workload("shares", X.shape, "float32", strides=strides) == workload("shares", X.shape, "float32")
    assert workload("shares", (1, 4, 1, 6), "float32", strides=(7, 6, -9, 1)).inner == 6
    assert workload("shares", (0, 4, 6), "float32", strides=(7, 7, 7)).rows == 0


@pytest.mark.parametrize("strides", [(1,), "120", (120, 30, 6, 1.0), (120, 30, 6, None)])
def test_strides_that_are_no_list_of_whole_numbers_are_refused(strides: Any) -> None:
    with pytest.raises(WorkloadError, match="stride"):
        workload("shares", X.shape, "float32", strides=strides)


def test_a_tensor_past_the_largest_is_refused_with_its_shape() -> None:
    with pytest.raises(WorkloadError, match=r"shape \(2, 1099511627776, 1099511627776\) spans more"):
        workload("shares", (2, 2**40, 2**40), "float32")


def test_many_workloads_are_each_of_them() -> None:
    many = workloads(shares("float16"), [90, 3, 0], [4, 5, 6], inners=[30, 1, 1])
    assert [many.at(i) for i in range(3)] == [
        workload("shares", shape, "float16") for shape in ((3, 4, 5, 6), (3, 5), (0, 6))
    ]


@pytest.mark.parametrize(
    ("program", "inners"), [(shares("float16"), [7]), (shares("float16"), [0]), (scan("float16"), [2])]
)
def test_rows_that_are_no_whole_images_are_refused(program: Program, inners: list[int]) -> None:
    """And so are images of a program along the last axis."""
    with pytest.raises(WorkloadError, match="8 rows at index 0 are no whole images"):
        workloads(program, [8], [4], inners=inners)
    with pytest.raises(WorkloadError, match="not of one length"):
        workloads(program, [8], [4], inners=[1, 1])
