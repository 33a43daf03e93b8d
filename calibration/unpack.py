"""From a packet back to the folder of its calibration, so that anybody's sweep can be gone on with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibration.errors import CalibrationError
from calibration.folder import kept
from calibration.journal import Journal
from calibration.packet import read
from calibration.verify import verify
from kernels.identity import digest


def unpack(file: Path, folder: Path) -> None:
    """Write journal, environment, profile and search times of a packet into a folder that has none.

    A calibration there measures what the packet's records lack, such as peers or later recipes, and nothing else.
    Environments of calls before the last one are told in a packet but not held whole: they are not written.

    Raises
    ------
    CalibrationError : the folder holds a calibration, or the packet does not verify.
    PacketError : the file is no packet, or a damaged one.
    """
    path = folder / "journal.jsonl"
    if path.exists():
        raise CalibrationError(f"{folder} holds a calibration already; go on with it, or unpack into another folder")
    packet = read(file)
    if findings := verify(packet):
        raise CalibrationError(f"{file} does not verify, first: {findings[0]}")
    held = packet.contents
    folder.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in held.environment.items() if name != "earlier"}
    _write(folder, "environment", environment)
    if held.profile is not None:
        _write(folder, "profile", held.profile)
    if held.profile is not None and held.validation is not None:
        samples = held.validation["host_search"]["samples_ns"]
        _write(folder, "searches", {"profile": digest(held.profile), "samples_ns": samples})
    # Beside its name until it is whole: a call that was killed here is no calibration that lacks records.
    unfinished = path.with_name("journal.jsonl.part")
    unfinished.unlink(missing_ok=True)
    journal = Journal(unfinished, {"seed": held.plan.seed, "regime": held.plan.regime})
    for record in (*held.cohort, *held.validation_records):
        journal.append(record)
    unfinished.replace(path)


def _write(folder: Path, name: str, document: Mapping[str, Any]) -> None:
    kept(folder, name, lambda stored: stored == document, lambda: document)
