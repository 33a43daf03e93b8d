"""A sweep that is killed in its middle goes on where it stopped: nothing lost, nothing measured twice."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from calibration.packet import read
from calibration.records import RUNS, TRAINING, VALIDATION
from calibration.verify import verify

ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0


def lines(folder: Path) -> list[bytes]:
    """The whole lines of the journal; the first one names the plan."""
    try:
        return (folder / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []


def records(folder: Path) -> list[tuple[object, ...]]:
    """What each record of the journal answers."""
    documents = [json.loads(line.partition(b" ")[2]) for line in lines(folder)[1:]]
    return [(d["purpose"], d["run"], d["form"], d["dtype"], d["rows"], d["width"]) for d in documents]


def swept(folder: Path, until: Callable[[], bool]) -> int:
    """Sweep in a process of its own; kill it as soon as `until` holds. Returns its exit status, -9 for a kill."""
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.tiny_sweep", str(folder)],
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
    started = time.monotonic()
    while process.poll() is None:
        if until() or time.monotonic() - started > LIMIT_S:
            process.kill()
        time.sleep(0.005)
    return process.wait()


def test_a_sweep_killed_three_times_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    def told() -> str:
        return (tmp_path / "log.txt").read_text()[-2000:]

    assert swept(tmp_path, lambda: len(lines(tmp_path)) >= 6) == -9, told()
    first = lines(tmp_path)
    assert len(first) >= 6
    with (tmp_path / "journal.jsonl").open("ab") as journal:  # as if the kill had torn the line it was writing
        journal.write(first[-1][:100])

    assert swept(tmp_path, lambda: len(lines(tmp_path)) >= len(first) + 5) == -9, told()
    second = lines(tmp_path)
    assert second[: len(first)] == first
    assert len(second) > len(first)

    assert swept(tmp_path, lambda: any(key[0] == VALIDATION for key in records(tmp_path))) == -9, told()
    third = lines(tmp_path)
    assert third[: len(second)] == second
    frozen = (tmp_path / "profile.json").read_bytes()
    assert not (tmp_path / "packet.zip").exists()

    assert swept(tmp_path, lambda: False) == 0, told()
    assert lines(tmp_path)[: len(third)] == third
    assert (tmp_path / "profile.json").read_bytes() == frozen

    packet = read(tmp_path / "packet.zip")
    plan = packet.contents.plan
    expected = [(TRAINING, 0, p.form, p.dtype, p.rows, p.width) for p in plan.training]
    for run in RUNS[VALIDATION]:
        expected += [(VALIDATION, run, p.form, p.dtype, p.rows, p.width) for p in plan.validation]
    assert sorted(records(tmp_path)) == sorted(expected)
    assert len(packet.contents.cohort) == len(plan.training)
    assert len(packet.contents.validation_records) == 2 * len(plan.validation)
    assert verify(packet) == ()

    finished = (tmp_path / "journal.jsonl").read_bytes()
    assert swept(tmp_path, lambda: False) == 0, told()
    assert (tmp_path / "journal.jsonl").read_bytes() == finished
    assert read(tmp_path / "packet.zip").digest == packet.digest
