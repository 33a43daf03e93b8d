"""The reduction kernels' own source, run thread by thread on the host: right, and inside their tensors.

Every recipe of SUM with one dtype or the other, so that a machine without a GPU sees an index go wrong.
"""

from __future__ import annotations

from shutil import which

import numpy as np
import pytest

from features.program import program_of
from features.proof import Proved, prove
from features.workload import Workload
from kernels.dtypes import storage
from kernels.launch import LaunchShape, launch_shape
from kernels.recipe import Recipe
from kernels.recipes import recipe, recipes_of
from kernels.reduction_shapes import ORIGINAL_FORMS
from kernels.reference import compare
from tests.kernels.emulated import PAGE, run, values_of

pytestmark = [
    pytest.mark.skipif(which("g++") is None, reason="needs a host C++ compiler"),
    pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning"),
]
SHAPES = (
    *(
        (1, 1),
        (70, 3),
        (1030, 5),
        (300, 8),
        (300, 12),
        (150, 40),
        (33, 7),
        (17, 8),
        (300, 9),
        (21, 17),
        (300, 27),
        (12, 32),
        (9, 63),
        (33, 64),
        (90, 65),
        (50, 127),
        (20, 100),
        (41, 129),
    ),
    *((16390, 8), (16390, 16), (8200, 24), (8200, 32), (4100, 32), (4100, 64), (1030, 56), (1030, 64)),
    *((5, 256), (3, 1000), (9, 1024), (5, 1025), (1, 2049), (2, 4096), (2, 8193), (1, 16384), (5, 16390)),
)
# (gap between rows, offset of the first element), in elements of two bytes; None ends the tensor at a fence.
LAYOUTS = ((0, 0), (0, None), (1, 1), (3, 7), (8, 8))
OTHERS = (
    *(
        "max.original",
        "max.flat",
        "nanmax.lanes8x4",
        "max.several4x2",
        "max.short4",
        "max.staged64",
        "mean.lean64",
        "max.lean8",
        "min.split",
        "mean.split",
    ),
    *("nansum.rows1", "nanmean.original"),
)
MOST_THREADS = 6000  # of a launch: each is a fiber, and switching takes a system call
RNG = np.random.default_rng(23)


def is_legal(row: Recipe, op: str, dtype: str, rows: int, width: int, gap: int, offset: int | None) -> bool:
    size = storage(dtype).bytes
    first = (-((rows - 1) * (width + gap) + width) if offset is None else offset) * size % PAGE
    work = Workload(program_of(op, dtype), rows, width, width + gap, first & -first or 256)
    return isinstance(prove(work, row), Proved)


def check(row: Recipe, dtype: str) -> int:
    op, ran = row.id.split(".")[0], 0
    for rows, width in SHAPES:
        for gap, offset in LAYOUTS:
            few = launch_shape(row, rows, width, 132).ctas * row.threads <= MOST_THREADS
            if not few or not is_legal(row, op, dtype, rows, width, gap, offset):
                continue
            values = RNG.uniform(-1, 1, (rows, width))
            if op.startswith("nan"):
                values[RNG.random(values.shape) < 0.1] = np.nan
            given, got = run(row, dtype, values, gap=gap, offset=offset, spacing=1 + gap % 3, seed=ran)
            found = compare(np, row.form, row, dtype, values_of(given, dtype), values_of(got, dtype)[:, None])
            assert found.right, f"{row.id} {dtype} {rows} x {width}, gap {gap}, offset {offset}: {found}"
            ran += 1
    return ran


@pytest.mark.parametrize("row", recipes_of("reduce.sum"), ids=lambda row: row.id)
def test_every_recipe_is_right_and_stays_inside(row: Recipe) -> None:
    assert check(row, row.dtypes[0]) > 3


@pytest.mark.parametrize("name", OTHERS)
def test_other_algebras_and_policies_are_right(name: str) -> None:
    assert check(recipe(name), "float32") > 0


@pytest.mark.parametrize("form", range(len(ORIGINAL_FORMS)))
@pytest.mark.parametrize("name", ["sum.original", "max.aligned", "nanmean.original"])
def test_every_form_of_the_original_is_right_whatever_the_launch_prefers(name: str, form: int) -> None:
    row, rows = recipe(name), 3 * ORIGINAL_FORMS[form].rows_per_cta - 5
    whole = name == "max.aligned"
    for width in (8,) if ORIGINAL_FORMS[form].lanes == 1 else (8, 24, 136):
        shape = LaunchShape(3, row.threads, (form,))
        values = RNG.uniform(-1, 1, (rows, width - (not whole)))
        given, got = run(row, "float16", values, offset=0 if whole else 3, gap=0, seed=form, shape=shape)
        found = compare(np, row.form, row, "float16", values_of(given, "float16"), values_of(got, "float16")[:, None])
        assert found.right, (width, found)


@pytest.mark.parametrize("name", ["max.rows1", "max.short8", "min.original"])
def test_zeros_and_nan_of_extremes_are_told_apart(name: str) -> None:
    row = recipe(name)
    for width in (1, 5, 64, 127):
        rows = np.full((5, width), -0.0)
        rows[1, width // 2], rows[2, -1], rows[3, 0], rows[4] = 0.0, np.nan, -np.inf, -np.inf
        given, got = run(row, "float16", rows)
        found = compare(np, row.form, row, "float16", values_of(given, "float16"), values_of(got, "float16")[:, None])
        assert found.right


@pytest.mark.parametrize("name", ["nanmax.original", "nanmin.original", "nanmax.rows1", "nansum.original", "max.flat"])
def test_rows_of_nan_alone(name: str) -> None:
    """By every form of the original; a flat recipe has no suppressing program yet, and its NaN is the result."""
    row = recipe(name)
    for width in (1, 3, 8, 20, 40, 100, 1000):
        if name.endswith("flat") and width > 8:
            continue
        rows = np.full((5, width), np.nan)
        rows[1, width // 2] = 2.0
        given, got = run(row, "float16", rows, offset=0)
        found = compare(np, row.form, row, "float16", values_of(given, "float16"), values_of(got, "float16")[:, None])
        assert found.right, width


def test_aligned_loads_keep_the_originals_bits() -> None:
    for rows, width in ((70, 64), (33, 256), (9, 2048), (1, 4096), (5, 16384)):
        values = RNG.uniform(-1, 1, (rows, width))
        bits = [run(recipe(f"sum.{name}"), "bfloat16", values, offset=0)[1] for name in ("original", "aligned")]
        assert np.array_equal(*bits)


def test_a_split_gives_the_same_bits_whoever_is_last_and_leaves_its_workspace_empty() -> None:
    row, values = recipe("sum.split"), RNG.uniform(-1, 1, (3, 30_001))
    workspace = np.zeros(launch_shape(row, 3, 30_001, 132).workspace_bytes // 8, np.uint64)
    results = [run(row, "float16", values, seed=seed, workspace=workspace)[1] for seed in range(6)]
    assert all(np.array_equal(results[0], other) for other in results)


def test_empty_rows_sum_to_zero() -> None:
    _, got = run(recipe("sum.original"), "float16", np.zeros((37, 0)), spacing=2)
    assert not got.any()
