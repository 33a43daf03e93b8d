"""A validation is told by program and dtype: percentiles, abstentions, picks beside peers, traffic beside a copy."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
from attrs import evolve

from calibration.breakdown import BEHIND_PEER, LARGE_BYTES, UNDECIDED, by_program
from calibration.contest import contest
from calibration.errors import RecordError
from calibration.judge import FIRST_SCHEMA, VALIDATION_SCHEMA, judge
from calibration.packet import pack, read
from calibration.page import page
from calibration.records import CUB_SCAN, FLOOR, POLICY, Geometry, Measurement, is_ambiguous, original_drift
from calibration.stats import quantile
from calibration.tables import BY_PROGRAM, cub_scans, recipes
from calibration.traffic import footprint_bytes
from kernels.identity import digest
from kernels.recipes import RECIPES, original_of
from tests.calibration.forged import named
from tests.calibration.planted import NARROWER, planted_contents

CONTENTS = planted_contents()
VALIDATION = CONTENTS.validation or {}
OUTCOMES = VALIDATION["outcomes"]
FIGURES = VALIDATION["figures"]["by_program"]
PROFILE = digest(CONTENTS.profile)


def rejudged(records: list[Geometry]) -> dict[str, Any]:
    return judge(PROFILE, records, CONTENTS.selections)


def scaled(record: Geometry, name: str, factor: float) -> Geometry:
    measurements = tuple(
        evolve(m, samples_ns=tuple(round(s * factor) for s in m.samples_ns)) if m.name == name else m
        for m in record.measurements
    )
    moved = evolve(record, measurements=measurements, ambiguous=is_ambiguous(measurements))
    return evolve(moved, drift=original_drift(moved.measurements[0]))


def test_a_form_as_a_whole_comes_first_and_then_each_dtype() -> None:
    assert [(part["form"], part["dtype"]) for part in FIGURES] == [
        ("prefix.sum", dtype) for dtype in ("*", "bfloat16", "float16", "float32")
    ]
    assert FIGURES[0]["outcomes"] == sum(part["outcomes"] for part in FIGURES[1:]) == len(OUTCOMES)


@pytest.mark.parametrize("part", FIGURES, ids=lambda part: part["dtype"])
def test_each_figure_is_of_the_outcomes_of_its_dtype(part: dict[str, Any]) -> None:
    chosen = [o for o in OUTCOMES if part["dtype"] in ("*", o["dtype"])]
    regrets = sorted(o["regret"] for o in chosen)
    assert part["regret_p95"] == quantile(regrets, 0.95)
    assert part["regret_worst"] == regrets[-1]
    reasons = Counter(o["reason"] for o in chosen)
    assert sum(found["count"] for found in part["abstentions"].values()) == len(chosen) - reasons["admitted"]
    shares = sum(found["share"] for found in part["abstentions"].values())
    assert shares + part["admitted_share"] == pytest.approx(1)
    assert part["undecided_share"] == sum(reasons[name] for name in UNDECIDED) / len(chosen)
    large = [o for o in chosen if o["traffic_bytes"] >= LARGE_BYTES]
    assert part["large"]["count"] == len(large)
    assert part["large"]["picked_over_copy_worst"] == max(o["picked_over_copy"] for o in large)


def test_an_outcome_holds_its_traffic_and_the_rate_of_it_over_a_copys() -> None:
    by_digest = {record.digest: record for record in CONTENTS.validation_records}
    for o in OUTCOMES:
        record = by_digest[o["geometry"]]
        assert o["traffic_bytes"] == footprint_bytes(record.workload.program, record.rows, record.width)
        copy_us = record.by_name["copy"].timing.median_us
        copied = o["traffic_bytes"]  # a scan writes what it reads, as a copy does
        assert o["rate_over_copy"] == pytest.approx((o["traffic_bytes"] / o["automatic_us"]) / (copied / copy_us))


def test_a_pick_behind_its_best_peer_is_counted_and_named() -> None:
    assert FIGURES[0]["peers"]["behind"] == []
    records = list(CONTENTS.validation_records)
    peer_us, pick_us = (records[4].by_name[name].timing.median_us for name in ("torch.compile", "policy"))
    factor = pick_us / (peer_us * BEHIND_PEER * 1.01)
    records[4] = scaled(records[4], "torch.compile", factor)
    found = rejudged(records)["figures"]["by_program"][0]["peers"]
    (behind,) = found["behind"]
    assert (behind["rows"], behind["width"], behind["best_peer"]) == (
        records[4].rows,
        records[4].width,
        "torch.compile",
    )
    assert behind["picked_over_best_peer"] > BEHIND_PEER
    assert found["behind_share"] == 1 / found["count"]
    assert found["worst"] == behind["picked_over_best_peer"]


def test_the_best_peer_is_the_fastest_of_the_round() -> None:
    record = CONTENTS.validation_records[0]
    eager = evolve(scaled(record, "torch.compile", 0.5).by_name["torch.compile"], name="torch.eager")
    both = evolve(record, measurements=(*record.measurements, eager))
    o = rejudged([both])["outcomes"][0]
    assert o["best_peer"] == "torch.eager"
    assert o["picked_over_best_peer"] == pytest.approx(2 * o["picked_over_compile"], rel=1e-3)


def test_outcomes_without_peers_are_left_out_of_their_figures() -> None:
    alone = [
        evolve(r, measurements=tuple(m for m in r.measurements if m.kind not in ("peer", "floor")))
        for r in CONTENTS.validation_records
    ]
    part = rejudged(alone)["figures"]["by_program"][0]
    assert part["peers"] == {
        "count": 0,
        "geomean": None,
        "p95": None,
        "worst": None,
        "behind_share": None,
        "behind": [],
    }
    assert part["large"]["count"] == 0
    assert part["regret_worst"] == FIGURES[0]["regret_worst"]


@pytest.mark.parametrize(
    "item", ["regret_p95", "undecided_share", "peers.worst", "large.rate_over_copy_least", "regressions_repeated"]
)
def test_a_changed_figure_of_a_program_is_named(item: str) -> None:
    validation = copy.deepcopy(dict(VALIDATION))
    *path, last = item.split(".")
    node = validation["figures"]["by_program"][1]
    for key in path:
        node = node[key]
    node[last] = 0.123
    named(evolve(CONTENTS, validation=validation), "validation.json", f"by_program[1].{item}")


def test_a_document_of_the_first_schema_is_judged_as_it_was() -> None:
    first = judge(PROFILE, CONTENTS.validation_records, CONTENTS.selections, schema=FIRST_SCHEMA)
    assert "by_program" not in first["figures"]
    assert {"best_peer", "traffic_bytes"}.isdisjoint(first["outcomes"][0])
    assert VALIDATION["schema"] == VALIDATION_SCHEMA
    assert first["figures"]["runs"] == VALIDATION["figures"]["runs"]
    with pytest.raises(RecordError, match="use a matching release"):
        judge(PROFILE, CONTENTS.validation_records, CONTENTS.selections, schema="rowsmith.validation/9")


def test_what_is_beyond_its_goal_is_bold() -> None:
    column = next(c for c in BY_PROGRAM if c.path == ("regret_p95",))
    assert column.cell({"regret_p95": 1.08}) == "1.08"
    assert column.cell({"regret_p95": 1.09}) == "**1.09**"
    assert column.cell({"regret_p95": None}) == "–"
    assert by_program(OUTCOMES, ()) == FIGURES


def test_every_recipe_has_its_wins_and_losses_on_the_page() -> None:
    records = (*CONTENTS.cohort, *CONTENTS.validation_records)
    fared = {row.recipe: row for row in contest(records, OUTCOMES)}
    assert set(fared) == {m.name for record in records for m in record.recipes()}
    roles = {row.role for row in RECIPES if row.form == "prefix.sum"}
    assert {row.role for row in RECIPES if row.id in fared} == roles - NARROWER
    original = fared[original_of("prefix.sum").id]
    assert (original.timed, original.beats, original.loses) == (len(records), 0, 0)
    assert original.over_original == (1.0, 1.0, 1.0)
    assert sum(row.fastest for row in fared.values()) >= len(records), "ties are everyone's"
    assert sum(row.picked for row in fared.values()) == len(OUTCOMES)
    text = page(read(pack("planted", CONTENTS)))
    for name, row in fared.items():
        assert f"| {name} | {row.timed} | {row.fastest} | {row.beats} | {row.loses} |" in text


def test_a_loser_and_what_was_not_fit_for_use_are_told() -> None:
    record = next(r for r in CONTENTS.cohort if len(r.measurements) > 2)
    loser, third = (m.name for m in record.measurements[1:3])
    measurements = scaled(record, loser, 9.0).measurements
    slow = evolve(
        record, measurements=tuple(evolve(m, status="unstable") if m.name == third else m for m in measurements)
    )
    fared = {row.recipe: row for row in contest([slow], [])}
    assert (fared[loser].beats, fared[loser].loses) == (0, 1)
    assert (fared[third].timed, fared[third].untimed) == (0, {"unstable": 1})
    (line,) = [line for line in recipes(fared.values(), frozenset({third})).splitlines() if third in line]
    assert line.startswith(f"| {third} (experimental) | 0 |")
    assert line.endswith("| unstable 1 |")


def test_the_page_lists_every_schema_that_was_tried_and_which_is_in_force() -> None:
    text = page(read(pack("planted", CONTENTS)))
    assert CONTENTS.profile is not None
    in_force = {fit["feature_schema"] for fit in CONTENTS.profile["fits"]}
    for fit in CONTENTS.fits:
        for row in fit["dtype_sharing_table"]:
            line = next(line for line in text.splitlines() if f"| {fit['feature_schema']} | {row['sharing']} |" in line)
            used = row["sharing"] == fit["dtype_sharing"]
            assert line.endswith("| in force |") == (used and fit["feature_schema"] in in_force)


def test_a_pick_is_told_beside_cubs_scan_where_that_was_timed() -> None:
    """And nowhere else, so that documents from before there was one stay what they are."""
    record = next(r for r in CONTENTS.validation_records if POLICY in r.by_name)
    policy = record.by_name[POLICY]
    beside = Measurement(CUB_SCAN, FLOOR, policy.status, launches=policy.launches, samples_ns=policy.samples_ns)
    records = [
        evolve(r, measurements=(*r.measurements, beside)) if r is record else r for r in CONTENTS.validation_records
    ]
    outcomes = rejudged(records)["outcomes"]
    (told,) = (o for o in outcomes if "picked_over_cub_scan" in o)
    assert told["picked_over_cub_scan"] == 1
    assert f"| {record.rows} x {record.width} | {record.run} | {told['picked']} |" in cub_scans(outcomes)
    assert cub_scans(OUTCOMES) == ""
    assert "CUB's device scan" not in page(read(pack("planted", CONTENTS)))
