"""Twenty fresh processes, each with its own hash seed and working directory, write the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROBE = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.policy.cases import ask
for dtype in ("float16", "bfloat16", "float32"):
    for rows, width in ((128, 8192), (1, 1024), (8192, 131072), (7, 3584), (0, 5)):
        chosen = ask(rows, width, dtype)
        print(chosen.id, chosen.body)
print(ask(128, 8192, forced="scan.cub256").body)
"""


def test_twenty_processes_write_the_same_bytes(tmp_path: Path) -> None:
    """Near ties and refusals included."""

    def run(seed: int) -> bytes:
        folder = tmp_path / str(seed)
        folder.mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": "", "TZ": f"UTC{seed % 12}"}
        command = [sys.executable, "-c", PROBE, str(ROOT)]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True).stdout

    with ThreadPoolExecutor(2) as pool:
        answers = set(pool.map(run, range(20)))
    assert len(answers) == 1
    assert len(answers.pop().splitlines()) == 16
