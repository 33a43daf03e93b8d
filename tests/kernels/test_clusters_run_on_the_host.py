"""Rows that the CTAs of a cluster share, their threads run together on the host: right, and the same in any order.

A word that is put into a CTA that may not run, or a thread that misses a meeting, ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from shutil import which

import numpy as np
import pytest

from kernels.dtypes import STORAGE, storage
from kernels.norms import CLUSTERINGS, NORMS, Clustering, Norm, holds
from kernels.recipe import Recipe
from kernels.recipes import recipe, recipes_of
from tests.kernels.emulated import run
from tests.kernels.test_norm_kernels_run_on_the_host import FITTED, RNG, checked, is_legal, none_is_lost, weights_for

pytestmark = pytest.mark.skipif(which("g++") is None, reason="needs a host C++ compiler")
MANY_THREADS = 4096  # of a cluster: each is a fiber
LAYOUTS = ((0, 0), (3, 1), (0, None), (5, 7))


def cases() -> Iterator[tuple[Recipe, str]]:
    """Yield every way of each algebra with its most weights, in dtypes that take turns; of other forms one way."""
    for norm in NORMS.values():
        ways = [row for row in recipes_of(norm.form) if row.cluster > 1]
        for turn, row in enumerate(ways if norm.fitted else ways[1:2]):
            yield row, row.dtypes[turn % len(row.dtypes)]


def widths_of(row: Recipe, dtype: str) -> tuple[int, int, int]:
    """Return the least width that a recipe takes, one within a vector, and the most that CTAs hold or a step more."""
    threads = row.cluster * row.threads
    most = threads * row.items * row.phases
    least = threads * 16 // storage(dtype).bytes // 8 + 1
    return least, most * 5 // 8 + 3, most if holds(row) else most + 1001


@pytest.mark.parametrize(("row", "dtype"), [*cases()], ids=lambda part: getattr(part, "id", part))
def test_every_cluster_is_right_and_stays_inside(row: Recipe, dtype: str) -> None:
    """Rows begin and end off boundaries, between fences; so do weights, which lie otherwise between boundaries."""
    many = row.cluster * row.threads > MANY_THREADS
    for turn, width in enumerate(widths_of(row, dtype)):
        gap, offset = LAYOUTS[(turn + row.threads // 256) % 4]
        rows = 1 if many else 3
        assert is_legal(row, dtype, rows, width, gap, offset)
        lies = {"gap": gap, "offset": offset, "spacing": width + gap, "weight_offset": (None, 2, 0)[turn]}
        found, _ = checked(row, dtype, RNG.normal(0, 3, (rows, width)), seed=turn, **lies)
        assert found.right, f"{row.id} {dtype} {rows} x {width}, gap {gap}, offset {offset}: {found}"


@pytest.mark.parametrize("norm", FITTED, ids=lambda norm: norm.op)
def test_results_are_placed_by_rows_that_begin_elsewhere(norm: Norm) -> None:
    """Of x and y on different offsets from a boundary, element by element; the order of clusters changes no bit."""
    row = recipe(f"{norm.op}.cluster4x256x16")
    for dtype, width in (("bfloat16", 2055), ("float32", 1030)):
        values = RNG.normal(0, 2, (4, width))
        lies = {"offset": 3, "spacing": width + 5, "weights": weights_for(row, width)}
        lies["parameters"] = (1e-6,) * len(row.parameters)
        results = [
            run(row, dtype, values, gap=gap, y_offset=offset, seed=offset, **lies)[1]
            for gap, offset in ((8, 3), (8, 2), (16, 0))
        ]
        assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize(("ctas", "threads", "phases", "width"), [(4, 1024, 4, 2**17), (16, 1024, 4, 2**17 + 5)])
@pytest.mark.parametrize("norm", FITTED, ids=lambda norm: norm.op)
def test_no_element_of_a_wide_row_is_lost(norm: Norm, ctas: int, threads: int, phases: int, width: int) -> None:
    none_is_lost(norm, recipe(f"{norm.op}.{Clustering(ctas, threads, phases).name}"), width)


def test_every_dtype_is_held_up_to_a_million_elements_or_what_registers_do() -> None:
    """64 elements of 2 bytes a thread of 16 CTAs, 32 of FP32; beyond, rows are read twice."""
    for dtype in STORAGE:
        held = [way for way in CLUSTERINGS if way.held and dtype in way.dtypes]
        most = max(way.ctas * way.threads * 8 * way.phases for way in held)
        assert most == (2**20 if storage(dtype).bytes == 2 else 2**19)
        assert any(dtype in way.dtypes for way in CLUSTERINGS if not way.held)
