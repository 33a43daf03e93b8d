"""Arrays of any library become address, extents, strides in elements, dtype and device; what is not ours is named."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.arrays import buffer, is_torch, stream_pointer
from kernels.errors import KernelError, LaunchError


class Foreign:
    """An array of some library that shares memory through `__cuda_array_interface__`; it lies on device 1."""

    device = SimpleNamespace(id=1)

    def __init__(self, **interface: Any) -> None:
        default = {"shape": (3, 4), "typestr": "<f2", "data": (4096, False), "version": 3}
        self.__cuda_array_interface__ = {**default, **interface}


def tensor(**changes: Any) -> Any:
    """Something that looks like a torch tensor, as far as we look at one."""
    facts = {
        "device": SimpleNamespace(type="cuda", index=1),
        "dtype": "torch.bfloat16",
        "shape": (3, 4),
        "stride": lambda: (4, 1),
        "data_ptr": lambda: 8192,
        "requires_grad": False,
    }
    kind = type("Tensor", (SimpleNamespace,), {"__module__": "torch"})
    return kind(**{**facts, **changes})


def test_an_array_without_strides_is_contiguous() -> None:
    array = Foreign(shape=(2, 3, 4))
    found = buffer(array, "x")
    assert (found.address, found.shape, found.strides) == (4096, (2, 3, 4), (12, 4, 1))
    assert (found.dtype, found.device) == ("float16", 1)
    assert found.owner is array


@pytest.mark.parametrize(("typestr", "dtype", "size"), [("<f2", "float16", 2), ("<f4", "float32", 4)])
def test_strides_are_counted_in_elements(typestr: str, dtype: str, size: int) -> None:
    found = buffer(Foreign(typestr=typestr, strides=(10 * size, size)), "x")
    assert (found.dtype, found.strides) == (dtype, (10, 1))


def test_strides_that_are_none_are_contiguous_too() -> None:
    assert buffer(Foreign(strides=None), "x").strides == (4, 1)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_contiguous_strides_are_those_of_numpy(shape: list[int]) -> None:
    """An extent of 0 counts as 1, as NumPy counts it when it makes an array."""
    expected = tuple(stride // 2 for stride in np.empty([max(extent, 1) for extent in shape], np.float16).strides)
    assert buffer(Foreign(shape=tuple(shape)), "x").strides == expected


def test_strides_of_parts_of_elements_are_refused_by_name() -> None:
    with pytest.raises(LaunchError, match=r"out has strides \(9, 2\) in bytes, not whole float16 elements"):
        buffer(Foreign(strides=(9, 2)), "out")


@pytest.mark.parametrize("typestr", ["<f8", ">f2", "<i2", "|V2", "<c8", "|b1"])
def test_other_dtypes_are_refused_with_those_that_there_are(typestr: str) -> None:
    with pytest.raises(KernelError, match="use one of float16, bfloat16, float32"):
        buffer(Foreign(typestr=typestr), "x")


@pytest.mark.parametrize("array", [np.ones((2, 2), np.float16), [[1.0]], None, 3])
def test_what_is_not_on_a_gpu_is_refused_by_its_type(array: object) -> None:
    with pytest.raises(LaunchError, match=f"x is a {type(array).__name__}; pass a CuPy array or a torch CUDA tensor"):
        buffer(array, "x")


@pytest.mark.parametrize(
    ("address", "alignment"), [(0, 4096), (2, 2), (6, 2), (16, 16), (48, 16), (4096, 4096), (2**40, 4096)]
)
def test_alignment_is_the_largest_power_of_two_that_divides_the_address(address: int, alignment: int) -> None:
    array = Foreign(data=(address, False), shape=(0, 4) if address == 0 else (1, 1))
    assert buffer(array, "x").alignment_bytes == alignment


def test_a_torch_tensor_is_known_without_importing_torch() -> None:
    found = buffer(tensor(), "x")
    assert (found.address, found.shape, found.strides) == (8192, (3, 4), (4, 1))
    assert (found.dtype, found.device) == ("bfloat16", 1)
    assert is_torch(tensor())
    assert not is_torch(Foreign())


def test_a_tensor_that_is_not_on_a_gpu_is_refused_with_its_device() -> None:
    host = type("Device", (SimpleNamespace,), {"__str__": lambda self: "cpu"})(type="cpu", index=None)
    with pytest.raises(LaunchError, match="x is a torch tensor on cpu; move it to a CUDA device"):
        buffer(tensor(device=host), "x")


def test_no_gradient_is_lost_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(is_grad_enabled=lambda: True))
    with pytest.raises(
        LaunchError, match=r"gamma requires a gradient, .*torch\.no_grad\(\), or pass gamma\.detach\(\)"
    ):
        buffer(tensor(requires_grad=True), "gamma")
    assert buffer(tensor(), "gamma").address == 8192
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(is_grad_enabled=lambda: False))
    assert buffer(tensor(requires_grad=True), "gamma").address == 8192


def test_streams_of_every_kind_have_a_pointer() -> None:
    assert stream_pointer(77) == 77
    assert stream_pointer(SimpleNamespace(cuda_stream=78)) == 78
    assert stream_pointer(SimpleNamespace(ptr=79)) == 79
    assert stream_pointer(SimpleNamespace(__cuda_stream__=lambda: (0, 80))) == 80
    assert stream_pointer(SimpleNamespace(__cuda_stream__=(0, 81))) == 81
    assert stream_pointer(SimpleNamespace(ptr=0)) == 0


def test_what_is_no_stream_is_refused_by_its_type() -> None:
    with pytest.raises(LaunchError, match="stream is a str; pass a torch or CuPy stream, or its pointer"):
        stream_pointer("0")
