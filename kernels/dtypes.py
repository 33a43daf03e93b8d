"""The storage dtypes that kernels read and write; arithmetic is FP32 everywhere."""

from __future__ import annotations

from attrs import frozen

from kernels.errors import KernelError


@frozen
class Storage:
    """A storage dtype. `bits` counts the significand and its hidden bit; `exponent_min` is the least normal's."""

    name: str
    bytes: int
    cuda: str
    bits: int
    exponent_min: int
    largest: float


STORAGE = {
    storage.name: storage
    for storage in (
        Storage("float16", 2, "__half", 11, -14, 65504.0),
        Storage("bfloat16", 2, "__nv_bfloat16", 8, -126, 3.3895313892515355e38),
        Storage("float32", 4, "float", 24, -126, 3.4028234663852886e38),
    )
}


def storage(name: str) -> Storage:
    """Return the storage dtype called `name`, or raise `KernelError` listing those there are."""
    try:
        return STORAGE[name]
    except (KeyError, TypeError):
        raise KernelError(f"dtype {name!r} is not supported; use one of {', '.join(STORAGE)}") from None
