"""Rows that the CTAs of a cluster share, their threads run together on the host: right, and the same in any order.

A word that is put into a CTA that may not run, or a thread that misses a meeting, ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from shutil import which

import numpy as np
import pytest

from kernels.dtypes import STORAGE
from kernels.norms import CLUSTERINGS, NORMS, ROWS_ALIGNED, Norm, holds
from kernels.recipe import Recipe
from kernels.recipes import recipe, recipes_of
from tests.kernels.emulated import run
from tests.kernels.test_norm_kernels_run_on_the_host import FITTED, RNG, checked, is_legal, none_is_lost, weights_for

pytestmark = pytest.mark.skipif(which("g++") is None, reason="needs a host C++ compiler")
MANY_THREADS = 4096  # of a cluster: each is a fiber
# (gap between rows, offset of the first element, offset of the weights), by whether rows are whole vectors.
LAYOUTS = {True: ((0, 0, None), (8, 8, 8), (16, 0, 0)), False: ((3, 1, None), (0, None, 2), (5, 7, 0))}


def cases() -> Iterator[tuple[Recipe, str]]:
    """Yield every way of each algebra with its most weights, in dtypes that take turns; of other forms one way."""
    for norm in NORMS.values():
        ways = [row for row in recipes_of(norm.form) if row.cluster > 1]
        for turn, row in enumerate(ways if norm.fitted else ways[1:2]):
            yield row, row.dtypes[turn % len(row.dtypes)]


def are_vectors(row: Recipe) -> bool:
    return row.alignment == ROWS_ALIGNED


def widths_of(row: Recipe) -> tuple[int, int, int]:
    """Return about the least width that a recipe takes, one between, and the most that CTAs hold, or steps more."""
    step = row.cluster * row.threads * row.items * row.phases
    past = 0 if are_vectors(row) else 3
    if not holds(row):
        return step + 1, step + 1001, step + 8003
    return step // 2 + 8 + past, step * 5 // 8 + past, step - past


@pytest.mark.parametrize(("row", "dtype"), [*cases()], ids=lambda part: getattr(part, "id", part))
def test_every_cluster_is_right_and_stays_inside(row: Recipe, dtype: str) -> None:
    """Rows begin and end off boundaries, between fences; so do weights, which lie otherwise between boundaries."""
    many = row.cluster * row.threads > MANY_THREADS
    for turn, width in enumerate(widths_of(row)):
        gap, offset, weight_offset = LAYOUTS[are_vectors(row)][turn]
        rows = 1 if many else 3
        assert is_legal(row, dtype, rows, width, gap, offset)
        lies = {"gap": gap, "offset": offset, "spacing": width + gap, "weight_offset": weight_offset}
        found, _ = checked(row, dtype, RNG.normal(0, 3, (rows, width)), seed=turn, **lies)
        assert found.right, f"{row.id} {dtype} {rows} x {width}, gap {gap}, offset {offset}: {found}"


@pytest.mark.parametrize("norm", FITTED, ids=lambda norm: norm.op)
def test_results_are_placed_by_rows_that_begin_elsewhere(norm: Norm) -> None:
    """Of x and y on different offsets from a boundary, element by element; the order of clusters changes no bit."""
    row = recipe(f"{norm.op}.cluster4x256x32c")
    for dtype, width in (("bfloat16", 2055), ("float32", 1030)):
        values = RNG.normal(0, 2, (4, width))
        lies = {"offset": 3, "spacing": width + 5, "weights": weights_for(row, width)}
        lies["parameters"] = (1e-6,) * len(row.parameters)
        results = [
            run(row, dtype, values, gap=gap, y_offset=offset, seed=offset, **lies)[1]
            for gap, offset in ((8, 3), (8, 2), (16, 0))
        ]
        assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize(("name", "width"), [("cluster8x512x32", 2**17), ("cluster16x512x32c", 2**17 + 5)])
@pytest.mark.parametrize("norm", FITTED, ids=lambda norm: norm.op)
def test_no_element_of_a_wide_row_is_lost(norm: Norm, name: str, width: int) -> None:
    none_is_lost(norm, recipe(f"{norm.op}.{name}"), width)


def test_rows_up_to_half_a_million_elements_are_held() -> None:
    """32 elements a thread of 16 CTAs of 1024; beyond, rows are read twice."""
    for moves in ("vectors", "cover"):
        held = [way for way in CLUSTERINGS if way.moves == moves and way.dtypes == tuple(STORAGE)]
        assert max(way.ctas * way.threads * 8 * way.phases for way in held) == 2**19
    assert any(not way.held for way in CLUSTERINGS)
