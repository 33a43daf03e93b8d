"""Runs of rows, rows in lanes and rows in steps are legal where layout and width fit them, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.errors import Refused
from features.program import scan
from features.proof import Proved, legal, prove
from features.workload import Workload, workload
from features.workloads import workloads
from kernels.guard import judge, span
from kernels.launch import launch_shape
from kernels.recipe import Recipe
from kernels.recipes import recipe, recipes_of
from kernels.scans import WAYS

FURTHER = [row for row in recipes_of("prefix.sum") if row.id.partition(".")[2] in {way.name for way in WAYS}]


def verdict(recipe_id: str, rows: int, width: int, dtype: str = "float16", **layout: Any) -> str:
    found = prove(workload("scan", (rows, width), dtype, **layout), recipe(recipe_id))
    return found.code if isinstance(found, Refused) else "proved"


@pytest.mark.parametrize(("recipe_id", "most"), [("scan.flat128", 1017), ("scan.flat256", 2041)])
def test_a_run_takes_any_base_but_no_gaps_and_a_row_at_least(recipe_id: str, most: int) -> None:
    """8 T elements, of which up to seven may lie before a vector boundary."""
    assert [verdict(recipe_id, 5, width) for width in (1, 33, most, most + 1)] == [*["proved"] * 3, "width_too_large"]
    assert verdict(recipe_id, 5, 33, alignment_bytes=2) == "proved"
    assert verdict(recipe_id, 5, 33, strides=(34, 1)) == "rows_not_contiguous"
    assert verdict(recipe_id, 1, 33, strides=(34, 1)) == "proved"
    assert verdict(recipe_id, 5, 0) == "empty"


def test_the_facts_of_a_run_are_those_of_its_launch() -> None:
    """1017 // 33 = 30 rows a CTA; a million rows are ceil(33333.3) CTAs."""
    row = recipe("scan.flat128")
    found = prove(workload("scan", (10**6, 33), "float16"), row)
    assert isinstance(found, Proved)
    assert found.facts["packed_rows"] == {"rows_per_program": 30, "programs": 33_334, "most_elements": 1017}
    shape = launch_shape(row, 10**6, 33, 132)
    assert (shape.ctas, shape.threads, shape.extra) == (33_334, 128, (30,))


FEW = ("scan.any8", "scan.any16")
# The widths from and up to which a recipe is proved, of whole vectors of FP16 where it moves those.
HELD = {
    "scan.lanes1x4": (1, 4),
    "scan.lanes8x4": (5, 32),
    "scan.lanes32x4": (17, 128),
    "scan.lanes32x8": (33, 256),
    "scan.lanes128x8": (129, 1024),
    "scan.vector8x8": (16, 64),
    "scan.vector16x8": (24, 128),
    "scan.vector32x8": (40, 256),
    "scan.vector32x16": (72, 512),
    "scan.vector32x32": (136, 1024),
    "scan.vector128x8": (136, 1024),
    "scan.vector8x8r4": (16, 64),
    "scan.vector16x8r2": (24, 128),
    # Seven elements less than the lanes hold, and more than an eighth of that.
    "scan.cover32x8": (32, 249),
    "scan.cover32x16": (64, 505),
    "scan.cover32x32": (128, 1017),
    "scan.cover128x8": (128, 1017),
    # Of a step: chunk x chunks at once. More than half of it, up to 8 of them; the widest has no end.
    "scan.any1": (129, 2048),
    "scan.any2": (257, 4096),
    "scan.any4": (513, 8192),
    "scan.any4p": (1025, 16_384),
    "scan.any8": (1025, 16_384),
    "scan.any16": (2049, 32_768),
    "scan.any16p": (4097, 2**22),
}


@pytest.mark.parametrize(("recipe_id", "ends"), HELD.items(), ids=HELD)
def test_a_recipe_takes_the_widths_that_keep_its_threads_at_work(recipe_id: str, ends: tuple[int, int]) -> None:
    step, rows = 8 if "vector" in recipe_id else 1, 64 if recipe_id in FEW else 10_000
    layout = {"alignment_bytes": 2 if "cover" in recipe_id else 16}
    assert [verdict(recipe_id, rows, width, **layout) for width in ends] == ["proved", "proved"]
    below = verdict(recipe_id, rows, ends[0] - step, **layout)
    assert below == ("empty" if ends[0] == step else "width_too_small")
    above = verdict(recipe_id, rows, ends[1] + step, **layout)
    assert above == ("proved" if recipe_id == "scan.any16p" else "width_too_large")


@pytest.mark.parametrize("recipe_id", FEW)
def test_many_warps_that_take_one_chunk_a_step_are_for_few_rows(recipe_id: str) -> None:
    assert [verdict(recipe_id, rows, 8000) for rows in (1, 64, 65)] == ["proved", "proved", "too_many_rows"]
    assert verdict("scan.any16p", 65, 8000) == "proved"


def test_every_further_recipe_has_ends_here() -> None:
    apart = {"scan.flat128", "scan.flat256", "scan.tiny32", "scan.tiny128"}
    assert {row.id for row in FURTHER} == {*HELD, *apart}


