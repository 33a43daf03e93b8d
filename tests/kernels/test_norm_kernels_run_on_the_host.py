"""The normalization kernels' own source, run thread by thread on the host: right, and inside their tensors."""

from __future__ import annotations

from shutil import which

import numpy as np
import pytest

from features.program import program_of
from features.proof import Proved, prove
from features.workload import Workload
from kernels.dtypes import STORAGE, storage
from kernels.launch import launch_shape
from kernels.norms import SOFTMAX
from kernels.recipe import Recipe
from kernels.recipes import recipe, recipes_of
from kernels.reference import compare
from tests.kernels.emulated import PAGE, run, values_of

pytestmark = [
    pytest.mark.skipif(which("g++") is None, reason="needs a host C++ compiler"),
    pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered:RuntimeWarning"),
]
WIDTHS = (
    *(1, 3, 7, 8, 9, 17, 33, 57, 64, 100, 128, 129, 249, 256, 300, 505, 512, 777, 1000, 1017, 1024, 1025),
    *(2041, 2048, 2049, 4000, 4089, 4096, 5001, 8185, 8192, 9001, 16377, 16384, 20001, 32761, 32768),
)
# (gap between rows, offset of the first element), in elements; None ends the tensor at a fence.
LAYOUTS = ((0, 0), (0, None), (1, 1), (3, 7), (8, 8))
MOST_THREADS = 3072  # of a launch: each is a fiber
RNG = np.random.default_rng(29)
ROWS = recipes_of(SOFTMAX)


def is_legal(row: Recipe, dtype: str, rows: int, width: int, gap: int, offset: int | None) -> bool:
    size = storage(dtype).bytes
    first = (-((rows - 1) * (width + gap) + width) if offset is None else offset) * size % PAGE
    work = Workload(program_of("softmax", dtype), rows, width, width + gap, first & -first or 256)
    return isinstance(prove(work, row), Proved)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_recipe_is_right_and_stays_inside(row: Recipe, dtype: str) -> None:
    ran = 0
    for width in WIDTHS:
        rows = 3 if width > 512 else 2 * row.threads // row.lanes + 1
        for gap, offset in LAYOUTS:
            few = launch_shape(row, rows, width, 132).ctas * row.threads <= MOST_THREADS
            if not few or not is_legal(row, dtype, rows, width, gap, offset):
                continue
            values = RNG.normal(0, 3, (rows, width))
            given, got = run(row, dtype, values, gap=gap, offset=offset, spacing=width + gap, seed=ran)
            found = compare(np, row.form, row, dtype, values_of(given, dtype), values_of(got, dtype))
            assert found.right, f"{row.id} {dtype} {rows} x {width}, gap {gap}, offset {offset}: {found}"
            ran += 1
    assert ran > 2


@pytest.mark.parametrize("name", ["original", "held32x16", "held128x16", "cover32x8", "cover128x16"])
def test_rows_of_infinities_and_nan_are_as_the_formula_says(name: str) -> None:
    row = recipe(f"softmax.{name}")
    width = 1024 if "128" in name else 200
    rows = RNG.normal(0, 1, (7, width))
    rows[1], rows[2, 5], rows[3, -1], rows[4, :-1] = -np.inf, np.inf, np.nan, -np.inf
    rows[5, : width // 2], rows[6] = -np.inf, 0.0
    given, got = run(row, "float32", rows, offset=0)
    out = values_of(got, "float32")
    found = compare(np, row.form, row, "float32", values_of(given, "float32"), out)
    assert found.right, found
    assert np.isnan(out[1:4]).all()
    assert out[4].tolist() == [0.0] * (width - 1) + [1.0]
    assert np.allclose(out[6], 1 / width)
