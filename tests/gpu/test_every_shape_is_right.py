"""Every proved recipe of every program is right on a grid of shapes from 1 x 1 to what the memory holds.

Each shape is met by plain launches and by replays of graphs whose input was changed in place after the capture, on
aligned bases and on others, with poisoned outputs between guard bytes. Beyond 2^28 elements it is met in one way, an
aligned base and a replayed graph. Shapes that the memory does not hold are named, in the JUnit properties and, where
OUT names a folder, in `every-shape.txt` there; so is what was checked of each of the others. ROWSMITH_GRID_ELEMENTS
leaves out shapes of more elements, and they are named as well; by default the memory alone is the limit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
import pytest
from attrs import frozen

from calibration.inputs import uniform
from features.program import program_of
from features.proof import form_of
from kernels import workspace
from kernels.execute import Prepared
from kernels.guard import Verdict
from kernels.recipe import Recipe
from kernels.reductions import REDUCTIONS
from kernels.reference import Comparison, against, reference
from tests.gpu.grid import (
    DTYPES,
    GROUPS,
    ROWS,
    WAYS,
    Way,
    batches,
    blocks,
    holes,
    needed_bytes,
    proved,
    tensor_bytes,
    truth,
    ways,
    widths,
    working_bytes,
)
from tests.gpu.tensors import (
    POISON,
    Given,
    Kernels,
    Tensor,
    blank,
    given_for,
    host_bits,
    prepared,
    results,
)

if TYPE_CHECKING:
    from calibration.gpu import Session

Say = Callable[[str, str], None]
MOST_ELEMENTS = int(os.environ.get("ROWSMITH_GRID_ELEMENTS", str(2**60)))


@frozen(eq=False)
class Job:
    """A recipe, ready to run from x to its own poisoned output, with what its program takes besides."""

    recipe: Recipe
    ready: Prepared
    y: Tensor
    given: Given

    def run(self, x: Tensor, stream: int) -> None:
        """Enqueue one launch."""
        verdict = self.ready.run(x.span, self.y.span, stream, self.given.operands)
        assert verdict is Verdict.RECIPE, f"{self.recipe.id}: {verdict}"


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Say:
    """Tell what became of a shape, in the JUnit report and in the file."""

    def told(shape: str, what: str) -> None:
        record_property(shape, what)
        print(f"{shape}: {what}")
        if "OUT" in os.environ:
            with Path(os.environ["OUT"], "every-shape.txt").open("a", encoding="utf-8") as file:
                file.write(f"{shape}: {what}\n")

    return told


@pytest.fixture(autouse=True)
def _few_workspaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep two workspaces ready and not sixteen: split rows of the largest grids take tens of megabytes each."""
    monkeypatch.setattr(workspace, "SPARE_ANNOUNCED", 2)
    monkeypatch.setattr(workspace, "_made", {})


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("group", GROUPS)
def test_every_proved_recipe_is_right(
    kernels: Kernels, sm_count: int, session: Session, say: Say, group: str, dtype: str, rows: int
) -> None:
    forms = [form_of(program_of(op, dtype)) for op in GROUPS[group]]
    for width in widths(forms[0]):
        shape = f"{group} {dtype} {rows} x {width}"
        free, needed = _free_bytes(), needed_bytes(forms, dtype, rows, width)
        if needed > free:
            say(shape, f"over memory: needs {needed / 2**30:.1f} GiB of {free / 2**30:.1f} GiB that are free")
        elif rows * width > MOST_ELEMENTS:
            say(shape, f"left out: more than {MOST_ELEMENTS} elements")
        else:
            met = [_meet(kernels, sm_count, session, group, dtype, rows, width, way, free) for way in ways(rows, width)]
            say(shape, f"right, {sum(met)} runs in {len(met)} ways")


def _free_bytes() -> int:
    """Return the bytes of device memory that nothing holds; workspaces of earlier shapes go first."""
    cupy.cuda.Device().synchronize()
    workspace._made.clear()
    cupy.get_default_memory_pool().free_all_blocks()
    return int(cupy.cuda.runtime.memGetInfo()[0])


def _meet(
    kernels: Kernels,
    sm_count: int,
    session: Session,
    group: str,
    dtype: str,
    rows: int,
    width: int,
    way: Way,
    free: int,
) -> int:
    """Check every proved recipe of a group in one way and return how many there are."""
    x = blank(dtype, rows, width, offset=way.offset)
    recipes = [row for op in GROUPS[group] for row in proved(op, dtype, rows, width, way.offset)]
    sized = [(row, tensor_bytes(row.form, dtype, rows, width)[1]) for row in recipes]
    room = free - tensor_bytes(recipes[0].form, dtype, rows, width)[0] - working_bytes(rows, width)
    for turn, batch in enumerate(batches(sized, room)):
        ready = {row: prepared(kernels, row, dtype, rows, width, sm_count) for row in batch}
        _check(session, x, ready, way, seed=1 + turn + 8 * WAYS.index(way))
    return len(recipes)


