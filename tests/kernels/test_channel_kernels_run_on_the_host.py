"""The channel norms' own source, run thread by thread on the host: right, inside tensors, in the order they say."""

from __future__ import annotations

from collections.abc import Iterator
from shutil import which

import numpy as np
import pytest

from features.proof import Proved, prove
from features.workload import workload
from kernels.channels import CHANNEL_NORMS
from kernels.dtypes import STORAGE, storage
from kernels.launch import launch_shape
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import original_of, recipes_of
from kernels.reference import compare
from tests.kernels.channel_formulas import in_order, special_rows
from tests.kernels.emulated import bits_of, run, values_of

pytestmark = [
    pytest.mark.skipif(which("g++") is None, reason="needs a host C++ compiler"),
    pytest.mark.filterwarnings("ignore:(invalid value|overflow|divide by zero) encountered:RuntimeWarning"),
]
EPS = 1e-5
IMAGES = (1, 2, 3)
CHANNELS = (1, 2, 3, 4, 7, 16, 17, 31, 32, 33, 64, 65, 100, 128, 200, 300, 512, 513, 1000)
POSITIONS = (1, 2, 4, 7, 8, 16, 24, 49, 64, 132, 323)
MOST_THREADS, MOST_ELEMENTS, MOST_RUNS = 3072, 40_000, 9  # of a launch: each is a fiber; and of a recipe
RNG = np.random.default_rng(31)
L2 = next(form for form, norm in CHANNEL_NORMS.items() if norm.norm == "l2")
# Every recipe of one form, and the last of each template of the others: all but the formula is the same source.
LAST = {(form, row.template): row for form in CHANNEL_NORMS for row in recipes_of(form)}
MET = [*recipes_of(L2), *(row for (form, _), row in LAST.items() if form != L2)]


def parameters(row: Recipe, eps: float = EPS) -> tuple[float, ...]:
    return (eps,) if row.parameters else ()


def geometries(row: Recipe, dtype: str, offset: int) -> Iterator[tuple[int, int, int]]:
    """Yield images, channels and positions that a recipe takes `offset` elements past a boundary."""
    op, size = CHANNEL_NORMS[row.form].op, storage(dtype).bytes
    alignment = 16 if offset == 0 else offset * size & -(offset * size)
    for channels in CHANNELS:
        for positions in POSITIONS:
            for images in IMAGES:
                rows = images * positions
                few = launch_shape(row, rows, channels, 132).ctas * row.threads <= MOST_THREADS
                work = workload(op, (images, channels, positions), dtype, alignment_bytes=alignment)
                if few and rows * channels <= MOST_ELEMENTS and isinstance(prove(work, row), Proved):
                    yield images, channels, positions


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("row", MET, ids=lambda row: row.id)
def test_every_recipe_is_right_and_stays_inside(row: Recipe, dtype: str) -> None:
    """Those that are bit-equal give the original's bits; between fences on both sides, on any base that they take."""
    if dtype not in row.dtypes:
        return
    original, met = original_of(row.form), 0
    for offset in (0, 1, 3):
        found = list(geometries(row, dtype, offset))
        for images, channels, positions in found[:: 1 + len(found) // MOST_RUNS] + found[-1:]:
            values = RNG.normal(0, 3, (images * positions, channels))
            layout = {"inner": positions, "parameters": parameters(row)}
            given, got = run(row, dtype, values, offset=offset, y_offset=offset, seed=met, **layout)
            again = run(row, dtype, values, offset=None, seed=met, **layout)[1] if offset == 0 else got
            same = compare(np, row.form, row, dtype, values_of(given, dtype), values_of(got, dtype))
            where = f"{row.id} {dtype} {images} x {channels} x {positions}, {offset} past a boundary"
            assert same.right, f"{where}: {same}"
            assert np.array_equal(got, again), where
            if row.numerics == "bit_equal" and row.role != ORIGINAL:
                _, expected = run(original, dtype, values, offset=offset, **layout)
                assert np.array_equal(got, expected), where
            met += 1
    assert met > 2


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("form", CHANNEL_NORMS)
def test_the_original_is_what_fp32_says(form: str, dtype: str) -> None:
    """Bit for bit, of ranges and of what is no number: zeros give NaN where nothing is added to them."""
    row, size = original_of(form), storage(dtype).bytes
    for channels in (1, 3, 8, 33):
        for name, rows in special_rows(RNG, 2 * 19, channels).items():
            for eps in (EPS, 0.0, 1e-10, 1e-3):
                given = bits_of(rows, dtype)
                stored = values_of(given, dtype).astype(np.float32)
                expected = bits_of(in_order(np, row, stored, eps, size), dtype)
                _, got = run(row, dtype, rows, inner=19, parameters=parameters(row, eps))
                alike = (got == expected) | (np.isnan(values_of(got, dtype)) & np.isnan(values_of(expected, dtype)))
                assert alike.all(), f"{row.id} {dtype} {name} of {channels}, eps {eps}"
                if name == "zeros":
                    assert np.isnan(values_of(got, dtype)).all() == (not row.parameters or eps == 0)


@pytest.mark.parametrize("dtype", STORAGE)
@pytest.mark.parametrize("form", CHANNEL_NORMS)
def test_the_original_is_right_in_place(form: str, dtype: str) -> None:
    row = original_of(form)
    for channels, positions in ((1, 300), (3, 49), (17, 19), (130, 4)):
        values = RNG.normal(0, 1, (2 * positions, channels))
        layout = {"inner": positions, "parameters": parameters(row), "offset": 1}
        _, apart = run(row, dtype, values, **layout)
        _, within = run(row, dtype, values, in_place=True, **layout)
        assert np.array_equal(apart, within)


def test_specials_stay_in_their_position() -> None:
    """A NaN in one of the positions that a thread takes together, or beside a CTA's end, leaves the others alone."""
    for row in recipes_of(L2):
        channels = row.phases * row.lanes if row.role != ORIGINAL else 5
        inner = 1 if row.rows_per_cta == row.rows_each else 24
        rows = RNG.normal(0, 1, (24, channels)).astype(np.float32)
        rows[5, -1], rows[6, 0], rows[7] = np.nan, np.inf, 0.0
        dtype = row.dtypes[-1]
        if isinstance(prove(workload("channel_l2", (24 // inner, channels, inner), dtype), row), Proved):
            _, got = run(row, dtype, rows, inner=inner, offset=0)
            missing = np.isnan(values_of(got, dtype))
            assert missing[5].all()
            assert missing[6].tolist() == [True] + [False] * (channels - 1)
            assert missing[7].all()
            assert not np.delete(missing, (5, 6, 7), axis=0).any(), row.id
