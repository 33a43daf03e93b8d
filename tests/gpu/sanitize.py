"""Every kernel and every fallback on small shapes, for compute-sanitizer: `python -m tests.gpu.sanitize`.

There is no memory pool, and a tensor's allocation ends with its last element, so that an overrun leaves it. Values are
made and compared on the host, so that no kernel but ours runs.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from typing import Any

import cupy
import numpy as np
from attrs import evolve
from numpy.lib.stride_tricks import as_strided

from calibration.gpu import Session
from features.usual import PARAMETERS
from kernels import driver
from kernels.compile import cache_folder
from kernels.compile_all import compile_all
from kernels.dtypes import storage
from kernels.execute import Prepared
from kernels.guard import Verdict, span
from kernels.norms import NORMS
from kernels.operands import Operands
from kernels.recipe import Recipe
from kernels.recipes import RECIPES, original_of, recipes_of
from kernels.reductions import out_width
from kernels.reference import compare
from tests.gpu.geometries import OP_OF, cases, geometry_of
from tests.gpu.image_shapes import EVERY as CHANNEL_NORMS
from tests.gpu.image_shapes import SMALL, legal
from tests.gpu.images import Images
from tests.gpu.reductions import EVERY, FORMS
from tests.gpu.tensors import (
    DTYPES,
    FORM,
    POISON,
    SCANS,
    Kernels,
    Tensor,
    host_bits,
    host_values,
    prepared,
)

# Every form of the scan's original, below and past a chunk, with few and with several rows a CTA.
SHAPES = ((5, 7), (40, 33), (9, 256), (3, 300), (9, 512), (3, 700), (2, 1500), (2, 2304), (2, 2600), (1, 5000))
OFFSETS = ((0, 0, 0), (1, 3, 0), (3, 3, 1), (7, 0, 3))
# Every form of the reductions' original, first and last CTAs and such between, and last CTAs short of rows.
REDUCED = (
    *((70, 1), (300, 5), (1100, 5), (130, 8), (300, 27), (200, 40), (33, 64), (90, 100), (33, 129), (20, 256)),
    *((9, 1000), (5, 2049), (3, 8200), (2, 20000)),
)
# Both forms of a normalization's original.
NORMED = ((5, 7), (20, 33), (9, 300), (3, 1025), (2, 4100))
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
        self.held: list[Tensor] = []

    def prepared(self, recipe: Recipe, x: Tensor) -> Prepared:
        return prepared(self.kernels, recipe, x.dtype, x.rows, x.width, self.sm_count)

    def given(self, recipe: Recipe, x: Tensor) -> tuple[Operands, list[Any]]:
        """Return fresh weights, off a boundary where the recipe needs none, and usual parameters; as values, too."""
        offset = 0 if recipe.alignment[0] == "rows" else 1
        weights = [allocated(x.dtype, 1, x.width, offset) for _ in range(recipe.weights)]
        values = [fill(weight)[0].astype(np.float64) for weight in weights]
        parameters = tuple(PARAMETERS[name] for name in recipe.parameters)
        self.held = weights  # until the launch that reads them is done
        return Operands(tuple(weight.span for weight in weights), parameters), [*values, *parameters]

    def run(self, recipe: Recipe, x: Tensor, y: Tensor, expected: Verdict) -> None:
        """Launch once and compare the output, and every other byte, with what they must be."""
        given = fill(x)
        before = y.raw.get()
        operands, values = self.given(recipe, x)
        verdict = self.prepared(recipe, x).run(x.span, y.span, self.session.pointer, operands)
        self.session.synchronize()
        self._compare(f"{recipe.id} {verdict.value}", recipe, expected, verdict, given, y, before, values)

    def run_images(self, recipe: Recipe, x: Images, y: Images, rows: Any) -> None:
        """Launch once on images and compare their rows with what they must be."""
        operands = Operands((), tuple(PARAMETERS[name] for name in recipe.parameters))
        ready = x.prepared(self.kernels, recipe, self.sm_count)
        verdict = ready.run(x.span, y.span, self.session.pointer, operands)
        self.session.synchronize()
        out = host_values(np.ascontiguousarray(on_host(y.memory, y.memory.raw.get())), y.memory.dtype)
        out = out.reshape(-1, y.channels, y.memory.width).swapaxes(1, 2).reshape(rows.shape)
        found = compare(np, recipe.form, recipe, y.memory.dtype, rows, out, operands.parameters)
        if verdict is not Verdict.RECIPE or not found.right:
            raise SystemExit(f"{recipe.id} {y.memory.dtype} {x.shape}: {verdict}, {found}")
        self.launches[f"{recipe.id} {verdict.value}"] += 1

    def replay(self, recipe: Recipe, x: Tensor, y: Tensor, expected: Verdict) -> None:
        """The same from a graph, replayed after the input changed."""
        ready = self.prepared(recipe, x)
        if expected is Verdict.OVERLAP:
            ready.reserve(x.span.bytes + 16)
        verdicts: list[Verdict] = []
        operands, values = self.given(recipe, x)
        launch = partial(ready.run, x.span, y.span, self.session.pointer, operands)
        graph = self.session.capture(lambda: verdicts.append(launch()), 1)
        for _ in range(2):
            given = fill(x)
            before = y.raw.get()
            graph.replay()
            self.session.synchronize()
            label = f"{recipe.id} {verdicts[0].value} graph"
            self._compare(label, recipe, expected, verdicts[0], given, y, before, values)

    def _compare(
        self,
        label: str,
        recipe: Recipe,
        expected: Verdict,
        verdict: Verdict,
        given: Any,
        y: Tensor,
        before: Any,
        values: list[Any],
    ) -> None:
        after = y.raw.get()
        out = host_values(np.ascontiguousarray(on_host(y, after)), y.dtype)
        ran = recipe if verdict is Verdict.RECIPE else original_of(recipe.form)
        found = compare(np, ran.form, ran, y.dtype, given, out, values)
        on_host(y, after)[...] = 0
        on_host(y, before)[...] = 0
        if verdict is not expected or not found.right or not np.array_equal(after, before):
            raise SystemExit(f"{label} {y.dtype} {y.rows} x {y.width}: {verdict}, {found}")
        self.launches[label] += 1


def every_original(checks: Checks, dtype: str) -> None:
    """Run what runs anywhere on awkward shapes and bases, every form of it, and where nothing is written elsewhere."""
    for form, shapes in ((FORM, SHAPES), *((form, REDUCED) for form in FORMS), *((form, NORMED) for form in NORMS)):
        original = original_of(form)
        for rows, width in shapes:
            for x_offset, y_offset, gap in OFFSETS:
                x = allocated(dtype, rows, width, x_offset, gap)
                checks.run(original, x, allocated(dtype, rows, out_width(form, width), y_offset), Verdict.RECIPE)
            if form not in FORMS:
                checks.run(original, x, x, Verdict.RECIPE)


def every_recipe(checks: Checks, dtype: str) -> None:
    """Run every recipe on what it takes of every layout, and where rows lie as it does not take them, the original."""
    for recipe in (row for row in RECIPES if dtype in row.dtypes and row.form in OP_OF):
        for case in cases(recipe, dtype):
            lies = case.layout
            x = allocated(dtype, case.rows, case.width, lies.x_offset, lies.x_gap)
            y = allocated(dtype, case.rows, out_width(recipe.form, case.width), lies.y_offset, lies.y_gap)
            checks.run(recipe, x, y, Verdict.RECIPE)
        if recipe.role != "original" and recipe.alignment != ("any", "any"):
            rows, width = geometry_of(recipe, dtype)
            x, y = (allocated(dtype, rows, count, 1, 1) for count in (width, out_width(recipe.form, width)))
            checks.run(recipe, x, y, Verdict.MISALIGNED)


def every_channel_norm(checks: Checks, dtype: str) -> None:
    """Run every recipe along channels on small images."""
    for recipe in (row for row in CHANNEL_NORMS if dtype in row.dtypes):
        for images, channels, positions in (shape for shape in SMALL if legal(recipe, dtype, *shape)):
            x, y = (Images(allocated(dtype, images * channels, positions), channels) for _ in range(2))
            given = fill(x.memory).reshape(images, channels, positions)
            checks.run_images(recipe, x, y, given.swapaxes(1, 2).reshape(-1, channels))


def every_fallback(checks: Checks, dtype: str) -> None:
    """Run what writes rows in place, on buffers that overlap, and on buffers apart; plainly and from a graph.

    Each scan, and of each template and normalization one recipe.
    """
    norms = {(row.template, row.form): row for form in NORMS for row in recipes_of(form) if dtype in row.dtypes}
    for recipe in (*SCANS, *norms.values()):
        rows, width = geometry_of(recipe, dtype)
        room = allocated(dtype, rows + 1, width)
        x = evolve(room, rows=rows)
        shifted = evolve(x, first=width * storage(dtype).bytes)
        in_place = Verdict.RECIPE if recipe.role == "original" else Verdict.IN_PLACE
        for go in (checks.run, checks.replay):
            go(recipe, x, x, in_place)
            go(recipe, x, shifted, Verdict.OVERLAP)
            go(recipe, shifted, x, Verdict.OVERLAP)
            go(recipe, x, allocated(dtype, rows, width), Verdict.RECIPE)


def every_reduction(checks: Checks, dtype: str) -> None:
    """Run each reduction from a graph, and one of each template into its own input; plainly and from a graph."""
    for recipe in (row for row in EVERY if dtype in row.dtypes):
        rows, width = geometry_of(recipe, dtype)
        checks.replay(recipe, allocated(dtype, rows, width), allocated(dtype, rows, 1), Verdict.RECIPE)
    for recipe in {row.template: row for row in EVERY if dtype in row.dtypes}.values():
        rows, width = geometry_of(recipe, dtype)
        x = allocated(dtype, rows, width)
        inside = Tensor(x.raw, dtype, rows, 1, 1, x.first + (width + 1) * storage(dtype).bytes)
        for go in (checks.run, checks.replay):
            go(recipe, x, inside, Verdict.OVERLAP)


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
        for every in (every_original, every_recipe, every_channel_norm, every_fallback, every_reduction):
            every(checks, dtype)
        print(f"{dtype}: {checks.launches.total()} results so far", flush=True)
    for label, count in sorted(checks.launches.items()):
        print(f"{count:5}  {label}")
    print(f"{checks.launches.total()} results, all right", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["--compile"]))
