"""The examples of the README are run as they stand there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SHELL = [
    line.split("  #")[0].strip()
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
]
LINKS = re.findall(r"\]\(([^)#:]+)\)", README)


def test_the_first_screen_sets_up_serves_and_tests() -> None:
    """Within the first thirty lines, as commands that exist."""
    first = "\n".join(README.splitlines()[:30])
    for script in ("scripts/serve", "scripts/test"):
        assert script in first
        assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize(
    "line",
    [line for line in SHELL if line.startswith((".venv/bin/rowsmith select", "rowsmith packet verify calibration"))],
)
def test_a_command_that_needs_nothing_works(line: str) -> None:
    _, *arguments = shlex.split(line)
    answer = subprocess.run(
        [sys.executable, "-m", "rowsmith", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr


def test_there_is_such_a_command() -> None:
    assert any(line.startswith(".venv/bin/rowsmith select") for line in SHELL)


@pytest.mark.parametrize(
    "command",
    sorted(
        {
            " ".join(line.split()[1:3]) if line.split()[1] == "packet" else line.split()[1]
            for line in SHELL
            if line.startswith("rowsmith ")
        }
    ),
)
def test_every_command_that_is_named_exists(command: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "rowsmith", *command.split(), "--help"], cwd=ROOT, capture_output=True, check=False
    )
    assert answer.returncode == 0, command


@pytest.mark.parametrize("link", LINKS)
def test_a_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists(), link


def test_the_question_of_the_readme_is_one_that_the_service_documents() -> None:
    """The body after -d is answered by the same code as in the service's own tests."""
    from features.workload import workload

    body = re.search(r"-d '(\{.*?\})'", README)
    assert body is not None
    asked = json.loads(body.group(1))
    assert workload(asked["op"], asked["shape"], asked["dtype"]).width == asked["shape"][-1]
