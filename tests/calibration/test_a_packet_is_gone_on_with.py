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
    unpack(folder / "packet.zip", tmp_path / "again")
    gpu = Gpu(seed=500)
    again = calibrated(tmp_path / "again", gpu, peers=False)
    assert gpu.asked == []
    assert again.digest == begun.digest
    for name in ("profile.json", "environment.json", "searches.json"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_peers_that_were_not_timed_join_beside_the_original_and_the_pick(
    begun: Packet, folder: Path, tmp_path: Path
) -> None:
    unpack(folder / "packet.zip", tmp_path / "peers")
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


def test_a_folder_with_a_calibration_and_a_damaged_packet_are_refused(
    begun: Packet, folder: Path, tmp_path: Path
) -> None:
    before = (folder / "journal.jsonl").read_bytes()
    with pytest.raises(CalibrationError, match="holds a calibration already"):
        unpack(folder / "packet.zip", folder)
    assert (folder / "journal.jsonl").read_bytes() == before
    data = (folder / "packet.zip").read_bytes()
    (tmp_path / "torn.zip").write_bytes(data[: len(data) // 2])
    with pytest.raises(CalibrationError):
        unpack(tmp_path / "torn.zip", tmp_path / "torn")
    assert not (tmp_path / "torn").exists()