def test_lanes_that_cover_a_row_take_any_but_whole_vectors_on_boundaries() -> None:
    """Which `vector` recipes take with less code; one of width, row pitch and base off is enough."""
    assert verdict("scan.cover32x8", 7, 200) == "rows_are_vectors"
    assert verdict("scan.cover32x8", 7, 204) == "proved"
    assert verdict("scan.cover32x8", 7, 204, "float32") == "rows_are_vectors"
    for layout in ({"alignment_bytes": 2}, {"strides": (201, 1)}):
        assert verdict("scan.cover32x8", 7, 200, **layout) == "proved"
    assert verdict("scan.cover32x8", 2**31 - 1, 57) == "proved"
    assert verdict("scan.cover32x8", 2**31, 57) == "index_overflow"


@pytest.mark.parametrize(("recipe_id", "rows_per_cta"), [("8x8r4", 64), ("16x8r2", 16)])
def test_lanes_that_take_several_rows_are_there_for_four_ctas_of_them(recipe_id: str, rows_per_cta: int) -> None:
    """128 threads are 16 groups of 8 lanes or 8 of 16, and each takes as many rows as the name says."""
    row, least = recipe(f"scan.vector{recipe_id}"), 4 * rows_per_cta
    assert row.rows_per_cta == rows_per_cta
    assert verdict(row.id, least - 1, 64) == "too_few_rows"
    assert verdict(row.id, least, 64) == "proved"
    assert launch_shape(row, least + 1, 64, 132).ctas == 5


@pytest.mark.parametrize(("recipe_id", "rows_per_cta"), [("scan.tiny32", 256), ("scan.tiny128", 1024)])
def test_a_thread_takes_eight_tiny_rows_of_one_span(recipe_id: str, rows_per_cta: int) -> None:
    assert [verdict(recipe_id, 5, width) for width in (1, 8, 9)] == ["proved", "proved", "width_too_large"]
    assert verdict(recipe_id, 5, 5, strides=(6, 1)) == "rows_not_contiguous"
    assert verdict(recipe_id, 1, 5, strides=(6, 1)) == "proved"
    assert verdict(recipe_id, 5, 5, alignment_bytes=8) == "misaligned"
    assert verdict(recipe_id, 2**40, 1) == ("index_overflow" if rows_per_cta == 256 else "proved")
    assert launch_shape(recipe(recipe_id), rows_per_cta + 1, 5, 132).ctas == 2


def test_vectors_need_boundaries_and_elements_need_none() -> None:
    for layout in ({"alignment_bytes": 2}, {"strides": (201, 1)}):
        assert verdict("scan.vector32x8", 7, 200, **layout) == "misaligned"
        assert verdict("scan.lanes32x8", 7, 200, **layout) == "proved"
        assert verdict("scan.any1", 7, 200, **layout) == "proved"
    assert verdict("scan.vector32x8", 7, 204) == "width_not_divisible"
    assert verdict("scan.vector32x8", 7, 204, "float32") == "proved"  # vectors of four elements
    assert verdict("scan.lanes1x4", 2**31 - 1, 1) == "proved"
    assert verdict("scan.lanes1x4", 2**31, 1) == "index_overflow"


@given(
    st.sampled_from(FURTHER),
    st.sampled_from(["float16", "float32"]),
    st.tuples(st.integers(1, 40), st.integers(1, 2100)),
    st.integers(0, 40),
    st.tuples(st.sampled_from([0, 0, 1, 8]), st.sampled_from([0, 0, 1, 8])),
)
def test_what_is_proved_of_a_layout_the_guard_lets_run(
    row: Recipe, dtype: str, shape: tuple[int, int], offset: int, gaps: tuple[int, int]
) -> None:
    """x as the workload says and y without gaps of its own at the same offset; the guard may know better, not less."""
    (rows, width), size = shape, 2 if dtype == "float16" else 4
    address = 2**20 + offset * size
    x = span(address, rows, width, width + gaps[0], dtype)
    y = span(address + 2**24, rows, width, width + gaps[0], dtype)
    work = Workload(scan(dtype), rows, width, width + gaps[0], address & -address)
    if isinstance(prove(work, row), Proved):
        assert judge(x, y, row.alignment).value == "recipe"


@given(
    st.lists(st.tuples(st.integers(0, 2**33), st.integers(0, 3000) | st.integers(0, 2**20)), min_size=1, max_size=20),
    st.sampled_from(FURTHER),
)
def test_many_are_judged_as_one_is(geometries: list[tuple[int, int]], row: Recipe) -> None:
    geometries = [pair for pair in geometries if pair[0] * pair[1] < 2**44] or [(1, 1)]
    rows, widths = (list(column) for column in zip(*geometries, strict=True))
    program = scan("float16")
    verdicts = np.broadcast_to(legal(workloads(program, rows, widths), row), (len(rows),))
    assert verdicts.tolist() == [isinstance(prove(Workload(program, r, w, w), row), Proved) for r, w in geometries]


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("rows", [1, 2, 3, 17, 127, 131, 132, 133, 512, 4095, 65537, 1_000_000])
@pytest.mark.parametrize("width", [1, 2, 31, 33, 127, 128, 513, 1000, 1024, 3584, 4097, 8192, 50257, 151936, 1_048_576])
def test_the_shapes_that_people_run_have_a_recipe(rows: int, width: int, dtype: str) -> None:
    """Without gaps on any base; and the choice of two or more up to widths of 16,384."""

    def proved(alignment_bytes: int) -> list[Recipe]:
        work = Workload(scan(dtype), rows, width, width, alignment_bytes)
        return [row for row in recipes_of("prefix.sum")[1:] if isinstance(prove(work, row), Proved)]

    assert proved(4)
    assert len(proved(16)) >= (2 if width <= 16_384 else 1)
