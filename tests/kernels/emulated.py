"""Kernels on the host: their own source, compiled with a stand-in for CUDA, on tensors between fences.

A byte read or written outside a tensor is a fault, as is a shuffle or a barrier that a thread misses.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from kernels.dtypes import storage
from kernels.launch import LaunchShape, launch_shape
from kernels.recipe import Recipe
from kernels.reductions import REDUCTIONS, out_width
from kernels.source import device_file, macros
from kernels.templates import TEMPLATES

HOST = Path(__file__).parent / "host"
PAGE = mmap.PAGESIZE
UNWRITTEN = 0xEE
_LIBC = ctypes.CDLL(None, use_errno=True)
_PTX = (
    (r'asm\("(max|min)\.NaN\.f32 %0, %1, %2;" : "=f"\(result\) : "f"\(a\), "f"\(b\)\);', r"result = ptx_\1_nan(a, b);"),
    (r'asm\("(max|min)\.f32 %0, %1, %2;" : "=f"\(result\) : "f"\(a\), "f"\(b\)\);', r"result = ptx_\1(a, b);"),
    (r'asm\("ex2\.approx\.f32 %0, %1;" : "=f"\(result\) : "f"\(exponent\)\);', "result = exp2f(exponent);"),
    (r'asm\("rcp\.approx\.ftz\.f32 %0, %1;" : "=f"\(result\) : "f"\(count\)\);', "result = 1.0f / count;"),
    (r'const unsigned int shared = [^;]*;\s*asm volatile\("cp\.async\.c[ag][^\n]*\n', "ptx_copy(to, from, 16);\n"),
    (r'asm volatile\("\{ \.reg \.pred go;[^"]*@go ld\.[^"]*"[^;]*;', "if (go) ptx_copy(&value, from, sizeof value);"),
    (r'asm volatile\("\{ \.reg \.pred go;[^"]*@go st\.[^"]*"[^;]*;', "if (go) ptx_copy(to, &value, sizeof value);"),
    (r'asm volatile\("cp\.async\.wait_all;" ::: "memory"\);', ""),
    (r'asm volatile\("" : "\+r"\(word\[w\]\)\);', ";"),
    (r'asm volatile\("" : "\+r"\(word\.x\)[^;]*;', ";"),
    (r'asm volatile\("barrier\.cluster\.arrive[^;]*;"[^;]*;', "cluster_arrive();"),
    (r'asm volatile\("barrier\.cluster\.wait[^;]*;"[^;]*;', "cluster_wait();"),
    (
        r'const unsigned int shared = [^;]*;\s*asm volatile\("\{ \.reg \.b32 to; mapa[^"]*"[^;]*;',
        "cluster_put(place, rank, word);",
    ),
    (r"__shared__ alignas\(16\)", "alignas(16) __shared__"),
    (r"#\s*(include <|pragma).*", ""),
)


def bits_of(values: Any, dtype: str) -> Any:
    """Return NumPy values rounded to nearest even in a storage dtype, as unsigned integers."""
    single = np.ascontiguousarray(values, np.float32)
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return single.astype(dtype).view(np.uint16 if dtype == "float16" else np.uint32)
    bits = single.view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(single), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def values_of(bits: Any, dtype: str) -> Any:
    """Return what storage bits stand for, as FP64 values."""
    wide = (bits.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else bits.view(dtype)
    return wide.astype(np.float64)


@cache
def _library(recipe: Recipe, dtype: str) -> Any:
    """Compile a recipe's kernel for the host."""
    text = _inlined(recipe.template, set())
    for pattern, replacement in _PTX:
        text = re.sub(pattern, replacement, text)
    assert "asm" not in text, f"{recipe.template} has PTX that has no stand-in"
    arguments = len(launch_shape(recipe, 1, 100_000, 132).extra)
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", f"-DARGUMENTS={arguments}"]
    command.append(f"-DINTERLEAVED={1 * TEMPLATES[recipe.template].interleaved}")
    command.append("-fno-gnu-unique")  # shared memory of an inline function would be one for all kernels of the process
    with TemporaryDirectory(prefix="rowsmith-host-") as folder:
        built = Path(folder) / "kernel.so"
        (Path(folder) / "kernel.inc").write_text(text)
        includes = [f"-I{folder}", f"-I{HOST}", str(HOST / "launch.cpp"), "-o", str(built)]
        subprocess.run([*command, *macros(recipe, dtype), *includes], check=True)
        return ctypes.CDLL(str(built)).run


def _inlined(name: str, seen: set[str]) -> str:
    """Return a device file with every header of ours in its place, once."""
    seen.add(name)

    def header(found: re.Match[str]) -> str:
        return "" if found[1] in seen else _inlined(found[1], seen)

    return re.sub(r'#\s*include "([^"]+)"', header, device_file(name).decode())


