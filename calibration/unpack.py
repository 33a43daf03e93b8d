"""From a packet back to the folder of its calibration, so that anybody's sweep can be gone on with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibration.errors import CalibrationError
from calibration.folder import Document, documents, kept
from calibration.journal import Journal, sync_folder
from calibration.packet import Contents, read
from calibration.verify import verify
from kernels.identity import digest


def unpack(file: Path, folder: Path, begun: Mapping[str, Any]) -> None:
    """Write journal, environment, profile and search times of a packet into a folder that has none.

    A calibration there measures what the packet's records lack, such as peers or later recipes, and nothing else. A
    folder that was filled from the same packet before is left as it is.

    Parameters
    ----------
    begun : seed and regime of the calibration that is to go on; the packet's must be the same.

    Raises
    ------
    CalibrationError : the folder holds another calibration, the packet is of another seed or regime or does not verify.
    PacketError : the file is no packet, or a damaged one.
    """
    packet = read(file)
    held, origin = packet.contents, {"packet": packet.digest}
    path = folder / "journal.jsonl"
    if path.exists() and origin in documents(folder, "origin"):
        return
    theirs = {"seed": held.plan.seed, "regime": held.plan.regime}
    if theirs != dict(begun):
        raise CalibrationError(f"{file} is of {theirs} and this calibration of {dict(begun)}; ask for the packet's")
    made = {"origin": origin, **_documents(held)}
    if path.exists() or any(documents(folder, name) not in ((), (document,)) for name, document in made.items()):
        raise CalibrationError(f"{folder} holds a calibration already; go on with it, or unpack into another folder")
    if findings := verify(packet):
        raise CalibrationError(f"{file} does not verify, first: {findings[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in made.items():
        _write(folder, name, document)
    # Beside its name until it is whole: a call that was killed here is no calibration that lacks records.
    unfinished = path.with_name("journal.jsonl.part")
    unfinished.unlink(missing_ok=True)
    journal = Journal(unfinished, begun)
    for record in (*held.cohort, *held.validation_records):
        journal.append(record)
    unfinished.replace(path)
    sync_folder(folder)


def _documents(held: Contents) -> dict[str, Document]:
    """Return the documents of a folder whose calibration would give these contents, by name."""
    found: dict[str, Document] = {"environment": held.environment}
    if held.profile is not None:
        found["profile"] = held.profile
        if held.validation is not None:
            samples = held.validation["host_search"]["samples_ns"]
            found["searches"] = {"profile": digest(held.profile), "samples_ns": samples}
    return found


def _write(folder: Path, name: str, document: Document) -> None:
    kept(folder, name, lambda stored: stored == document, lambda: document)
