"""A packet holds what a calibration's folder does: unpacked, it is gone on with, and nothing is measured twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.errors import CalibrationError
from calibration.packet import Packet
from calibration.records import COMPILED
from calibration.unpack import unpack
from calibration.verify import verify
from tests.calibration.swept import Gpu, calibrated

BEGUN = {"seed": 7, "regime": "hot"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("begun")


@pytest.fixture(scope="module")
def begun(folder: Path) -> Packet:
    """A calibration that timed no peers."""
    return calibrated(folder, Gpu(), peers=False)


def test_the_same_calibration_elsewhere_measures_nothing_and_gives_the_same_packet(
    begun: Packet, folder: Path, tmp_path: Path
) -> None:
    unpack(folder / "packet.zip", tmp_path / "again", BEGUN)
    gpu = Gpu(seed=500)
    again = calibrated(tmp_path / "again", gpu, peers=False)
    assert gpu.asked == []
    assert again.digest == begun.digest
    for name in ("profile.json", "environment.json", "searches.json"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_peers_that_were_not_timed_join_beside_the_original_and_the_pick(
    begun: Packet, folder: Path, tmp_path: Path
) -> None:
    unpack(folder / "packet.zip", tmp_path / "peers", BEGUN)
    gpu = Gpu(seed=900)
    joined = calibrated(tmp_path / "peers", gpu)
    assert {purpose for purpose, _, _ in gpu.asked} == {"validation"}
    assert joined.contents.cohort == begun.contents.cohort
    assert joined.contents.profile == begun.contents.profile
    before = {(r.run, r.key): r for r in begun.contents.validation_records}
    for record in joined.contents.validation_records:
        assert COMPILED in record.by_name
        old = before[record.run, record.key]
        for m in old.recipes():
            assert record.by_name[m.name] == m, "what was measured stays as it was"
    assert verify(joined) == ()
    journal = (tmp_path / "peers" / "journal.jsonl").read_bytes()
    unpack(folder / "packet.zip", tmp_path / "peers", BEGUN)
    assert (tmp_path / "peers" / "journal.jsonl").read_bytes() == journal, "the same call again goes on"

    unpack(tmp_path / "peers" / "packet.zip", tmp_path / "third", BEGUN)
    gpu = Gpu(seed=1300, commit="3" * 40)
    assert calibrated(tmp_path / "third", gpu).digest == joined.digest
    assert gpu.asked == []


def test_a_folder_with_a_calibration_and_a_damaged_packet_are_refused(
    begun: Packet, folder: Path, tmp_path: Path
) -> None:
    before = (folder / "journal.jsonl").read_bytes()
    with pytest.raises(CalibrationError, match="holds a calibration already"):
        unpack(folder / "packet.zip", folder, BEGUN)
    assert (folder / "journal.jsonl").read_bytes() == before
    data = (folder / "packet.zip").read_bytes()
    (tmp_path / "torn.zip").write_bytes(data[: len(data) // 2])
    with pytest.raises(CalibrationError):
        unpack(tmp_path / "torn.zip", tmp_path / "torn", BEGUN)
    assert not (tmp_path / "torn").exists()
    with pytest.raises(CalibrationError, match=r"is of .*7.* and this calibration of .*8"):
        unpack(folder / "packet.zip", tmp_path / "seed", {**BEGUN, "seed": 8})
    assert not (tmp_path / "seed").exists()


def test_what_earlier_calls_were_is_told_on(begun: Packet, folder: Path, tmp_path: Path) -> None:
    """A packet of two calls on two commits: the third folder tells both, and its cohort is the same."""
    two = tmp_path / "two"
    calibrated(two, Gpu(without=frozenset({"scan.cub1024"})), peers=False)
    packet = calibrated(two, Gpu(seed=1000, commit="2" * 40), peers=False)
    assert len(packet.contents.environment["earlier"]) == 1
    unpack(two / "packet.zip", tmp_path / "three", BEGUN)
    gpu = Gpu(seed=2000, commit="2" * 40)
    again = calibrated(tmp_path / "three", gpu, peers=False)
    assert gpu.asked == []
    assert again.digest == packet.digest
