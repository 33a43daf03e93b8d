"""Rows that the CTAs of a cluster share: right, and the same bits however many clusters there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cupy
import pytest

from kernels.guard import Verdict
from kernels.norms import holds
from kernels.recipe import Recipe
from kernels.reference import compare
from tests.gpu.geometries import geometry_of
from tests.gpu.normalizations import EVERY
from tests.gpu.tensors import Kernels, given_for, prepared, random, refill, results, run

if TYPE_CHECKING:
    from calibration.gpu import Session

CLUSTERED = [row for row in EVERY if row.cluster > 1]
ANY_CLUSTER = pytest.mark.parametrize("row", CLUSTERED, ids=lambda row: row.id)
MOST_ELEMENTS = 2**27


@ANY_CLUSTER
def test_more_clusters_than_are_resident_end_and_are_right(kernels: Kernels, sm_count: int, row: Recipe) -> None:
    """While other work holds SMs; and a row's bits are those that it has alone."""
    dtype = row.dtypes[0]
    _, width = geometry_of(row, dtype)
    resident = kernels[row.id, dtype].receipt.resident_clusters
    assert resident
    rows = min(3 * resident + 1, MOST_ELEMENTS // width)
    x, given = random(dtype, rows, width), given_for(row, dtype, width)
    y = results(row, x)
    busy, work = cupy.cuda.Stream(non_blocking=True), cupy.ones(2**26, cupy.float32)
    cupy.cuda.Device().synchronize()
    with busy:
        for _ in range(20):
            cupy.sin(work, out=work)
    assert run(prepared(kernels, row, dtype, rows, width, sm_count), x, y, given) is Verdict.RECIPE
    cupy.cuda.Device().synchronize()
    assert compare(cupy, row.form, row, dtype, x.values(), y.values(), given.values).right
    for number in (0, rows // 2, rows - 1):
        alone = random(dtype, 1, width)
        alone.bits[...] = x.bits[number]
        out = results(row, alone)
        run(prepared(kernels, row, dtype, 1, width, sm_count), alone, out, given)
        assert bool(cupy.array_equal(out.bits[0], y.bits[number]))


@ANY_CLUSTER
def test_the_widest_row_that_a_cluster_holds_is_right_from_a_graph(
    kernels: Kernels, sm_count: int, session: Session, row: Recipe
) -> None:
    """Whole, and but for a few elements from a base off every boundary; of one that is read twice, 2^21 elements."""
    most = row.cluster * row.threads * row.items * row.phases if holds(row) else 2**21
    for dtype in row.dtypes:
        for width, offset in ((most, 0), (most - 9, 3)):
            x, given = random(dtype, 1, width, offset=offset), given_for(row, dtype, width, offset=offset)
            y, ready = results(row, x, offset=offset), prepared(kernels, row, dtype, 1, width, sm_count)
            session.synchronize()
            graph = session.capture(lambda: ready.run(x.span, y.span, session.pointer, given.operands), 2)  # noqa: B023
            refill(x, 5)
            session.synchronize()
            graph.replay()
            session.synchronize()
            found = compare(cupy, row.form, row, dtype, x.values(), y.values(), given.values)
            assert found.right, f"{row.id} {dtype} {width}: {found}"
