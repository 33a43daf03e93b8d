"""What makes a recipe of channel norms legal: the formula, its channels, its positions, and an array without gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from features.errors import ProgramError
from features.expression import Cast, Combine, Load, Map, Reduce, Store
from features.facts import work_facts
from features.program import Program, program_of
from features.proof import Proved, Refused, candidates, form_of, legal, prove
from features.workload import Workload, workload
from features.workloads import workloads
from kernels.channels import CHANNEL_NORMS, WAYS, held_channels
from kernels.dtypes import STORAGE
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import recipe, recipes_of
from policy.select import recorded, select
from tests.gpu.image_shapes import EVERY, LARGER, SMALL
from tests.gpu.image_shapes import legal as takes
from tests.made import H200, made_profile

L2 = form_of(program_of("channel_l2", "float16"))


def images(*shape: int, dtype: str = "float32", **layout: Any) -> Workload:
    return workload("channel_l2", shape, dtype, **layout)


def refused(work: Workload, name: str) -> str:
    found = prove(work, recipe(f"channel_l2.{name}"))
    assert isinstance(found, Refused)
    return found.code


def test_forms_are_those_of_the_table() -> None:
    assert {form_of(program_of(norm.op, "bfloat16")): norm for norm in CHANNEL_NORMS.values()} == CHANNEL_NORMS


def test_facts_tell_what_is_read_and_how() -> None:
    found = prove(images(2, 64, 8, 16, dtype="float16"), recipe("channel_l2.vector8"))
    assert isinstance(found, Proved)
    assert found.facts["channels_closed"] == {
        "state": "sum of squares",
        "state_bytes": 4,
        "arithmetic": "float32",
        "images": 2,
        "channel_stride_elements": 128,
        "loads_per_element": 2,
        "stores_per_element": 1,
        "reread_bytes": 2 * 64 * 128 * 2,
        "span_bytes": 2 * 64 * 128 * 2,
    }
    assert found.facts["whole_positions"] == {"positions_per_thread": 8, "access_bytes": 16}


@pytest.mark.parametrize(
    ("work", "name", "code"),
    [
        (images(2, 65, 64), "retained64", "channels_differ"),
        (images(2, 64, 49), "retained64x2", "positions_not_divisible"),
        (images(2, 64, 64, alignment_bytes=8), "retained64x2", "misaligned"),
        (images(2, 64, 64), "retained128x2", "dtype_unsupported"),
        (images(2, 65, 64), "tile32x8x8", "width_too_large"),
        (images(2, 8, 64), "tile32x8x8", "width_too_small"),
        (images(2, 300, 9), "tile1x128x8", "too_many_positions"),
        (images(2, 2, 64), "steps32x8x8", "width_too_small"),
        (images(2, 64, 64, numerics="bit_equal"), "tile32x8x8", "numerics_not_permitted"),
        (images(0, 64, 64), "retained64", "empty"),
    ],
)
def test_what_fails_has_a_code(work: Workload, name: str, code: str) -> None:
    assert refused(work, name) == code


def test_images_with_gaps_are_no_workload_of_any_recipe() -> None:
    gaps = evolve(images(2, 64, 4), row_pitch=65)
    assert {refused(gaps, row.id.removeprefix("channel_l2.")) for row in recipes_of(L2) if "float32" in row.dtypes} <= {
        "rows_not_contiguous"
    }
    with pytest.raises(ProgramError, match="cannot run this program"):
        candidates(gaps)


def test_another_formula_is_refused() -> None:
    """And the same one along the last axis, which is another program."""
    assert refused(workload("channel_rms", (2, 64, 64), "float32"), "retained64") == "not_channel_norm"
    row = Cast(Load("float32"), "float32")
    last = Program(Store(Cast(Combine(row, Map(Reduce(Map(row, "square")), "sqrt"), "divide"), "float32"), "float32"))
    assert refused(evolve(images(2, 64, 64), program=last), "retained64") == "not_channel_norm"


def test_bit_equal_recipes_are_those_that_add_in_the_order_of_channels() -> None:
    equal = {row.id.partition(".")[2] for row in EVERY if row.numerics == "bit_equal"}
    assert equal == {"original"} | {way.name for way in WAYS if way.lanes == way.threads}
    work = images(2, 64, 64, numerics="bit_equal")
    proved = [row for row, found in candidates(work) if isinstance(found, Proved)]
    assert {row.template for row in proved} == {"channel_original.cu", "channel_vector.cu", "channel_retained.cu"} | {
        "channel_reread.cu"
    }


@pytest.mark.parametrize("row", EVERY, ids=lambda row: row.id)
def test_every_recipe_is_met_by_the_images_of_the_gpu_tests(row: Recipe) -> None:
    for dtype in row.dtypes:
        assert any(takes(row, dtype, *shape) for shape in SMALL), dtype
        assert row.role != ORIGINAL or all(takes(row, dtype, *shape, 4) for shape in (*SMALL, *LARGER))
    assert row.threads * row.rows_each == row.rows_per_cta * row.lanes
    assert held_channels(row) == row.phases * row.lanes


@pytest.mark.parametrize("dtype", STORAGE)
def test_nearly_all_images_have_a_recipe_besides_the_original(dtype: str) -> None:
    for channels in (2, 3, 16, 64, 100, 512, 1000, 2048, 5000):
        for positions in (1, 7, 49, 64, 4096):
            proved = [
                row
                for row, found in candidates(images(3, channels, positions, dtype=dtype))
                if isinstance(found, Proved)
            ]
            assert len(proved) > 1 or (channels == 2 and positions % 4), (channels, positions)


def test_many_images_are_judged_as_each_is() -> None:
    shapes = [(2, 64, 4096), (3, 65, 49), (1, 512, 49), (7, 3, 1024), (5, 300, 1)]
    rows, widths, inner = zip(*[(n * s, c, s) for n, c, s in shapes], strict=True)
    for row in recipes_of(L2):
        for dtype in row.dtypes:
            verdicts = np.broadcast_to(
                legal(workloads(program_of("channel_l2", dtype), rows, widths, inners=inner), row), len(shapes)
            )
            alone = [isinstance(prove(images(*shape, dtype=dtype), row), Proved) for shape in shapes]
            assert verdicts.tolist() == alone, row.id


def test_work_facts_count_channels_and_positions() -> None:
    """3 images of 100 channels at 40 positions: 4 CTAs of 32 positions, 16 groups that take up to 16 channels each."""
    found = work_facts(images(3, 100, 40), recipe("channel_l2.tile32x16x16"), 132)
    assert (found.programs, found.valid_elements, found.padded_elements) == (4, 12_000, 128 * 256)
    assert (found.contiguous_stride, found.rows_tail, found.columns_tail) == (40, 8, 156)


def test_a_selection_tells_the_inner_extent_where_there_is_one() -> None:
    profile = made_profile(("channelnorm",))
    for shape, inner in (((2, 64, 8, 8), 64), ((2, 64), None)):
        made = select(images(*shape), H200, profile, recorded(profile))
        assert made.facts["workload"].get("inner") == inner
