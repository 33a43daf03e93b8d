"""A recipe that came later is measured alone with the original, and joins where that is as it was; nothing is lost."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve

from calibration.errors import CalibrationError, FitError
from calibration.joining import WHOLE, Want, current, join, wanted
from calibration.journal import Journal
from calibration.outcome import outcome
from calibration.packet import Packet, pack, read
from calibration.page import page
from calibration.records import POLICY, RECIPE, Geometry, geometry_from_json, inconsistencies
from calibration.verify import verify
from calibration.work import OutOfTimeError
from kernels.identity import canonical_json, digest
from tests.calibration.swept import Gpu, calibrated, proved

LATER = "scan.cub1024"
ORIGINAL = "scan.original"
OLD = "1" * 64


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that two calls calibrated into: one before the later recipe was there, and one after."""
    return tmp_path_factory.mktemp("joined")


@pytest.fixture(scope="module")
def first(folder: Path) -> tuple[Packet, Gpu, bytes]:
    gpu = Gpu(without=frozenset({LATER}))
    return calibrated(folder, gpu), gpu, (folder / "journal.jsonl").read_bytes()


@pytest.fixture(scope="module")
def second(folder: Path, first: object) -> tuple[Packet, Gpu]:
    gpu = Gpu(seed=1000, commit="2" * 40)
    return calibrated(folder, gpu), gpu


def records(packet: Packet) -> tuple[Geometry, ...]:
    return (*packet.contents.cohort, *packet.contents.validation_records)


def test_only_the_later_recipe_is_measured_with_the_original_where_it_is_proved(
    first: tuple[Packet, Gpu, bytes], second: tuple[Packet, Gpu]
) -> None:
    packet, gpu = second
    training = [names for purpose, _, names in gpu.asked if purpose == "training"]
    assert set(training) == {(ORIGINAL, LATER)}
    assert len(training) == sum(LATER in r.by_name for r in packet.contents.cohort) < len(packet.contents.cohort)
    before = {r.key: r for r in first[0].contents.cohort}
    for record in packet.contents.cohort:
        old = before[record.key]
        for m in old.measurements:
            assert record.by_name[m.name] == m, "what was measured stays as it was"
        assert {m.name for m in record.measurements} - old.by_name.keys() <= {LATER}
        assert (record == old) == (LATER not in record.by_name)


def test_what_joined_says_its_round_and_holds_the_original_of_it(second: tuple[Packet, Gpu]) -> None:
    joined = [r for r in second[0].contents.cohort if r.joined]
    assert joined
    for record in joined:
        assert record.by_name[LATER].round == 2
        assert [m.name for m in record.measurements if m.round is None] == [
            m.name for m in record.measurements if m.name != LATER
        ]
        (later,) = record.joined
        assert [m.name for m in later.again] == [ORIGINAL]
        assert later.again[0].recheck_ns
        expected = later.again[0].timing.median_us / record.by_name[ORIGINAL].timing.median_us - 1
        assert later.moved == pytest.approx(expected, abs=1e-15)
        assert inconsistencies(record) == ()
        stored = json.loads(canonical_json(record.to_json()))
        assert geometry_from_json(stored) == record
        assert digest(stored) == record.digest


def test_the_joined_packet_is_verified_and_names_its_calls(second: tuple[Packet, Gpu]) -> None:
    packet, _ = second
    assert verify(packet) == ()
    environment = packet.contents.environment
    assert environment["commit"] == "2" * 40
    assert [call["commit"] for call in environment["earlier"]] == ["0" * 40]


def test_the_journal_is_only_added_to(folder: Path, first: tuple[Packet, Gpu, bytes], second: object) -> None:
    journal = folder / "journal.jsonl"
    assert journal.read_bytes().startswith(first[2])
    held = Journal(journal, {"seed": 7, "regime": "hot"})
    packet: Packet = second[0]  # type: ignore[index]
    assert {r.digest for r in held.records.values()} == {r.digest for r in records(packet)}


def test_a_further_call_measures_nothing_and_gives_the_same_packet(folder: Path, second: tuple[Packet, Gpu]) -> None:
    gpu = Gpu(seed=5000, commit="3" * 40)
    again = calibrated(folder, gpu)
    assert gpu.asked == []
    assert again.digest == second[0].digest


