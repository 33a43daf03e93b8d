"""Inputs and outputs of a point: seeded values, storage dtypes that CuPy has no name for, guards and poison."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from calibration.extents import shape_in_memory
from kernels.dtypes import storage

GUARD_BYTES = 256
POISON = 0xFF  # every storage dtype reads it as NaN

_UNIFORM = """
    unsigned int h = (unsigned int)(i) * 0x9E3779B1u ^ (unsigned int)(i >> 32) ^ seed;
    h ^= h >> 16; h *= 0x7FEB352Du; h ^= h >> 15; h *= 0x846CA68Bu; h ^= h >> 16;
    y = (float)(int)h * (1.0f / 2147483648.0f);
"""


@frozen(eq=False)
class Guarded:
    """A device tensor of rows x width storage elements with guard bytes on both sides; `inner` rows interleave."""

    raw: Any
    dtype: str
    rows: int
    width: int
    inner: int = 1

    @property
    def address(self) -> int:
        """Where the first element lies; 256-byte aligned, as allocations are."""
        return int(self.raw.data.ptr) + GUARD_BYTES

    @property
    def body(self) -> Any:
        """The tensor's bytes, without the guards."""
        return self.raw[GUARD_BYTES : self.raw.size - GUARD_BYTES]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents in memory: rows and width, or images, channels and positions."""
        return shape_in_memory(self.rows, self.width, self.inner)

    def values(self) -> Any:
        """Return the rows as a CuPy array that FP64 arithmetic takes: BF16 comes widened to FP32."""
        import cupy

        if self.dtype == "bfloat16":
            bits = self.body.view(cupy.uint16).astype(cupy.uint32) << 16
            return rows_of(bits.view(cupy.float32).reshape(self.shape))
        return rows_of(self.body.view(self.dtype).reshape(self.shape))

    def poison(self) -> None:
        """Fill tensor and guards, so that an element nobody writes, or a byte somebody should not, is seen."""
        self.raw.fill(POISON)

    def guards_survive(self) -> bool:
        """Whether both guards still hold the poison."""
        import cupy

        ends = cupy.concatenate((self.raw[:GUARD_BYTES], self.raw[-GUARD_BYTES:]))
        return bool(cupy.all(ends == POISON))


def rows_of(array: Any) -> Any:
    """Return an array of rows, or of images, channels and positions, as rows: of those of channels a copy."""
    return array if array.ndim == 2 else array.swapaxes(1, 2).reshape(-1, array.shape[1])


def guarded(dtype: str, rows: int, width: int) -> Guarded:
    """Allocate a poisoned tensor."""
    import cupy

    raw = cupy.empty(rows * width * storage(dtype).bytes + 2 * GUARD_BYTES, dtype=cupy.uint8)
    tensor = Guarded(raw, dtype, rows, width)
    tensor.poison()
    return tensor


def uniform(dtype: str, rows: int, width: int, seed: int) -> Guarded:
    """Return a tensor of values uniform in [-1, 1), a function of position and seed (no random library is needed).

    The mixing constants are those of the lowbias32 hash (C. Wellons, "Prospecting for Hash Functions", 2018).
    """
    import cupy

    tensor = guarded(dtype, rows, width)
    fill = cupy.ElementwiseKernel("uint32 seed", "float32 y", _UNIFORM, "rowsmith_uniform")
    values = cupy.empty(rows * width, dtype=cupy.float32)
    fill(cupy.uint32(seed & 0xFFFFFFFF), values)
    tensor.body[...] = narrowed(values, dtype).view(cupy.uint8)
    return tensor


def narrowed(values: Any, dtype: str) -> Any:
    """Return FP32 CuPy values in a storage dtype, rounded to nearest even; BF16 as its bits in uint16."""
    import cupy

    if dtype != "bfloat16":
        return values.astype(dtype, copy=False)
    bits = values.view(cupy.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return cupy.where(cupy.isnan(values), quiet, rounded).astype(cupy.uint16)
