"""A hot and a cold packet become files of their own names; each profile is found by its regime."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from calibration import bundle as bundling
from calibration.errors import CalibrationError
from calibration.packet import pack, read
from calibration.sweep import Options
from policy.profile import bundled
from tests.calibration.forged import CONTENTS
from tests.calibration.swept import Gpu, calibrated


def test_each_packet_has_a_profile_and_a_page_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for name, regime in (("made", "hot"), ("made-cold", "cold")):
        packet = calibrated(tmp_path / regime, Gpu(), regime=regime, inventory="wide")
        files.append(tmp_path / f"{name}.zip")
        files[-1].write_bytes(pack(name, packet.contents))
    root = tmp_path / "root"
    bundling.main([str(file) for file in files], root)
    written = capsys.readouterr().out.split()
    assert written == [
        path
        for name in ("made", "made-cold")
        for path in (
            *(f"calibration/packets/{name}.zip", f"policy/profiles/{name}.json", f"docs/validation-{name}.md"),
            *(f"docs/map-{name}-prefix-sum-{kind}.svg" for kind in ("picks", "regret")),
        )
    ]
    known = bundled(root / "policy" / "profiles")
    assert {entry.profile.regime: entry.standing for entry in known} == {"hot": "standard", "cold": "standard"}
    for name, regime in (("made", "hot"), ("made-cold", "cold")):
        page = (root / "docs" / f"validation-{name}.md").read_text()
        assert page.startswith(f"# Validation of the profile {name}")
        assert f", {regime}, standard." in page
        assert read(root / "calibration" / "packets" / f"{name}.zip").name == name


def test_a_packet_without_a_validation_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "early.zip"
    file.write_bytes(pack("early", evolve(CONTENTS, validation=None, residuals=())))
    with pytest.raises(CalibrationError, match="holds no validated profile"):
        bundling.bundle(file, tmp_path)
    with pytest.raises(SystemExit, match="name a packet"):
        bundling.main([])


def test_a_calibration_is_hot_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    assert Options(("scan",), "x", tmp_path, tmp_path / "x.zip").regime == "hot"
