"""One geometry on the device: hot and cold, whole, and with a recipe that joins later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attrs import evolve

from calibration.joining import Want, wanted
from calibration.loading import EMPTY
from calibration.measure import Point, measure
from calibration.plan import Planned
from calibration.records import MEASURED, inconsistencies, is_ambiguous
from calibration.rounds import Bench

if TYPE_CHECKING:
    from calibration.gpu import Session
    from kernels.target import Target
    from tests.gpu.tensors import Kernels

# 8 MiB of traffic: all of it stays in L2 where the buffers are the same, none where they rotate.
PLANNED = Planned("scan", "float16", 256, 8192, {"set": "training"})


@pytest.fixture
def bench(session: Session, kernels: Kernels, device: int, target: Target) -> Bench:
    from kernels import driver

    return Bench(
        session=session,
        kernels=kernels,
        excluded={},
        empty=driver.load(EMPTY, "float32", device),
        sm_count=target.sm_count,
        throttled=lambda: False,
        l2_bytes=target.l2_bytes,
    )


def test_cold_launches_take_longer_than_hot_ones(bench: Bench) -> None:
    """Each graph was read back: its launches rotate through the pairs. What is timed must then come from memory."""
    hot, cold = (measure(bench, Point(PLANNED, regime, "training", 0, 7)) for regime in ("hot", "cold"))
    assert (hot.regime, cold.regime) == ("hot", "cold")
    for record in (hot, cold):
        assert record.status == MEASURED
        assert inconsistencies(record) == ()
    for m in hot.recipes():
        there = cold.timing(m.name)
        if there is not None:
            assert there.median_us > 1.1 * m.timing.median_us, m.name


def test_a_recipe_joins_a_record_beside_the_original(bench: Bench) -> None:
    point = Point(PLANNED, "hot", "training", 0, 7)
    whole = measure(bench, point)
    later = "scan.cub256"
    kept = tuple(m for m in whole.measurements if m.name != later)
    without = evolve(whole, measurements=kept, ambiguous=is_ambiguous(kept))
    want = wanted(PLANNED, without)
    assert want == Want(frozenset({later}), pick=False, peers=False)
    joined = measure(bench, point, want, without)
    assert inconsistencies(joined) == ()
    assert set(joined.by_name) == set(whole.by_name)
    if joined.joined:  # else the original had moved, and all was measured again
        assert joined.by_name[later].round == 2
        assert [m.name for m in joined.joined[0].again] == ["scan.original"]
        assert joined.by_name["scan.cub128"] == whole.by_name["scan.cub128"]
