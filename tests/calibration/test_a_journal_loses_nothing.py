"""A journal survives what interrupts a sweep, and refuses what it did not write."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from calibration.errors import CalibrationError
from calibration.journal import Journal, key_of
from tests.calibration.planted import planted_cohort

BEGUN = {"seed": 7, "regime": "hot"}
RECORDS = planted_cohort()[:5]


def begun(folder: Path) -> Journal:
    """Return a journal that holds three records."""
    journal = Journal(folder / "run" / "journal.jsonl", BEGUN)
    for record in RECORDS[:3]:
        journal.append(record)
    return journal


def test_a_resumed_journal_holds_every_finished_record_and_goes_on(tmp_path: Path) -> None:
    path = begun(tmp_path).path
    again = Journal(path, BEGUN)
    assert list(again.records) == [key_of(record) for record in RECORDS[:3]]
    assert list(again.records.values()) == list(RECORDS[:3])
    again.append(RECORDS[3])
    assert list(Journal(path, BEGUN).records.values()) == list(RECORDS[:4])


@pytest.mark.parametrize("kept", [1, 40, 200])
def test_a_torn_last_line_is_dropped_and_measured_again(tmp_path: Path, kept: int) -> None:
    """A kill in the middle of a write leaves part of a line; what was finished before stays."""
    path = begun(tmp_path).path
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    path.write_bytes(whole + last[:kept])
    again = Journal(path, BEGUN)
    assert list(again.records.values()) == list(RECORDS[:3])
    assert path.read_bytes() == whole
    again.append(RECORDS[4])
    assert list(Journal(path, BEGUN).records.values()) == [*RECORDS[:3], RECORDS[4]]


def test_a_journal_torn_in_its_first_line_begins_again(tmp_path: Path) -> None:
    path = begun(tmp_path).path
    path.write_bytes(path.read_bytes()[:30])
    assert Journal(path, BEGUN).records == {}
    assert Journal(path, BEGUN).records == {}


def test_a_changed_byte_is_named_by_its_line_and_nothing_is_overwritten(tmp_path: Path) -> None:
    path = begun(tmp_path).path
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"attempt":1', b'"attempt":2')
    path.write_bytes(b"".join(lines))
    with pytest.raises(CalibrationError, match="line 3 is damaged"):
        Journal(path, BEGUN)
    assert path.read_bytes() == b"".join(lines)


@pytest.mark.parametrize("other", [{"seed": 8}, {"regime": "cold"}])
def test_a_journal_of_another_seed_or_regime_is_refused_and_kept(tmp_path: Path, other: dict[str, object]) -> None:
    path = begun(tmp_path).path
    before = path.read_bytes()
    (name, value) = next(iter(other.items()))
    with pytest.raises(CalibrationError, match=f"was begun with {name} {BEGUN[name]} and not {value}"):
        Journal(path, {**BEGUN, **other})
    assert path.read_bytes() == before


def test_a_record_that_supersedes_another_is_a_line_of_its_own(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    before = journal.path.read_bytes()
    again = evolve(RECORDS[1], attempt=2)
    journal.supersede(again)
    assert journal.path.read_bytes().startswith(before)
    held = Journal(journal.path, BEGUN).records
    assert held[key_of(again)] == again
    assert list(held) == [key_of(record) for record in RECORDS[:3]]


def test_a_line_that_supersedes_what_is_not_there_is_damage(tmp_path: Path) -> None:
    """Two lines of one point, and one that names another record than the last, did not come from a sweep."""
    path = begun(tmp_path).path
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[-1])
    with pytest.raises(CalibrationError, match="line 5 is damaged"):
        Journal(path, BEGUN)
    path.write_bytes(whole)
    journal = Journal(path, BEGUN)
    journal.supersede(evolve(RECORDS[1], attempt=2))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join((*lines, lines[-1])))
    with pytest.raises(CalibrationError, match="line 6 is damaged"):
        Journal(path, BEGUN)


def test_a_point_is_never_recorded_twice(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    with pytest.raises(CalibrationError, match="is in journal"):
        journal.append(RECORDS[0])
    assert len(Journal(journal.path, BEGUN).records) == 3
