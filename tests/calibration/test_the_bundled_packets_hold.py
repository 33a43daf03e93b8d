"""The evidence in this repository: every packet verifies, and the profile and page beside it are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.bundle import ROOT, bundle
from calibration.freeze import in_force
from calibration.packet import Packet, read
from calibration.verify import notes, verify
from kernels.identity import digest
from kernels.recipes import recipe
from kernels.source import identity
from policy.profile import bundled

PACKETS = sorted((ROOT / "calibration" / "packets").glob("*.zip"))
MAX_BYTES = 12 * 10**6  # 2,357 geometries of up to 25 candidates are 10.6 MB


@pytest.fixture(scope="module", params=PACKETS, ids=lambda path: path.stem)
def file(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture(scope="module")
def packet(file: Path) -> Packet:
    return read(file)


def test_there_is_one() -> None:
    """Without a packet the tests below would all pass."""
    assert PACKETS


def test_every_figure_follows_from_the_samples(file: Path, packet: Packet) -> None:
    assert verify(packet) == ()
    assert file.stat().st_size < MAX_BYTES


def test_the_kernels_are_those_that_were_measured(packet: Packet) -> None:
    """A changed kernel or option voids the profile: a new cohort has to come with it.

    A further recipe makes another catalogue and leaves those that were measured as they are; the packet tells so.
    """
    for receipt in packet.contents.receipts:
        made_from = identity(recipe(receipt.recipe), receipt.dtype)
        assert (receipt.source, receipt.options) == (made_from.source, made_from.options), receipt.recipe
    assert [note for note in notes(packet) if not note.startswith("made with catalogue ")] == []


def test_profile_and_page_are_made_from_the_packet(file: Path, tmp_path: Path) -> None:
    for path in bundle(file, tmp_path):
        assert path.read_bytes() == (ROOT / path.relative_to(tmp_path)).read_bytes(), path.name


def test_the_cohort_is_as_large_as_was_promised(packet: Packet) -> None:
    contents = packet.contents
    assert len({record.key for record in contents.cohort}) >= 150
    assert {record.dtype for record in contents.cohort} == {"float16", "bfloat16", "float32"}
    inventory = {record.key for record in contents.validation_records}
    assert len(inventory) >= 60
    assert not inventory & {record.key for record in contents.cohort}
    assert {record.run for record in contents.validation_records} == {1, 2}
    peers = {"torch.eager", "torch.compile", "copy"}
    assert all("policy" in record.by_name for record in contents.validation_records if record.status == "measured")
    for form in {record.form for record in contents.validation_records}:
        beside = {r.key for r in contents.validation_records if r.form == form and peers <= set(r.by_name)}
        assert len(beside) >= 40


def test_a_profile_that_repeats_a_regression_would_be_experimental(packet: Packet) -> None:
    validation = packet.contents.validation
    assert validation is not None
    repeated = validation["figures"]["regressions"]
    assert validation["standing"] == ("experimental" if repeated else "standard")
    entry = next(entry for entry in bundled() if entry.profile.digest == digest(packet.contents.profile))
    assert entry.standing == validation["standing"]
    assert entry.active is not bool(repeated)


def test_the_profile_carries_the_fits_that_did_better_on_held_out_geometries(packet: Packet) -> None:
    profile = packet.contents.profile
    assert profile is not None
    assert [fit["digest"] for fit in profile["fits"]] == [digest(fit) for fit in in_force(packet.contents.fits)]