def test_the_pick_is_timed_again_with_its_recipe_and_its_peers_in_one_round(second: tuple[Packet, Gpu]) -> None:
    packet, _ = second
    by_id = {digest(facts): facts for facts in packet.contents.selections}
    for record in packet.contents.validation_records:
        number = record.by_name[POLICY].in_round
        assert number == 2
        for name in (ORIGINAL, record.by_name[POLICY].picked, "torch.compile", "copy"):
            assert (name, number) in record.by_round
        found = outcome(record, by_id)
        assert set(found.get("across_rounds", ())) <= {"regret"}


def test_a_ratio_that_no_round_holds_is_listed_and_counted(folder: Path, second: tuple[Packet, Gpu]) -> None:
    """A recipe of round 2 beside one of round 1: the fastest may be of another round than the pick."""
    packet, _ = second
    validation = packet.contents.validation
    assert validation is not None
    marked = [o for o in validation["outcomes"] if "across_rounds" in o]
    for o in validation["outcomes"]:
        record = next(r for r in packet.contents.validation_records if r.digest == o["geometry"])
        rounds = {record.by_name[name].in_round for name in (o["picked"], o["fastest"])}
        assert (o in marked) == (len(rounds) > 1)
    figures = validation["figures"]["by_program"][0]
    assert figures["across_rounds"] == len(marked)
    assert "rounds of their own" in validation["note"]
    told = page(packet)
    trained = sum(bool(r.joined) for r in packet.contents.cohort)
    assert f"{trained} of {len(packet.contents.cohort)} training geometries" in told


def test_without_peers_in_the_later_call_their_ratios_are_marked(tmp_path: Path) -> None:
    calibrated(tmp_path, Gpu(without=frozenset({LATER})))
    packet = calibrated(tmp_path, Gpu(seed=1000), peers=False)
    assert verify(packet) == ()
    assert packet.contents.validation is not None
    for o in packet.contents.validation["outcomes"]:
        assert {"picked_over_compile", "picked_over_copy", "picked_over_best_peer"} <= set(o["across_rounds"])


def test_where_the_original_moved_the_whole_geometry_is_measured_again(tmp_path: Path) -> None:
    before = calibrated(tmp_path, Gpu(without=frozenset({LATER})))
    gpu = Gpu(seed=1000, slower=1.05)
    packet = calibrated(tmp_path, gpu)
    assert verify(packet) == ()
    assert not any(r.joined for r in records(packet))
    count = Counter(names for purpose, _, names in gpu.asked if purpose == "training")
    attempts = count.pop((ORIGINAL, LATER))
    assert attempts == sum(count.values()), "each was tried once, and then measured whole"
    kept = {r.digest for r in before.contents.cohort} & {r.digest for r in packet.contents.cohort}
    assert len(kept) == sum(LATER not in r.by_name for r in packet.contents.cohort)


def test_a_changed_source_voids_that_recipe_alone(tmp_path: Path) -> None:
    before = calibrated(tmp_path, Gpu(sources={"scan.cub256": OLD}))
    gpu = Gpu(seed=1000)
    packet = calibrated(tmp_path, gpu)
    assert verify(packet) == ()
    assert {names for purpose, _, names in gpu.asked if purpose == "training"} == {(ORIGINAL, "scan.cub256")}
    old = {r.key: r for r in before.contents.cohort}
    for record in packet.contents.cohort:
        if "scan.cub256" in record.by_name:
            assert record.by_name["scan.cub256"].source != OLD
            assert record.by_name["scan.cub128"] == old[record.key].by_name["scan.cub128"]


def test_a_changed_original_voids_every_record(tmp_path: Path) -> None:
    with pytest.raises(FitError):  # what the first call measured is of no kernel that there is now
        calibrated(tmp_path, Gpu(sources={ORIGINAL: OLD}))
    gpu = Gpu(seed=1000)
    packet = calibrated(tmp_path, gpu)
    assert len(gpu.asked) == len(records(packet))
    assert not any(r.joined for r in records(packet))
    assert verify(packet) == ()


def test_a_plan_that_grew_measures_what_is_new(tmp_path: Path) -> None:
    small = calibrated(tmp_path, Gpu(), training=60)
    gpu = Gpu(seed=1000)
    large = calibrated(tmp_path, gpu, training=120)
    grown = {r.key for r in large.contents.cohort} - {r.key for r in small.contents.cohort}
    assert len([1 for purpose, _, _ in gpu.asked if purpose == "training"]) == len(grown) > 0
    assert {r.digest for r in small.contents.cohort if r.key in {x.key for x in large.contents.cohort}} <= {
        r.digest for r in large.contents.cohort
    }
    assert verify(large) == ()
    assert json.loads((tmp_path / "profile-2.json").read_text()) == large.contents.profile


