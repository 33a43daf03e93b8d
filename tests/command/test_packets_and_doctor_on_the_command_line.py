"""`rowsmith packet` and `rowsmith doctor` tell what is there and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from calibration.bundle import ROOT
from kernels import driver
from rowsmith.cli import app

PACKET = ROOT / "calibration" / "packets" / "h200.zip"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_the_bundled_packet_verifies() -> None:
    result = run("packet", "verify", str(PACKET))
    assert result.exit_code == 0
    assert result.stdout.startswith("verified: packet ")


def test_a_truncated_packet_is_refused_by_name(tmp_path: Path) -> None:
    part = tmp_path / "part.zip"
    part.write_bytes(PACKET.read_bytes()[:-100])
    for command in ("verify", "show"):
        result = run("packet", command, str(part))
        assert result.exit_code == 1
        assert result.stderr.startswith("error: ")


def test_a_packet_that_is_not_there_is_named() -> None:
    result = run("packet", "verify", "nowhere.zip")
    assert result.exit_code == 2
    assert "nowhere.zip" in result.stderr


def test_show_prints_the_parts_and_the_figures() -> None:
    result = run("packet", "show", str(PACKET))
    assert result.exit_code == 0
    for word in ("cohort.jsonl", "validation.jsonl", "Regret, geometric mean", "198 training"):
        assert word in result.stdout


def test_doctor_finds_the_profile_and_breaks_on_nothing() -> None:
    result = run("doctor", "--json")
    found = {check["what"]: check for check in json.loads(result.stdout)}
    assert "h200 (hot)" in found["profiles"]["found"]
    assert not [check for check in found.values() if check["state"] == "broken"]
    assert result.exit_code == 0


@pytest.mark.skipif(driver.device_count() > 0, reason="there is a CUDA device")
def test_without_a_gpu_calibrating_says_so_and_what_to_do(tmp_path: Path) -> None:
    result = run("calibrate", "--folder", str(tmp_path / "run"), "--out", str(tmp_path / "packet.zip"))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no usable CUDA device")
    assert "rowsmith doctor" in result.stderr
    assert not (tmp_path / "packet.zip").exists()
