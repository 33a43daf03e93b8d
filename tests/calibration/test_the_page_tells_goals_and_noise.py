"""The page of a packet says which goals were reached, how far the automatic pick is from itself, and what was short."""

from __future__ import annotations

import copy
from statistics import median

import pytest
from attrs import evolve

from calibration.agreement import agreement
from calibration.packet import Contents, pack, read
from calibration.page import page
from calibration.records import Geometry
from tests.calibration.planted import planted_contents

CONTENTS = planted_contents(plain=True)


def told(contents: Contents) -> str:
    return page(read(pack("planted", contents)))


def faster(record: Geometry, name: str, factor: float) -> Geometry:
    measurements = tuple(
        evolve(m, samples_ns=tuple(round(s * factor) for s in m.samples_ns)) if m.name == name else m
        for m in record.measurements
    )
    return evolve(record, measurements=measurements)


def test_a_goal_is_reached_where_both_runs_reach_it() -> None:
    validation = copy.deepcopy(dict(CONTENTS.validation or {}))
    runs = validation["figures"]["runs"]
    runs["1"] |= {"regret_geomean": 1.01, "regret_worst": 1.05, "picked_over_compile_geomean": None}
    runs["2"] |= {"regret_geomean": 1.0, "regret_worst": 1.3, "picked_over_compile_geomean": None}
    lines = told(evolve(CONTENTS, validation=validation)).splitlines()
    assert "| Regret, geometric mean | 1.02 | 1.01 | 1 | reached |" in lines
    assert "| Regret, worst | 1.25 | 1.05 | 1.3 | missed |" in lines
    assert "| Regressions that both runs repeat | 0 | 0 | 0 | reached |" in lines
    assert "| Picked over torch.compile, geometric mean | 0.75 | – | – | not measured |" in lines


def test_agreement_is_a_range_a_mean_and_shares_for_each_way_of_launching() -> None:
    records = list(CONTENTS.validation_records)
    before = agreement(records)
    assert before["graph"]["count"] == before["plain"]["count"] == len(records)
    records[3] = faster(records[3], "policy", 0.9)
    records[4] = faster(records[4], "policy.plain", 1.25)
    after = agreement(records)
    assert after["graph"]["minimum"] == pytest.approx(0.9, abs=0.03)
    assert after["graph"]["maximum"] == before["graph"]["maximum"]
    assert after["plain"]["maximum"] == pytest.approx(1.25, abs=0.03)
    for way in ("graph", "plain"):
        assert after[way]["within_noise_share"] == pytest.approx(before[way]["within_noise_share"] - 1 / len(records))
    one = agreement([records[3]])["graph"]
    assert one["geomean"] == pytest.approx(one["minimum"])
    assert (one["within_noise_share"], one["overlap_share"]) == (0, 0)


def test_what_was_not_launched_plainly_has_no_figure() -> None:
    older = planted_contents()
    found = agreement(older.validation_records)
    assert found["plain"].pop("count") == 0
    assert set(found["plain"].values()) == {None}
    assert "| plain | 0 | – | – | – | – | – |" in told(older)


def test_the_shortest_replay_and_how_many_are_short_are_told() -> None:
    record = CONTENTS.cohort[0]
    factor = 60_000 / record.by_name["scan.original"].samples_ns[0]
    short = faster(record, "scan.original", factor)
    replay_us = median(short.by_name["scan.original"].samples_ns) / 1000
    text = told(evolve(CONTENTS, cohort=(short, *CONTENTS.cohort[1:])))
    assert f"below 200 us; the shortest is {replay_us:.1f} us, scan.original at {record.label}." in text
