"""A batch decides bit for bit as one request after another does."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from features.errors import ProgramError, WorkloadError
from features.expression import Cast, Load, Prefix, Store
from features.program import Program, scan
from features.workload import Workload
from features.workloads import workloads
from kernels.dtypes import STORAGE
from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL, SPLIT, Recipe
from kernels.recipes import recipes_of
from kernels.target import Target
from policy.batch import Choices, select_batch
from policy.catalogue import ReceiptSource, recorded
from policy.profile import Profile
from policy.select import select
from tests.made import H200, made_profile, made_receipt
from tests.policy.cases import profile_priced_by, profile_with, with_receipts

ROWS = st.integers(0, 300) | st.integers(0, 2**32)
WIDTHS = st.integers(0, 130).map(lambda n: n * 1024) | st.integers(0, 9000) | st.integers(0, 2**20)
GEOMETRIES = st.lists(st.tuples(ROWS, WIDTHS, st.integers(0, 9)), min_size=1, max_size=25)
EVERYTHING = [0.0, 1e12]
MADE = made_profile()
CLOSE = profile_with(original=[0.7, 31.0, 0.00003], recipe=[0.9, 29.0, 0.003, 0.0007])
NARROW = profile_with(
    ranges={
        "original": [EVERYTHING, EVERYTHING, [2048.0, 1e6]],
        "recipe": [EVERYTHING, [0.001, 50.0], [16.0, 1e4], EVERYTHING],
    }
)


SECOND = profile_priced_by("scan/2", 1.7, 21.3, 3.1, 7.7, 0.3, 0.07, 0.011, 0.0003, 0.00007)
FOURTH = profile_priced_by("scan/4", 1.9, 19.1, 2.3, 0.017, 0.013, 0.007, 0.011, 0.0003, 0.00007)
THIRD = profile_priced_by("scan/3", 1.9, 19.1, 2.3, 0.0017, 0.13, 0.0007, 0.011, 0.0003, 0.00007)
UNPROVED = (2**42, 1)  # more rows than a grid: the original alone is proved


def one_by_one(
    choices: Choices, works: list[Workload], target: Target, profile: Profile, source: ReceiptSource
) -> None:
    """Assert that each geometry alone is decided as in the batch."""
    for i, work in enumerate(works):
        alone = select(work, target, profile, source)
        assert choices.recipes[choices.chosen[i]].id == alone.decision.recipe
        assert choices.reasons[i] == alone.decision.reason
        for row, candidate in zip(choices.scores_us[:, i], alone.candidates, strict=True):
            assert (None if math.isnan(row) else float(row)) == candidate.score_us


def spill(receipt: Any) -> Any:
    return evolve(receipt, local_bytes=4) if receipt.recipe == "scan.cub256" else receipt


@given(
    geometries=GEOMETRIES,
    dtype=st.sampled_from(list(STORAGE)),
    profile=st.sampled_from([MADE, CLOSE, NARROW, SECOND, THIRD, FOURTH]),
    receipts=st.sampled_from([None, spill, lambda receipt: None]),
    target=st.sampled_from([H200, H200, H200, evolve(H200, sm_count=114)]),
    alignment=st.sampled_from([16, 16, 4]),
    numerics=st.sampled_from(["any", "any", "bit_equal"]),
)
def test_a_batch_decides_as_one_request_does(
    geometries: list[tuple[int, int, int]],
    dtype: str,
    profile: Profile,
    receipts: Any,
    target: Target,
    alignment: int,
    numerics: str,
) -> None:
    """Recipe, reason and every score, over shapes, pitches, dtypes, profiles, receipts, targets and demands."""
    source = recorded(profile) if receipts is None else with_receipts(receipts, profile)
    geometries = [(rows, width, pad) for rows, width, pad in geometries if rows * (width + pad) < 2**44]
    rows, widths, pads = (list(column) for column in zip(*geometries, strict=True)) if geometries else ([], [], [])
    pitches = [width + pad for width, pad in zip(widths, pads, strict=True)]
    program, layout = scan(dtype), {"alignment_bytes": alignment, "numerics": numerics}
    batch = workloads(program, rows, widths, row_pitches=pitches, **layout)  # type: ignore[arg-type]
    choices = select_batch(batch, target, profile, source)
    each = [batch.at(i) for i in range(len(batch))]
    one_by_one(choices, each, target, profile, source)


def test_a_split_of_few_wide_rows_is_chosen_in_a_batch_too() -> None:
    """As it is in one request; many short rows are not split."""
    batch = workloads(scan("float16"), [1, 2, 8192], [2**20, 400001, 1024])
    choices = select_batch(batch, H200, THIRD, recorded(THIRD))
    one_by_one(choices, [batch.at(i) for i in range(len(batch))], H200, THIRD, recorded(THIRD))
    roles = [choices.recipes[i].role for i in choices.chosen]
    assert roles[:2] == [SPLIT, SPLIT]
    assert roles[2] != SPLIT


@pytest.mark.parametrize("profile", [profile_with(fits=[]), profile_with(fits=[], receipts=[])])
def test_a_batch_without_a_fit_keeps_the_original(profile: Profile) -> None:
    """As one request does."""
    batch = workloads(scan("float16"), *zip((128, 8192), UNPROVED, strict=True))
    choices = select_batch(batch, H200, profile, recorded(MADE))
    one_by_one(choices, [batch.at(0), batch.at(1)], H200, profile, recorded(MADE))
    assert list(choices.reasons) == ["no_fit", "no_proved_recipe"]


@pytest.mark.parametrize("capacity", [None, 0])
def test_an_original_of_unknown_capacity_is_kept(capacity: int | None) -> None:
    """Where the schema asks for it; nothing is put in its place."""

    def source(recipe: Recipe, dtype: str) -> Receipt:
        return made_receipt(recipe, dtype, **({"resident_ctas_per_sm": capacity} if recipe.role == ORIGINAL else {}))

    batch = workloads(scan("float16"), *zip((128, 8192), UNPROVED, strict=True))
    choices = select_batch(batch, H200, SECOND, source)
    one_by_one(choices, [batch.at(0), batch.at(1)], H200, SECOND, source)
    assert list(choices.reasons) == ["original_unknown", "no_proved_recipe"]
    assert select_batch(batch, H200, MADE, source).reasons[0] == "admitted"


def test_equal_scores_go_to_the_smaller_id_as_text() -> None:
    """In a batch, too."""
    profile = profile_with(recipe=[1.0, 0.0, 0.0, 0.0])
    choices = select_batch(workloads(scan("float16"), [128], [8192]), H200, profile, recorded(profile))
    assert choices.recipes[choices.chosen[0]].id == "scan.cub1024"


def test_an_empty_batch_is_no_error() -> None:
    """There is nothing to decide."""
    choices = select_batch(workloads(scan("float16"), [], []), H200, MADE, recorded(MADE))
    assert choices.chosen.shape == choices.reasons.shape == (0,)
    assert choices.scores_us.shape == (len(recipes_of("prefix.sum")), 0)


def test_a_program_that_nobody_runs_is_an_error() -> None:
    """Of the batch, since all its geometries share the program."""
    ordered = Program(Store(Cast(Prefix(Cast(Load("float16"), "float32"), ordered=True), "float16"), "float16"))
    with pytest.raises(ProgramError, match="left-to-right"):
        select_batch(workloads(ordered, [1], [8]), H200, MADE, recorded(MADE))


@pytest.mark.parametrize(
    ("rows", "widths", "code"),
    [
        ([1, -1], [8, 8], "shape_invalid"),
        ([1.5], [8], "shape_invalid"),
        ([float("nan")], [8], "shape_invalid"),
        ([True], [8], "shape_invalid"),
        (["1"], [8], "shape_invalid"),
        ([1, 2], [8], "shape_invalid"),
        ([[1]], [[8]], "shape_invalid"),
        ([10**30], [8], "shape_invalid"),
        ([2**50], [8], "index_overflow"),
        ([1, 2**40], [8, 2**40], "index_overflow"),
        (np.array([2**63], dtype=np.uint64), [8], "index_overflow"),
    ],
)
def test_a_geometry_that_is_none_is_refused(rows: Any, widths: Any, code: str) -> None:
    """Negative, fractional, overflowing, of another length or another type."""
    with pytest.raises(WorkloadError) as caught:
        workloads(scan("float16"), rows, widths)
    assert caught.value.code == code


def test_rows_that_overlap_are_refused() -> None:
    """A single row has nothing to overlap with."""
    assert len(workloads(scan("float16"), [1], [8], row_pitches=[4])) == 1
    with pytest.raises(WorkloadError, match="row pitch 4 at index 0 is less than the width 8"):
        workloads(scan("float16"), [2], [8], row_pitches=[4])


def test_a_hundred_thousand_geometries_take_less_than_a_second() -> None:
    """An order of magnitude of room: this is a guard against a loop in Python, not a benchmark."""
    rng = np.random.default_rng(0)
    rows, widths = rng.integers(1, 8192, 100_000), 1024 * rng.integers(1, 129, 100_000)
    started = time.perf_counter()
    select_batch(workloads(scan("float16"), rows, widths), H200, MADE, recorded(MADE))
    assert time.perf_counter() - started < 1.0
