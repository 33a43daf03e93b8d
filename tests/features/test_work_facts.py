"""Work facts are exact and logical: each below is counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import asdict

from features.facts import WorkFacts, work_facts
from features.program import program_of
from features.workload import workload
from features.workloads import workloads
from kernels.recipe import Recipe
from kernels.recipes import RECIPES, recipe

NUMBERS = (
    *("programs", "valid_elements", "padded_elements", "collective_elements", "elementwise", "transcendental"),
    *("rows_tail", "columns_tail", "masked_share"),
)


def of(op: str, rows: int, width: int, dtype: str, name: str) -> WorkFacts:
    return work_facts(workload(op, (rows, width), dtype), recipe(f"{op}.{name}"), 132)


def test_regrouped_rows() -> None:
    """17 rows of 1000 halves, two a program: nine programs, 128 lanes with 8 vectors of 8 a step cover 8192 a row."""
    found = of("sum", 17, 1000, "float16", "rows2")
    assert asdict(found) == asdict(
        WorkFacts(
            programs=9,
            valid_elements=17_000,
            padded_elements=18 * 8192,
            collective="reduce sum",
            collective_elements=2000,
            elementwise=0,
            transcendental=0,
            storage_bytes=2,
            compute_bytes=4,
            contiguous_stride=1,
            tile_axes=("row", "element"),
            rows_tail=1,
            columns_tail=7192,
            masked_share=(18 * 8192 - 17_000) / (18 * 8192),
            loads_per_element=1,
            stores_per_result=1,
            operands_disjoint=True,
        )
    )


def test_a_mean_divides_once_a_row() -> None:
    found = of("mean", 5, 300, "float32", "rows1")
    assert (found.elementwise, found.transcendental, found.collective) == (5, 5, "reduce sum")


def test_a_split_shares_a_row() -> None:
    """2^20 halves over 128 CTAs of 256 lanes: a step of 8 vectors covers 2^21, twice the row."""
    found = of("sum", 1, 2**20, "float16", "split")
    assert (found.programs, found.collective_elements, found.columns_tail) == (128, 2**13, 2**20)


def test_rows_in_one_run_pad_the_run_and_not_each_row() -> None:
    """30 rows of 33 are 990 of the 1024 elements of 128 threads; a hundred rows are four runs, the last one of ten."""
    found = of("scan", 100, 33, "float16", "flat128")
    assert (found.programs, found.padded_elements, found.columns_tail, found.rows_tail) == (4, 4 * 1024, 34, 20)
    assert found.collective_elements == 990


def test_lanes_that_hold_a_row_pad_it() -> None:
    """Four rows a CTA, 32 lanes of 8 elements each: nine rows of 200 are three CTAs and twelve times 256."""
    found = of("scan", 9, 200, "float32", "lanes32x8")
    assert (found.programs, found.padded_elements, found.columns_tail, found.rows_tail) == (3, 12 * 256, 56, 3)


def test_lanes_that_take_several_rows_pad_each() -> None:
    """16 rows a CTA, 16 lanes of 8 elements each: 65 rows of 100 are five CTAs and 80 times 128."""
    found = of("scan", 65, 100, "float32", "vector16x8r2")
    assert (found.programs, found.padded_elements, found.columns_tail, found.rows_tail) == (5, 80 * 128, 2 * 28, 15)
    assert found.collective_elements == 1600


def test_tiny_rows_pad_nothing_but_the_last_program() -> None:
    """256 rows a CTA: 300 rows of 5 are two CTAs and 512 rows."""
    found = of("scan", 300, 5, "float16", "tiny32")
    assert (found.programs, found.padded_elements, found.columns_tail, found.rows_tail) == (2, 512 * 5, 0, 212)


def test_the_original_does_not_know_its_operands_apart() -> None:
    assert not of("max", 4, 64, "float16", "original").operands_disjoint


@pytest.mark.parametrize(
    "row", [row for row in RECIPES if row.form in ("reduce.sum", "prefix.sum")], ids=lambda r: r.id
)
def test_many_workloads_have_the_facts_of_each(row: Recipe) -> None:
    rows, widths = np.array([1, 2, 3, 132, 5000]), np.array([64, 4096, 2000, 16384, 300_000])
    op = "scan" if row.form == "prefix.sum" else "sum"
    many = work_facts(workloads(program_of(op, "float32"), rows, widths), row, 132)
    for i, shape in enumerate(zip(rows.tolist(), widths.tolist(), strict=True)):
        alone = work_facts(workload(op, shape, "float32"), row, 132)
        for name in NUMBERS:
            assert np.broadcast_to(np.asarray(getattr(many, name)), rows.shape)[i] == getattr(alone, name), name
        assert alone.padded_elements >= alone.valid_elements
