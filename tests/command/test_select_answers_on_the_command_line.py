"""`rowsmith select` decides without a GPU, for people and for programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import rowsmith
from kernels.identity import digest
from rowsmith.cli import app
from rowsmith.profiles import profile_for


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def facts(*arguments: str) -> dict[str, object]:
    result = run("select", *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_the_example_of_the_readme_is_answered_in_words() -> None:
    result = run("select", "scan", "128x8192", "float16")
    assert result.exit_code == 0
    made = rowsmith.select("scan", [128, 8192], "float16")
    for word in (made.decision.recipe, made.decision.reason, made.id, "scan.original", "scan.cub1024"):
        assert word in result.stdout


def test_json_is_the_whole_selection_and_its_id_can_be_recomputed() -> None:
    found = facts("scan", "128x8192", "float16")
    made = rowsmith.select("scan", [128, 8192], "float16")
    assert found.pop("id") == made.id == digest(found)


def test_every_process_gives_the_same_bytes() -> None:
    """Whatever its hash seed and folder."""
    root = Path(__file__).resolve().parents[2]
    texts = set()
    for seed, folder in (("0", root), ("1", root / "tests"), ("77", Path("/"))):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        command = [sys.executable, "-m", "rowsmith", "select", "scan", "300x4096", "bfloat16", "--json"]
        answer = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
        texts.add(answer.stdout)
    assert len(texts) == 1


def test_a_named_recipe_is_forced_and_the_policys_pick_stands_beside_it() -> None:
    found = facts("scan", "128x8192", "float16", "--recipe", "scan.cub128")
    decision = found["decision"]
    assert isinstance(decision, dict)
    assert (decision["recipe"], decision["reason"]) == ("scan.cub128", "forced")
    assert decision["policy_recipe"] == rowsmith.select("scan", [128, 8192], "float16").decision.recipe


def test_another_target_keeps_the_original_and_lists_each_difference(tmp_path: Path) -> None:
    target = profile_for(None, "hot").target
    other = {**target.facts(), "sm_count": 114, "memory_clock_khz": 2619000, "label": "NVIDIA H100 PCIe"}
    file = tmp_path / "target.json"
    file.write_text(json.dumps(other))
    decision = facts("scan", "128x8192", "float16", "--target", str(file))["decision"]
    assert isinstance(decision, dict)
    assert (decision["recipe"], decision["reason"]) == ("scan.original", "target_mismatch")
    assert {d["field"] for d in decision["target_differences"]} == {"sm_count", "memory_clock_khz"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('"sm_count": NaN', ("sm_count nan", "whole number")),
        ('"sm_count": "132"', ("sm_count '132'", "whole number")),
        ('"sm_count": -132', ("sm_count -132", "whole number")),
        ('"sm_count": true', ("sm_count True", "whole number")),
        ('"l2_bytes": 1e400', ("l2_bytes inf", "whole number")),
        ('"nvrtc": 13.0', ("nvrtc 13.0", "text")),
        ('"colour": "green"', ("'colour' is not known", "sm_count")),
    ],
)
def test_a_target_file_with_a_wrong_member_is_refused_by_name(
    tmp_path: Path, change: str, words: tuple[str, ...]
) -> None:
    facts = json.dumps(profile_for(None, "hot").target.facts())
    refused = select_for_target(tmp_path, f"{facts[:-1]}, {change}}}")
    for word in words:
        assert word in refused


@pytest.mark.parametrize(
    ("text", "word"),
    [('{"sm_count": 132}', "compute_capability"), ("[]", "not an object"), ("{", "cannot be read"), ("3", "target 3")],
)
def test_a_target_file_that_is_none_is_refused(tmp_path: Path, text: str, word: str) -> None:
    assert word in select_for_target(tmp_path, text)


def select_for_target(folder: Path, text: str) -> str:
    """Return the one line that refuses a target file of this text."""
    file = folder / "target.json"
    file.write_text(text)
    result = run("select", "scan", "128x8192", "float16", "--target", str(file))
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)
    assert result.stderr.startswith(f"error: target file {file}")
    return result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("scan", "128x-8192", "float16"), ("-8192", "axis 1")),
        (("scan", "128x1.5", "float16"), ("1.5", "axis 1")),
        (("scan", "", "float16"), ("extent",)),
        (("scan", "x".join(["2"] * 65), "float16"), ("65 extents", "64")),
        (("scan", "128x" + "9" * 5000, "float16"), ("axis 1",)),
        (("scan", "9999999999x9999999999", "float16"), ("span",)),
        (("scan", "128x8192", "float64"), ("float64", "float16, bfloat16, float32")),
        (("prefix", "128x8192", "float16"), ("'prefix'", "scan")),
        (("scan", "128x8192", "float16", "--recipe", "scan.cub64"), ("scan.cub64", "scan.cub128")),
        (("scan", "128x3584", "float16", "--recipe", "scan.cub512"), ("3584", "4096")),
        (("scan", "128x8192", "float16", "--profile", "a100"), ("a100", "h200")),
        (("scan", "128x8192", "float16", "--regime", "warm"), ("regime 'warm' is not known", "hot, cold")),
        (("scan", "128x8192", "float16", "--alignment", "3"), ("3",)),
        (("scan", "128x8192", "float16", "--numerics", "exact"), ("exact", "bit_equal")),
        (("scan", "128x8192", "float16", "--target", "missing.json"), ("missing.json",)),
    ],
)
def test_bad_input_is_one_line_that_says_what_and_which(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    result = run("select", *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert len(result.stderr) < 600
    for word in words:
        assert word in result.stderr
