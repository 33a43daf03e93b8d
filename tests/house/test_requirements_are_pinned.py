"""Every package is installed from one exact, hashed version, and the sets agree with each other."""

import re
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parents[2] / "requirements"
NAMES = ["serve", "test", "cuda12"]
PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; [^\\]+?)?(?: --hash=sha256:[0-9a-f]{64})+")


def entries(name: str) -> list[str]:
    """One requirement a line: continuation lines joined, comments dropped."""
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    return [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def pins(name: str) -> dict[str, str]:
    """Version by package."""
    matches = [PIN.fullmatch(entry) for entry in entries(name)]
    return {match["name"]: match["version"] for match in matches if match}


@pytest.mark.parametrize("name", NAMES)
def test_every_requirement_is_an_exact_version_with_hashes(name: str) -> None:
    """pip --require-hashes would refuse otherwise, but only on the machine that installs."""
    loose = [entry for entry in entries(name) if not PIN.fullmatch(entry)]
    assert pins(name)
    assert not loose


def test_the_test_environment_serves_with_the_same_versions() -> None:
    """scripts/serve and scripts/test share one environment, so neither may move the other's packages."""
    assert pins("serve").items() <= pins("test").items()


def test_both_cuda_environments_share_the_core() -> None:
    """A kernel that compiles under one toolkit and not the other differs by its toolkit alone."""
    serve, cuda12 = pins("serve"), pins("cuda12")
    assert {name: cuda12[name] for name in serve.keys() & cuda12.keys()} == {
        name: serve[name] for name in serve.keys() & cuda12.keys()
    }
