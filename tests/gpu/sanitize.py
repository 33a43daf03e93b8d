"""Every kernel and every fallback on small shapes, for compute-sanitizer: `python -m tests.gpu.sanitize`.

There is no memory pool, and a tensor's allocation ends with its last element, so that an overrun leaves it. Values are
made and compared on the host, so that no kernel but ours runs.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import cupy
import numpy as np
from attrs import evolve
from numpy.lib.stride_tricks import as_strided

from calibration.gpu import Session
from features.proof import Proved, prove
from kernels import driver
from kernels.compile import cache_folder
from kernels.compile_all import compile_all
from kernels.dtypes import storage
from kernels.execute import Prepared
from kernels.guard import Verdict, judge, span
from kernels.recipes import RECIPES, Recipe, original_of
from kernels.reference import compare
from tests.gpu.reductions import EVERY, workload_of
from tests.gpu.tensors import (
    CUBS,
    DTYPES,
    FURTHER,
    ORIGINAL,
    POISON,
    SCANS,
    SPLITS,
    Kernels,
    Tensor,
    host_bits,
    host_values,
    prepared,
    whole_width,
    widths_taken,
)

# Every form of the original's kernel, below and past a chunk, with few and with several rows a CTA.
SHAPES = ((5, 7), (40, 33), (9, 256), (3, 300), (9, 512), (3, 700), (2, 1500), (2, 2304), (2, 2600), (1, 5000))
# What the further ways of scans take: some lanes a row, whole and cut vectors, runs of rows, a few steps and one.
FURTHER_SHAPES = (
    *(
        (1, 1),
        (300, 2),
        (40, 7),
        (70, 16),
        (40, 24),
        (21, 31),
        (9, 64),
        (19, 128),
        (5, 200),
        (5, 256),
        (3, 512),
        (3, 513),
    ),
    *((3, 1000), (3, 1009), (2, 1024), (2, 2033), (1, 5000), (2, 9001)),
)
OFFSETS = ((0, 0, 0), (1, 3, 0), (3, 3, 1), (7, 0, 3))
RNG = np.random.default_rng(3)


def on_host(tensor: Tensor, raw: Any) -> Any:
    """Return the tensor's elements in a host copy of its bytes, in place, as unsigned integers."""
    size = storage(tensor.dtype).bytes
    length = span(0, tensor.rows, tensor.width, tensor.pitch, tensor.dtype).bytes
    flat = raw[tensor.first : tensor.first + length].view(np.uint16 if size == 2 else np.uint32)
    return as_strided(flat, (tensor.rows, tensor.width), (tensor.pitch * size, size))


def allocated(dtype: str, rows: int, width: int, offset: int = 0, gap: int = 0) -> Tensor:
    """Return a poisoned tensor in an allocation that ends with its last element."""
    size, pitch = storage(dtype).bytes, width + gap
    length = offset * size + span(0, rows, width, pitch, dtype).bytes
    raw = cupy.empty(length, cupy.uint8)
    raw.set(np.full(length, POISON, np.uint8))
    return Tensor(raw, dtype, rows, width, pitch, offset * size)


def fill(tensor: Tensor) -> Any:
    """Put fresh values into a tensor and return them as FP32."""
    raw = tensor.raw.get()
    bits = host_bits(RNG.uniform(-1, 1, (tensor.rows, tensor.width)), tensor.dtype)
    on_host(tensor, raw)[...] = bits
    tensor.raw.set(raw)
    return host_values(bits, tensor.dtype)


class Checks:
    """Launches, compares and counts."""

    def __init__(self, kernels: Kernels, sm_count: int) -> None:
        self.kernels, self.sm_count = kernels, sm_count
        self.session = Session()
        self.launches: Counter[str] = Counter()

    def prepared(self, recipe: Recipe, x: Tensor) -> Prepared:
        return prepared(self.kernels, recipe, x.dtype, x.rows, x.width, self.sm_count)

    def run(self, recipe: Recipe, x: Tensor, y: Tensor, expected: Verdict) -> None:
        """Launch once and compare the output, and every other byte, with what they must be."""
        given = fill(x)
        before = y.raw.get()
        verdict = self.prepared(recipe, x).run(x.span, y.span, self.session.pointer)
        self.session.synchronize()
        self._compare(f"{recipe.id} {verdict.value}", recipe, expected, verdict, given, y, before)

    def replay(self, recipe: Recipe, x: Tensor, y: Tensor, expected: Verdict) -> None:
        """The same from a graph, replayed after the input changed."""
        ready = self.prepared(recipe, x)
        if expected is Verdict.OVERLAP:
            ready.reserve(x.span.bytes + 16)
        verdicts: list[Verdict] = []
        graph = self.session.capture(lambda: verdicts.append(ready.run(x.span, y.span, self.session.pointer)), 1)
        for _ in range(2):
            given = fill(x)
            before = y.raw.get()
            graph.replay()
            self.session.synchronize()
            self._compare(f"{recipe.id} {verdicts[0].value} graph", recipe, expected, verdicts[0], given, y, before)

    def _compare(
        self, label: str, recipe: Recipe, expected: Verdict, verdict: Verdict, given: Any, y: Tensor, before: Any
    ) -> None:
        after = y.raw.get()
        out = host_values(np.ascontiguousarray(on_host(y, after)), y.dtype)
        ran = recipe if verdict is Verdict.RECIPE else original_of(recipe.form)
        found = compare(np, ran.form, ran, y.dtype, given, out)
        on_host(y, after)[...] = 0
        on_host(y, before)[...] = 0
        if verdict is not expected or not found.right or not np.array_equal(after, before):
            raise SystemExit(f"{label} {y.dtype} {y.rows} x {y.width}: {verdict}, {found}")
        self.launches[label] += 1