def test_peers_that_were_left_out_join_with_the_pick(tmp_path: Path) -> None:
    calibrated(tmp_path, Gpu(), peers=False)
    gpu = Gpu(seed=1000)
    packet = calibrated(tmp_path, gpu)
    assert {purpose for purpose, _, _ in gpu.asked} == {"validation"}
    assert packet.contents.validation is not None
    for o in packet.contents.validation["outcomes"]:
        assert o["picked_over_compile"] is not None
        assert "across_rounds" not in o
    assert verify(packet) == ()


def test_a_budget_that_ends_leaves_what_was_measured_to_the_next_call(tmp_path: Path) -> None:
    begun = Gpu()
    with pytest.raises(OutOfTimeError, match="training has 92 points left at most; run the same command again"):
        calibrated(tmp_path, begun, budget_s=-1.0)
    packet = calibrated(tmp_path, Gpu())
    assert verify(packet) == ()


def test_a_folder_of_another_regime_is_refused(tmp_path: Path) -> None:
    calibrated(tmp_path, Gpu())
    with pytest.raises(CalibrationError, match="was begun with regime hot and not cold"):
        calibrated(tmp_path, Gpu(), regime="cold")


def test_what_a_record_lacks_is_told_from_the_record_alone(second: tuple[Packet, Gpu]) -> None:
    packet, _ = second
    by_key = {(p.form, p.dtype, p.rows, p.width): p for p in packet.contents.plan.training}
    record = next(r for r in packet.contents.cohort if r.joined)
    planned = by_key[record.key]
    assert wanted(planned, None) == WHOLE
    assert wanted(planned, record) is None
    assert wanted(planned, record, "a selection") == Want(frozenset(), pick=True, peers=False)
    assert wanted(planned, record, None, with_peers=True) == Want(frozenset(), pick=True, peers=True)
    fewer = evolve(record, measurements=tuple(m for m in record.measurements if m.name != "scan.cub128"))
    assert proved(record, "scan.cub128")
    assert wanted(planned, fewer) == Want(frozenset({"scan.cub128"}), pick=False, peers=False)
    assert wanted(planned, evolve(fewer, status="drifted")) == WHOLE
    assert current(record) is record


FORGERIES = {
    "round 2 moved": lambda later: evolve(later, moved=0.001),
    "round 2 drift": lambda later: evolve(later, drift=0.001),
    "round 2 original": lambda later: evolve(later, again=()),
    "round 2 original source": lambda later: evolve(later, again=(evolve(later.again[0], source=OLD),)),
    "round 2 scan.original check": lambda later: evolve(later, again=(evolve(later.again[0], check=None),)),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_round_is_named(second: tuple[Packet, Gpu], what: str) -> None:
    packet, _ = second
    place = next(i for i, r in enumerate(packet.contents.cohort) if r.joined)
    record = packet.contents.cohort[place]
    forged = evolve(record, joined=(FORGERIES[what](record.joined[0]),))
    assert what in {name for name, _, _ in inconsistencies(forged)}
    cohort = (*packet.contents.cohort[:place], forged, *packet.contents.cohort[place + 1 :])
    findings = verify(read(pack("forged", evolve(packet.contents, cohort=cohort))))
    assert any(f.part == "cohort.jsonl" and what in f.item for f in findings)


def test_a_measurement_of_no_known_round_and_an_original_that_moved_are_named(second: tuple[Packet, Gpu]) -> None:
    record = next(r for r in second[0].contents.cohort if r.joined)
    assert f"{LATER} round" in {name for name, _, _ in inconsistencies(evolve(record, joined=()))}
    slower = tuple(
        evolve(m, samples_ns=tuple(round(s * 1.04) for s in m.samples_ns), recheck_ns=None)
        for m in record.joined[0].again
    )
    moved = evolve(record, joined=(evolve(record.joined[0], again=slower, moved=0.04),))
    assert "round 2 moved" in {name for name, _, _ in inconsistencies(moved)}


def test_a_round_that_drifted_does_not_join(second: tuple[Packet, Gpu]) -> None:
    record = next(r for r in second[0].contents.cohort if not r.joined)
    later = evolve(record, measurements=record.measurements[:1])
    assert join(record, later) is not None
    assert join(record, evolve(later, status="drifted")) is None
    assert all(m.kind == RECIPE for m in record.measurements)
