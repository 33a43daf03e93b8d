"""The vectors of `channelnorm/1`: each column below is worked out by hand."""

from __future__ import annotations

import pytest

from features.program import program_of
from features.schema import point
from features.schemas_channel import CHANNELNORM_1
from features.workload import Workload, workload
from features.workloads import workloads
from kernels.recipe import Recipe
from kernels.recipes import recipe
from tests.gpu.image_shapes import EVERY
from tests.made import H200

SMS = 132
MIB = 2**20


def named(work: Workload, row: Recipe, capacity: int) -> dict[str, float]:
    columns = CHANNELNORM_1.roles[row.role]
    values = CHANNELNORM_1.vector(row.role, point(work, row, capacity, H200))
    return {feature.name: value for feature, value in zip(columns, values, strict=True)}


def test_a_tile_of_large_images() -> None:
    """4 x 64 x 2^18 FP32: 2^20 positions, 128 a CTA of 256 threads in 8 groups, 8 channels of 4 positions each."""
    found = named(workload("channel_l2", (4, 64, 512, 512), "float32"), recipe("channel_l2.tile32x8x8v4"), 4)
    traffic = 2 * 4 * 2**20 * 64 / (SMS * MIB)
    batches = -(-(2**13) // (SMS * 4))
    assert found == pytest.approx(
        {
            "constant": 1,
            "traffic": traffic,
            "far_traffic": traffic,
            "ragged": 0.0,
            "batches": batches,
            "batch_steps": batches,
            "batch_elements": batches * 8 * 4,
            "batch_bytes": batches * 256 * 8 * 4 * 4 / MIB,
            "programs": 2**13 / SMS,
            "masked": 0.0,
            "combining": batches * 3,
        }
    )


def test_few_ragged_positions_read_twice() -> None:
    """2 x 512 x 49 halves: 98 positions in one CTA, 512 channels in 64 steps of 8; 98 bytes lie in up to 5 sectors."""
    found = named(workload("channel_l2", (2, 512, 49), "float16"), recipe("channel_l2.original"), 8)
    traffic = 2 * 2 * 98 * 512 / (SMS * MIB)
    assert found == pytest.approx(
        {
            "constant": 1,
            "traffic": traffic,
            "far_traffic": 0.0,
            "ragged": traffic * (5 * 32 - 98) / 98,
            "batches": 1,
            "batch_steps": 64,
            "batch_elements": 512,
            "batch_bytes": 64 * 256 * 8 * 2 / MIB,
            "programs": 1 / SMS,
            "masked": 2 * (256 - 98) * 512 / (SMS * 2**10),
            "reread": traffic / 2,
            "far_reread": 0.0,
        }
    )


def test_what_is_read_again_is_far_where_threads_hold_more_than_stays_in_l2() -> None:
    """2^20 positions of 256 FP32 channels: 132 SMs with 6 CTAs of 256 positions read 207 MB before any of it again."""
    found = named(workload("channel_l2", (4, 256, 2**18), "float32"), recipe("channel_l2.original"), 6)
    assert found["far_reread"] == found["reread"] > 0


@pytest.mark.parametrize(
    "row", [row for row in EVERY if row.form.startswith("divide(c,map.sqrt.reduce")], ids=lambda r: r.id
)
def test_many_vectors_are_those_of_each(row: Recipe) -> None:
    shapes = [(1, 64, 4096), (3, 32, 49), (5, 128, 64), (2, 1000, 1), (64, 3, 50_176)]
    rows, widths, inner = zip(*[(n * s, c, s) for n, c, s in shapes], strict=True)
    many = point(workloads(program_of("channel_l2", "float16"), rows, widths, inners=inner), row, 3, H200)
    together = CHANNELNORM_1.vector(row.role, many)
    for place, shape in enumerate(shapes):
        alone = CHANNELNORM_1.vector(row.role, point(workload("channel_l2", shape, "float16"), row, 3, H200))
        assert [column[place] for column in together] == list(alone)
        assert all(value >= 0 for value in alone)
