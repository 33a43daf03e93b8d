"""A fresh database, and a client of a service on it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.settings import Settings
from tests.server.service import TestClient, fresh, serving


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a database that was just made."""
    return fresh(tmp_path)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """A client of a service with the made-up profile."""
    with serving(settings) as found:
        yield found


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB, which only root can make; an ordinary folder for anybody else."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.getuid() != 0:
        yield folder
        return
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command, to make a small disk")
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if (made := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
