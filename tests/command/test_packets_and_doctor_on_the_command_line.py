"""`rowsmith packet` and `rowsmith doctor` tell what is there and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve
from typer.testing import CliRunner, Result

import rowsmith
from calibration import verify
from calibration.bundle import ROOT
from calibration.packet import pack
from features.errors import Refused
from kernels import driver
from rowsmith import doctor, show
from rowsmith.cli import app
from rowsmith.doctor import MISSING, Check
from tests.calibration.planted import planted_contents

PACKET = ROOT / "calibration" / "packets" / "h200.zip"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


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
    for word in ("cohort.jsonl", "validation.jsonl", "Regret, geometric mean", "1865 training"):
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


def test_verify_prints_notes_which_are_no_differences(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of a small packet: that the bundled one verifies is held where its figures are."""
    planted = tmp_path / "planted.zip"
    planted.write_bytes(pack("planted", planted_contents()))
    monkeypatch.setattr(verify, "notes", lambda held: ("holds nothing in selections",))
    result = run("packet", "verify", str(planted))
    assert result.exit_code == 0
    assert "note: holds nothing in selections\n" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("verified: packet ")


def test_import_has_no_way_around_verifying() -> None:
    result = run("packet", "import", str(PACKET), "--no-verify")
    assert result.exit_code == 2
    assert "--no-verify" in result.stderr


def test_brackets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Names of extras and messages of compilers have them, and a table's library takes them for markup."""
    said = "error: [bold] no member [cuda13] of [/x]"
    show.doctor_table([Check("CuPy", MISSING, said, "pip install '.[cuda13]'")])
    shown = " ".join(capsys.readouterr().out.split())
    for word in ("[bold]", "[cuda13]", "[/x]", "'.[cuda13]'"):
        assert word in shown


def test_brackets_in_a_selection_are_printed_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the sentence, and in why a candidate was not taken."""
    monkeypatch.setenv("COLUMNS", "300")
    made = rowsmith.select("scan", [128, 8192], "float16")
    first = evolve(made.candidates[1], excluded=Refused("compile_failed", "[red]nvrtc[/red]"))
    decision = evolve(made.decision, sentence="kept: [red]nvrtc[/red] failed.")
    show.selection_table(evolve(made, candidates=(made.candidates[0], first), decision=decision))
    shown = capsys.readouterr().out
    assert "kept: [red]nvrtc[/red] failed." in shown
    assert "compile_failed: [red]nvrtc[/red]" in shown


def test_the_remedy_for_a_missing_part_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The project is in no index: parts come from its source folder."""
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    remedies = {check.what: check.remedy for check in doctor.checks()}
    assert remedies["CuPy"] == "pip install '.[cuda13]' in the source folder; launching and calibrating need it"
    assert remedies["service"] == "pip install '.[server]' in the source folder"
