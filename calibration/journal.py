"""The journal of a sweep: one line a finished geometry, durable before the next starts, so a kill loses nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from calibration.errors import CalibrationError, RecordError
from calibration.records import Geometry, geometry_from_json
from kernels.identity import canonical_json, digest_bytes

JOURNAL_SCHEMA = "rowsmith.journal/1"
# purpose, run, form, dtype, rows, width
Key = tuple[str, int, str, str, int, int]


def key_of(record: Geometry) -> Key:
    """Return what a record of the journal answers."""
    return (record.purpose, record.run, *record.key)


class Journal:
    """An append-only file of records. Each line carries its digest; a torn last line is dropped when it is opened.

    `plan` names what the journal belongs to: a journal of another plan is refused, never overwritten.
    """

    def __init__(self, path: Path, plan: str) -> None:
        self.path = path
        self.records: dict[Key, Geometry] = {}
        if path.exists():
            self._resume(plan)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._append({"schema": JOURNAL_SCHEMA, "plan": plan})
            _sync_folder(path.parent)

    def append(self, record: Geometry) -> None:
        """Add a record; it is on disk when this returns. A second record of the same point is refused."""
        if key_of(record) in self.records:
            raise CalibrationError(f"{record.label} is in {self.path.name} already")
        self._append(record.to_json())
        self.records[key_of(record)] = record

    def of(self, purpose: str, runs: Iterable[int]) -> Iterator[Geometry]:
        """Return the records of a purpose and runs."""
        wanted = set(runs)
        return (record for record in self.records.values() if record.purpose == purpose and record.run in wanted)

    def _append(self, document: dict[str, object]) -> None:
        text = canonical_json(document)
        line = f"{digest_bytes(text.encode())} {text}\n".encode()
        with self.path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _resume(self, plan: str) -> None:
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
                os.fsync(file.fileno())
        lines = whole.decode().splitlines()
        if not lines:
            self._append({"schema": JOURNAL_SCHEMA, "plan": plan})
            return
        for number, line in enumerate(lines, start=1):
            name, _, text = line.partition(" ")
            if digest_bytes(text.encode()) != name:
                raise CalibrationError(f"{self.path} line {number} is damaged; keep it aside and start another folder")
            document = json.loads(text)
            if number == 1:
                if document.get("schema") != JOURNAL_SCHEMA or document.get("plan") != plan:
                    raise CalibrationError(
                        f"{self.path} belongs to plan {str(document.get('plan'))[:12]}, not to {plan[:12]}; "
                        "use another folder, or the arguments it was begun with"
                    )
                continue
            try:
                record = geometry_from_json(document)
            except RecordError as error:
                raise CalibrationError(f"{self.path} line {number}: {error}") from error
            self.records[key_of(record)] = record


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
