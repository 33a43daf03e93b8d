"""Importing a room, in a fresh process, does not bring in what the room promises to do without."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Imports the named module and, if asked, every module below it; prints the top-level names that came in.
PROBE = """
import importlib, json, pkgutil, sys
name, whole = sys.argv[1], sys.argv[2] == "whole"
room = importlib.import_module(name)
if whole:
    for module in pkgutil.walk_packages(room.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(json.dumps(sorted({module.partition(".")[0] for module in sys.modules})))
"""

CUPY = {"cupy", "cupy_backends", "cupyx"}
SERVICE = {"alembic", "fastapi", "pydantic", "sqlalchemy", "starlette"}


@pytest.mark.parametrize(
    ("module", "whole", "forbidden"),
    [
        ("kernels", "whole", CUPY | SERVICE),
        ("features", "whole", CUPY | SERVICE),
        ("policy", "whole", CUPY | SERVICE),
        ("calibration", "whole", CUPY | SERVICE),
        ("server", "whole", CUPY),
        ("rowsmith", "alone", CUPY | SERVICE),
        ("rowsmith.cli", "alone", CUPY | SERVICE),
    ],
)
def test_importing_a_room_brings_in_nothing_it_does_without(module: str, whole: str, forbidden: set[str]) -> None:
    """Rooms import CuPy, and the face imports the service, only when a function is called."""
    probe = subprocess.run(
        [sys.executable, "-c", PROBE, module, whole], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert probe.returncode == 0, probe.stderr
    assert not forbidden & set(json.loads(probe.stdout))
