"""The second report's cases are taken as it took them, and every candidate is told, also where it was not timed."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.channel_baselines import BASELINES, BUILT_IN, COPY, FORMULAS
from benchmarks.channel_recipes import BEST, OURS, PICKED, RETAINED, Candidate
from benchmarks.channel_table import CASES, COLUMNS, Case, Row, table, tsv
from benchmarks.replays import CALLS_A_PAIR, WARM_UPS
from features.proof import Proved, candidates
from features.workload import workload
from kernels.channels import CHANNEL_NORMS
from kernels.recipes import recipe


def test_the_cases_and_the_protocol_are_the_reports() -> None:
    main, *transfer = CASES
    assert (main.shape, main.seed, main.drawn, main.rounds) == ((4, 64, 512, 512), 42, "uniform", 35)
    shapes = [(4, 32, 512, 1024), (4, 128, 256, 512), (2, 64, 64, 64), (4, 64, 512, 512)]
    assert [case.shape for case in transfer] == shapes
    assert {(case.seed, case.drawn, case.rounds) for case in transfer} == {(881, "normal", 25)}
    assert (WARM_UPS, CALLS_A_PAIR) == (8, 5)


def test_every_program_has_its_formula_and_its_built_in() -> None:
    assert set(FORMULAS) == set(BUILT_IN) == {norm.op for norm in CHANNEL_NORMS.values()}
    for function in (*FORMULAS.values(), *BUILT_IN.values()):
        assert list(inspect.signature(function).parameters) == ["x"]
        assert function.__defaults__ is None
        assert function.__closure__ is None, "torch compiles a copy of its code"
    assert len({*BASELINES, COPY, *OURS}) == 12


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.part + "x".join(map(str, case.shape)))
@pytest.mark.parametrize("op", FORMULAS)
def test_the_reports_two_ways_take_every_case(case: Case, op: str) -> None:
    work = workload(op, case.shape, "float32")
    legal = {row.id for row, proof in candidates(work) if isinstance(proof, Proved)}
    assert {f"{op}.{name}{case.shape[1]}" for name in (RETAINED, "reread")} <= legal
    assert work.width == case.shape[1], "the ways are named by channels"


def rows() -> list[Row]:
    case, op = CASES[0], "channel_rms"
    found = [Row(case, op, Candidate(name, lambda: None), "measured", (4.0, 2.0, 3.0)) for name in (*BASELINES, COPY)]
    found[2] = Row(
        case, op, Candidate("compile", "RuntimeError: no\tcompiler\nhere"), "absent", (), "no\tcompiler\nhere"
    )
    receipt: Any = SimpleNamespace(registers=88, local_bytes=0)
    for name in OURS:
        ours = Candidate(name, lambda: None, recipe("channel_rms.retained64"), receipt)
        found.append(Row(case, op, ours, "measured", (1.5,) * 35))
    return found


def test_every_row_and_sample_is_written_on_one_line() -> None:
    text = tsv(rows(), {"gpu": "a GPU", "commit": "c" * 40})
    first, second, head, *lines = text.splitlines()
    assert (first, second) == ("# gpu: a GPU", "# commit: " + "c" * 40)
    assert head.split("\t") == list(COLUMNS)
    parts = [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in lines]
    by_name = {part["candidate"]: part for part in parts}
    assert list(by_name) == [*BASELINES, COPY, *OURS]
    assert by_name["compile"]["message"] == "no compiler here"
    assert by_name["compile"]["median_us"] == by_name["compile"]["samples_us"] == ""
    assert by_name["eager"]["median_us"] == "3.000"
    assert by_name["eager"]["samples_us"] == "4.000 2.000 3.000"
    assert (by_name[BEST]["recipe"], by_name[BEST]["registers"]) == ("channel_rms.retained64", "88")


def test_the_table_holds_ours_against_the_fastest_baseline() -> None:
    head, _, line = table(rows()).splitlines()
    cells = dict(zip(*([cell.strip() for cell in text.strip("|").split("|")] for text in (head, line)), strict=True))
    assert cells["compile"] == "absent"
    assert cells["eager"] == "3.00"
    assert cells[f"fastest baseline / {PICKED}"] == "2.00"
    assert cells["best is"] == "channel_rms.retained64"
