"""Splitting a row over CTAs is legal where there is more than one part to share, and few enough CTAs to meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from features.errors import Refused
from features.program import scan
from features.proof import Proved, legal, prove
from features.workload import Workload, workload
from features.workloads import workloads
from kernels.launch import launch_shape
from kernels.recipe import Recipe
from kernels.recipes import RECIPES, recipe

SPLITS = [row for row in RECIPES if row.template == "scan_split.cu"]
# A part is what a recipe's name says. A row counts as up to 7 elements wider, for those before a vector boundary.
PART = {"scan.split2048": 2048, "scan.split4096": 4096, "scan.split8192": 8192}
each = pytest.mark.parametrize("row", SPLITS, ids=lambda row: row.id)


def verdict(row: Recipe, rows: int, width: int, **layout: object) -> str:
    """Return the code of the refusal, or `proved`; whether one is asked or many."""
    alone = prove(workload("scan", (rows, width), "float16", **layout), row)  # type: ignore[arg-type]
    together = legal(workloads(scan("float16"), [rows, 1], [width, 10**6]), row)
    code = alone.code if isinstance(alone, Refused) else "proved"
    assert bool(np.broadcast_to(together, (2,))[0]) is (code == "proved")
    return code


def test_a_part_is_what_the_name_says() -> None:
    assert {row.id: row.threads * row.items * row.phases for row in SPLITS} == PART


@each
def test_a_row_is_split_where_it_is_wider_than_a_part(row: Recipe) -> None:
    """And than what one CTA takes as fast, of whatever parts."""
    least = max(PART[row.id], 8192)
    assert [verdict(row, 1, least + more) for more in (-1, 0)] == ["width_too_small"] * 2
    assert [verdict(row, 1, least + more) for more in (1, 7, least)] == ["proved"] * 3


@each
def test_a_row_is_split_among_few(row: Recipe) -> None:
    assert [verdict(row, rows, 20_000) for rows in (1, 48, 49)] == ["proved", "proved", "too_many_rows"]


@each
def test_ctas_are_at_most_8192(row: Recipe) -> None:
    """64 KiB of words, and one more word would be too many."""
    part = PART[row.id]
    # 256 parts a row: 32 rows are 8192 CTAs. 273: 30 rows are 8190 and 31 are 8463.
    assert [verdict(row, rows, 256 * part - 7) for rows in (32, 33)] == ["proved", "too_many_parts"]
    assert [verdict(row, rows, 273 * part - 7) for rows in (30, 31)] == ["proved", "too_many_parts"]
    # One row of 8192 parts is 8192 * part - 7 elements at most: one more may need a part of its own.
    assert [verdict(row, 1, 8192 * part - 7 + more) for more in (0, 1)] == ["proved", "too_many_parts"]


@each
def test_width_is_looked_at_before_ctas(row: Recipe) -> None:
    """A narrow row is refused for that, however many there are."""
    assert verdict(row, 10**6, 8192) == "width_too_small"
    assert verdict(row, 10**6, 8193) == "too_many_rows"


def test_the_facts_are_those_of_the_launch() -> None:
    """50257 + 7 elements are 24.5 parts of 2048: 25. Three rows are 75 CTAs, a counter and 75 words of 8 bytes."""
    row = recipe("scan.split2048")
    found = prove(workload("scan", (3, 50257), "float32"), row)
    assert isinstance(found, Proved)
    facts = {"part_elements": 2048, "parts_per_row": 25, "ctas": 75, "workspace_bytes": 608}
    assert found.facts["row_parts"] == facts
    shape = launch_shape(row, 3, 50257, 132)
    assert (shape.ctas, shape.extra, shape.workspace_bytes) == (75, (25,), 608)


@each
def test_alignment_and_pitch_are_no_matter(row: Recipe) -> None:
    """A row is cut at vector boundaries wherever it begins."""
    for layout in ({"alignment_bytes": 2}, {"strides": (20_003, 1)}):
        work = workload("scan", (4, 20_001), "float16", **layout)  # type: ignore[arg-type]
        assert isinstance(prove(work, row), Proved)


@each
def test_rows_whose_sums_must_keep_their_bits_are_not_split(row: Recipe) -> None:
    """Parts are added in another order than the original adds."""
    found = prove(workload("scan", (4, 20_001), "float16", numerics="bit_equal"), row)
    assert isinstance(found, Refused)
    assert found.code == "numerics_not_permitted"


@given(
    st.lists(st.tuples(st.integers(0, 9000) | st.integers(0, 2**30), st.integers(0, 2**24)), min_size=1, max_size=30),
    st.sampled_from(SPLITS),
)
def test_many_are_judged_as_one_is(geometries: list[tuple[int, int]], row: Recipe) -> None:
    """Array by array, near the edges and far beyond 32 bits."""
    edges = [(8192 // parts + more, parts * PART[row.id] - 7) for parts in (1, 2, 3) for more in (0, 1)]
    geometries = [pair for pair in (*geometries, *edges) if pair[0] * pair[1] < 2**44]
    rows, widths = (list(column) for column in zip(*geometries, strict=True))
    program = scan("float16")
    verdicts = np.broadcast_to(legal(workloads(program, rows, widths), row), (len(rows),))
    alone = [isinstance(prove(Workload(program, r, w, w), row), Proved) for r, w in geometries]
    assert verdicts.tolist() == alone
