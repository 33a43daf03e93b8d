"""Arrays of any library as what a launch needs: address, extents, strides in elements, dtype, device and stream."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from attrs import field, frozen

from kernels.dtypes import STORAGE, storage
from kernels.errors import LaunchError

_TYPESTR = {"<f2": "float16", "<f4": "float32"}


@frozen
class Buffer:
    """A device array. `owner` keeps its memory alive; strides are in elements."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int
    owner: Any = field(eq=False, repr=False)

    @property
    def alignment_bytes(self) -> int:
        """The largest power of two up to 4096 that divides the address."""
        return min(self.address & -self.address, 4096) if self.address else 4096


def is_torch(array: Any) -> bool:
    """Tell whether an array is a torch tensor, without importing torch."""
    return type(array).__module__.partition(".")[0] == "torch"


def buffer(array: Any, name: str) -> Buffer:
    """Return the array as a `Buffer`; `name` says in errors which argument it was.

    Takes torch CUDA tensors (float16, bfloat16, float32) and everything with `__cuda_array_interface__` (float16,
    float32), CuPy arrays among them.
    """
    if is_torch(array):
        if array.device.type != "cuda":
            raise LaunchError(f"{name} is a torch tensor on {array.device}; move it to a CUDA device")
        _refuse_gradient(array, name)
        dtype = str(array.dtype).removeprefix("torch.")
        address = _whole(array.data_ptr(), dtype, name)
        return Buffer(address, tuple(array.shape), tuple(array.stride()), dtype, array.device.index, array)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise LaunchError(f"{name} is a {type(array).__name__}; pass a CuPy array or a torch CUDA tensor")
    if interface.get("mask") is not None:
        raise LaunchError(f"{name} has a mask; kernels read every element, so fill the masked ones first")
    dtype = _TYPESTR.get(interface["typestr"], interface["typestr"])
    shape, address = tuple(interface["shape"]), _whole(int(interface["data"][0]), dtype, name)
    element = storage(dtype).bytes
    bytewise = interface.get("strides")
    if bytewise is not None and any(stride % element for stride in bytewise):
        raise LaunchError(f"{name} has strides {bytewise} in bytes, not whole {dtype} elements")
    strides = _contiguous(shape) if bytewise is None else tuple(stride // element for stride in bytewise)
    return Buffer(address, shape, strides, dtype, _device_of(address, array), array)


def _refuse_gradient(tensor: Any, name: str) -> None:
    """Raise where torch would record what is done with a tensor: a kernel of ours would be missing from it."""
    if tensor.requires_grad:
        import torch

        if torch.is_grad_enabled():
            raise LaunchError(
                f"{name} requires a gradient, and none flows through this call; make it under torch.no_grad(), or pass "
                f"{name}.detach()"
            )


def _whole(address: int, dtype: str, name: str) -> int:
    """Return an address of whole elements: a load of one that is not loses the device."""
    element = STORAGE[dtype].bytes if dtype in STORAGE else 1  # another dtype is judged by who asks for it
    if address % element:
        raise LaunchError(f"{name} begins at {address:#x}, off a boundary of {element} bytes; copy to aligned memory")
    return address


def current_stream(array: Any, device: int) -> int:
    """Return the pointer of the array library's own current stream on a device.

    An array of an unknown library may name the stream that its values are due on; then that one is it.
    """
    if is_torch(array):
        import torch

        return int(torch.cuda.current_stream(device).cuda_stream)
    import cupy

    interface = {} if isinstance(array, cupy.ndarray) else array.__cuda_array_interface__
    if interface.get("stream") is not None:
        return int(interface["stream"])
    with cupy.cuda.Device(device):
        return int(cupy.cuda.get_current_stream().ptr)


def stream_pointer(stream: Any) -> int:
    """Return the pointer of a stream: an integer, a torch or CuPy stream, or one that speaks `__cuda_stream__`."""
    if isinstance(stream, int):
        return stream
    for attribute in ("cuda_stream", "ptr"):
        if (pointer := getattr(stream, attribute, None)) is not None:
            return int(pointer)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    raise LaunchError(f"stream is a {type(stream).__name__}; pass a torch or CuPy stream, or its pointer")


def refuse_read_only(array: Any, name: str) -> None:
    """Raise `LaunchError` where an array says that it must not be written."""
    interface = {} if is_torch(array) else getattr(array, "__cuda_array_interface__", {})
    if interface.get("data", (0, False))[1]:
        raise LaunchError(f"{name} is read-only; pass an array that may be written")


@frozen
class StreamPointer:
    """A stream known by its pointer, as CuPy takes other libraries' streams."""

    pointer: int

    def __cuda_stream__(self) -> tuple[int, int]:
        """Answer with the protocol's version and the pointer."""
        return 0, self.pointer


def empty_like(array: Any, reference: Buffer, stream: int | None) -> Any:
    """Return a new contiguous array of the library, shape and dtype of `array`, for use on `stream`.

    Allocators hand a freed block out again to work of the stream it was asked for on: asked for on another one, it
    could still be in use there. `None` is the library's own current stream.
    """
    if is_torch(array):
        import torch

        on = nullcontext() if stream is None else torch.cuda.stream(torch.cuda.ExternalStream(stream, array.device))
        with on:
            return torch.empty(reference.shape, dtype=array.dtype, device=array.device)
    import cupy

    on = nullcontext() if stream is None else cupy.cuda.Stream.from_external(StreamPointer(stream))
    with cupy.cuda.Device(reference.device), on:
        return cupy.empty(reference.shape, dtype=reference.dtype)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _device_of(address: int, array: Any) -> int:
    device = getattr(array, "device", None)
    if device is not None and hasattr(device, "id"):
        return int(device.id)
    import cupy

    return int(cupy.cuda.runtime.pointerGetAttributes(address).device) if address else int(cupy.cuda.Device().id)