class Fenced:
    """Bytes next to a page that may not be touched: behind them, or before them where `offset` bytes lie between."""

    def __init__(self, length: int, offset: int | None) -> None:
        room = -(-max(length + (offset or 0), 1) // PAGE) * PAGE
        self._map = mmap.mmap(-1, room + 2 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for fence in (start, start + PAGE + room):
            assert _LIBC.mprotect(ctypes.c_void_p(fence), PAGE, 0) == 0
        self.address = start + PAGE + (room - length if offset is None else offset)
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * length).from_address(self.address))


def _vector(values: Any, dtype: str, offset: int | None) -> Fenced:
    """Return a weight between fences."""
    bits = bits_of(values, dtype)
    fenced = Fenced(bits.nbytes, None if offset is None else offset * bits.itemsize)
    fenced.bytes[:] = bits.view(np.uint8)
    return fenced


def run(
    recipe: Recipe,
    dtype: str,
    values: Any,
    *,
    gap: int = 0,
    offset: int | None = None,
    spacing: int | None = None,
    y_offset: int | None = -1,
    seed: int = 0,
    weights: Sequence[Any] = (),
    weight_offset: int | None = None,
    parameters: Sequence[float] = (),
    in_place: bool = False,
    workspace: Any = None,
    shape: LaunchShape | None = None,
    inner: int = 1,
) -> tuple[Any, Any]:
    """Run on rows of values and return what was stored of them, and the results, as bits: a row's, or its one.

    Parameters
    ----------
    gap : elements between rows.
    offset : elements from a page's start to the first; None puts the last one at a page's end.
    spacing : elements from one row of results to the next; as many as it has when omitted.
    y_offset : as `offset`, of the results; at the other end of their pages than x when omitted.
    seed : of the order in which CTAs run, or clusters of them.
    weights : vectors of values, rounded to the storage dtype; `weight_offset` is as `offset`, of each.
    in_place : whether the results are written over x.
    shape : of a launch other than the recipe's own.
    inner : rows that interleave, of an image; then there are no gaps.
    """
    rows, width = values.shape
    size, pitch = storage(dtype).bytes, width + gap
    kind = np.uint16 if size == 2 else np.uint32
    given = bits_of(values, dtype)
    assert inner == 1 or gap == 0
    padded = np.full((rows, pitch), 0x7E7E, kind)
    padded[:, :width] = given
    elements = (rows - 1) * pitch + width
    x = Fenced(elements * size, None if offset is None else offset * size)
    results = out_width(recipe.form, width)
    spacing = results if spacing is None else spacing
    y_offset = (0 if offset is None else None) if y_offset == -1 else y_offset
    y = Fenced(((rows - 1) * spacing + results) * size, None if y_offset is None else y_offset * size)
    stored = interleaved(padded, inner).ravel()[:elements].view(np.uint8)
    y.bytes[:] = UNWRITTEN
    if in_place:
        assert spacing == pitch
        y = x
    x.bytes[:] = stored
    vectors = [_vector(weight, dtype, weight_offset) for weight in weights]
    shape = shape or launch_shape(recipe, rows, max(width, 1), 132)
    used = np.zeros(shape.workspace_bytes // 8 + 1, np.uint64) if workspace is None else workspace
    order = np.random.default_rng(seed).permutation(shape.ctas // recipe.cluster).astype(np.int32)
    first, second, *_ = (*shape.extra, 0, 0)
    held = [vector.bytes.copy() for vector in vectors]
    (parameter,) = parameters or (0.0,)
    addresses = [*(vector.address for vector in vectors), None, None][:2]
    _library(recipe, dtype)(
        *(ctypes.c_void_p(address) for address in (x.address, y.address, used.ctypes.data, *addresses)),
        *map(ctypes.c_longlong, (rows, width, pitch, spacing, inner)),
        ctypes.c_float(parameter),
        *(first, second, shape.threads, shape.ctas, ctypes.c_void_p(order.ctypes.data)),
    )
    assert not used.any(), "the workspace was not left empty"
    assert in_place or np.array_equal(x.bytes, stored), "the input changed"
    assert all(map(np.array_equal, held, (vector.bytes for vector in vectors))), "a weight changed"
    out = y.bytes.view(kind)
    written = (np.arange(rows)[:, None] * spacing + np.arange(results)).ravel()
    gaps = np.delete(out, written)
    assert (gaps == 0x7E7E if in_place else gaps.view(np.uint8) == UNWRITTEN).all(), "a gap was written"
    if recipe.form in REDUCTIONS:
        return given, out[written]
    return given, interleaved(out[written].reshape(-1, inner), results).reshape(rows, results)


def interleaved(rows: Any, inner: int) -> Any:
    """Return rows with so many consecutive ones interleaved; interleaving the result by its width gives rows back."""
    count, width = rows.shape
    return rows.reshape(count // inner, inner, width).swapaxes(1, 2).reshape(count // inner * width, inner)