def _check(session: Session, x: Tensor, ready: Mapping[Recipe, Prepared], way: Way, seed: int) -> None:
    """Run recipes on values that x did not hold when the graphs were captured, and check all that may be wrong.

    The outputs live as long as this call, so that the next batch finds room.
    """
    given = {row.form: given_for(row, x.dtype, x.width, seed=seed, offset=way.offset) for row in ready}
    jobs = [Job(row, held, results(row, x, offset=2 * way.offset), given[row.form]) for row, held in ready.items()]
    where = f"{x.dtype} {x.rows} x {x.width}, {way}"
    cupy.cuda.Device().synchronize()
    graphs = [_captured(session, x, job) for job in jobs] if way.graph else []
    sums = _filled(x, seed, holed=all(row.form in REDUCTIONS for row in ready))
    cupy.cuda.Device().synchronize()
    for captured in graphs:
        captured.replay()
    if not way.graph:
        for job in jobs:
            job.run(x, int(cupy.cuda.get_current_stream().ptr))
    cupy.cuda.Device().synchronize()
    beyond, changed = _beyond(x, jobs, sums)
    assert not changed, f"{where}: the input changed"
    assert all(held.intact for held in given.values()), f"{where}: a weight changed"
    assert _guarded(x), f"{where}: a byte outside the input changed"
    for job, count in zip(jobs, beyond, strict=True):
        assert _guarded(job.y), f"{where}, {job.recipe.id}: a byte outside the output changed"
        if count:
            found = _compared(x, job)
            assert found.right, f"{where}, {job.recipe.id}: {found}"


def _captured(session: Session, x: Tensor, job: Job) -> Any:
    job.ready.expect_captures()  # earlier jobs of the shape may have used what was ready
    return session.capture(lambda: job.run(x, session.pointer), 1)


def _filled(x: Tensor, seed: int, holed: bool) -> list[Any]:
    """Put fresh values into x and return the sum of each block's bits; `holed` puts NaNs in some rows."""
    sums = []
    for first, last in blocks(x.rows, x.width):
        block = x.bits[first:last]
        drawn = uniform(x.dtype, last - first, x.width, seed * 1_000_003 + first)
        block[...] = drawn.body.view(block.dtype).reshape(block.shape)
        rows, columns = holes(x.width, first, last) if holed else ([], [])
        if rows:
            nan = int(host_bits(np.array([np.nan]), x.dtype)[0])
            block[cupy.asarray(rows), cupy.asarray(columns)] = nan
        sums.append(block.sum(dtype=cupy.uint64))
    return sums


def _beyond(x: Tensor, jobs: Sequence[Job], sums: Sequence[Any]) -> tuple[list[int], bool]:
    """Return how many results of each job are beyond their bound, and whether the input is another than it was."""
    beyond = [cupy.zeros((), cupy.int64) for _ in jobs]
    changed = cupy.zeros((), bool)
    for (first, last), before in zip(blocks(x.rows, x.width), sums, strict=True):
        changed |= x.bits[first:last].sum(dtype=cupy.uint64) != before
        held = _values(x, first, last).astype(cupy.float64)
        for form, given in {job.recipe.form: job.given for job in jobs}.items():
            known = truth(cupy, form, x.dtype, held, given.values)
            for place, job in enumerate(jobs):
                if job.recipe.form == form:
                    beyond[place] += known.beyond(cupy, job.recipe, _values(job.y, first, last))
    return [int(count) for count in beyond], bool(changed)


def _compared(x: Tensor, job: Job) -> Comparison:
    """Compare one job as every other test does."""
    found, row = Comparison(0, 0.0, 0, 0), job.recipe
    for first, last in blocks(x.rows, x.width):
        known = reference(row.form, cupy, _values(x, first, last).astype(cupy.float64), job.given.values)
        found += against(cupy, row.form, row, x.dtype, x.width, *known, _values(job.y, first, last))
    return found


def _values(tensor: Tensor, first: int, last: int) -> Any:
    """Return some rows as numbers that FP64 arithmetic takes; BF16 comes widened."""
    bits = tensor.bits[first:last]
    if tensor.dtype == "bfloat16":
        return (bits.astype(cupy.uint32) << 16).view(cupy.float32)
    return bits.view(tensor.dtype)


def _guarded(tensor: Tensor) -> bool:
    """Whether every byte before and after a tensor without gaps holds the poison."""
    last = tensor.first + tensor.span.bytes
    return bool((tensor.raw[: tensor.first] == POISON).all() & (tensor.raw[last:] == POISON).all())