def every_case(checks: Checks, dtype: str) -> None:
    """Run what runs anywhere on awkward shapes and bases, every recipe on its chunks, and every fallback."""
    for rows, width in SHAPES:
        for x_offset, y_offset, gap in OFFSETS:
            x, y = allocated(dtype, rows, width, x_offset, gap), allocated(dtype, rows, width, y_offset)
            checks.run(ORIGINAL, x, y, Verdict.RECIPE)
        checks.run(ORIGINAL, x, x, Verdict.RECIPE)
    for recipe in CUBS:
        chunk = recipe.threads * recipe.items
        for rows, chunks in ((1, 1), (3, 2), (2, 3), (1, 5)):
            x, y = allocated(dtype, rows, chunks * chunk), allocated(dtype, rows, chunks * chunk)
            checks.run(recipe, x, y, Verdict.RECIPE)
        checks.run(recipe, x, allocated(dtype, 1, 5 * chunk, offset=1), Verdict.MISALIGNED)
    for recipe in SPLITS:
        part = whole_width(recipe, 1)
        for rows, width in ((1, part + 1), (2, 3 * part - 5)):
            for x_offset, y_offset, gap in OFFSETS:
                x, y = allocated(dtype, rows, width, x_offset, gap), allocated(dtype, rows, width, y_offset)
                checks.run(recipe, x, y, Verdict.RECIPE)
    every_further_way(checks, dtype)
    every_fallback(checks, dtype)


def every_fallback(checks: Checks, dtype: str) -> None:
    """Run each recipe in place, on buffers that overlap, and on buffers apart; plainly and from a graph."""
    for recipe in SCANS:
        width = whole_width(recipe)
        room = allocated(dtype, 4, width)
        x = evolve(room, rows=3)
        shifted = evolve(x, first=width * storage(dtype).bytes)
        in_place = Verdict.RECIPE if recipe is ORIGINAL else Verdict.IN_PLACE
        for go in (checks.run, checks.replay):
            go(recipe, x, x, in_place)
            go(recipe, x, shifted, Verdict.OVERLAP)
            go(recipe, shifted, x, Verdict.OVERLAP)
            go(recipe, x, allocated(dtype, 3, width), Verdict.RECIPE)


def every_further_way(checks: Checks, dtype: str) -> None:
    """Run them on every base and pitch; where those are not theirs, the original."""
    for recipe in FURTHER:
        for rows, width in FURTHER_SHAPES:
            if not widths_taken(recipe, (width,)):
                continue
            for x_offset, y_offset, gap in OFFSETS:
                x, y = allocated(dtype, rows, width, x_offset, gap), allocated(dtype, rows, width, y_offset)
                checks.run(recipe, x, y, judge(x.span, y.span, recipe.alignment))


# Every form of the reductions' original, masked and whole steps of each recipe, first and last CTAs and such between,
# last CTAs short of rows, and splits.
REDUCED = (
    *((70, 1), (300, 5), (1100, 5), (130, 8), (300, 27), (200, 40), (33, 64), (90, 100), (33, 129), (20, 256)),
    *((9, 1000), (5, 2049), (3, 8200), (2, 20000)),
)


def every_reduction(checks: Checks, dtype: str) -> None:
    """Run every recipe on what it takes, off boundaries and in gaps too, and the fallbacks of one of each template."""
    for recipe in (row for row in EVERY if dtype in row.dtypes):
        for rows, width in REDUCED:
            for x_offset, y_offset, gap in OFFSETS:
                x = allocated(dtype, rows, width, x_offset, gap)
                if isinstance(prove(workload_of(recipe, x), recipe), Proved):
                    checks.run(recipe, x, allocated(dtype, rows, 1, y_offset), Verdict.RECIPE)
    for recipe in {row.template: row for row in EVERY if dtype in row.dtypes}.values():
        rows, width = 9, {"short": 16, "staged": 16, "flat": 8}.get(recipe.role, 8200)
        x = allocated(dtype, rows, width)
        inside = Tensor(x.raw, dtype, rows, 1, 1, x.first + (width + 1) * storage(dtype).bytes)
        for go in (checks.run, checks.replay):
            go(recipe, x, inside, Verdict.OVERLAP)
            go(recipe, x, allocated(dtype, rows, 1), Verdict.RECIPE)


def main(only_compile: bool) -> int:
    """Run every case; a wrong result ends it with 1, as does what the sanitizer finds.

    The kernels come from the cubin cache, which `--compile` fills: the sanitizer follows child processes, and NVRTC
    takes minutes under it.
    """
    cupy.cuda.set_allocator(None)
    device = driver.current_device()
    if only_compile:
        return int(any(o.failure for o in compile_all((driver.architecture(device),), folder=cache_folder())))
    kernels = {(row.id, dtype): driver.load(row, dtype, device) for row in RECIPES for dtype in row.dtypes}
    if not all(kernel.cubin.from_cache for kernel in kernels.values()):
        raise SystemExit(
            "some kernels were not in the cache; run with --compile first, under the same ROWSMITH_CACHE_DIR"
        )
    checks = Checks(kernels, driver.live_target(device).sm_count)
    for dtype in DTYPES:
        every_case(checks, dtype)
        every_reduction(checks, dtype)
        print(f"{dtype}: {checks.launches.total()} results so far", flush=True)
    for label, count in sorted(checks.launches.items()):
        print(f"{count:5}  {label}")
    print(f"{checks.launches.total()} results, all right", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["--compile"]))
