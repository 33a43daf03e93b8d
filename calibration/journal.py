"""The journal of a sweep: one line a finished geometry, durable before the next starts, so a kill loses nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from calibration.errors import CalibrationError, RecordError
from calibration.planned import Planned
from calibration.records import Geometry, geometry_from_json
from kernels.identity import canonical_json, digest_bytes

JOURNAL_SCHEMA = "rowsmith.journal/2"
SUPERSEDING_SCHEMA = "rowsmith.superseding/1"
# purpose, run, form, dtype, extents
Key = tuple[str, int, str, str, *tuple[int, ...]]


def key_of(record: Geometry) -> Key:
    """Return what a record of the journal answers."""
    return (record.purpose, record.run, *record.key)


def planned_key(planned: Planned, purpose: str, run: int) -> Key:
    """Return what a record of a planned geometry would answer."""
    return purpose, run, planned.form, planned.dtype, *planned.extents


class Journal:
    """An append-only file of records. Each line carries its digest; a torn last line is dropped when it is opened.

    `begun` says what the journal belongs to, such as a seed and a regime: a journal of another is refused, never
    overwritten. What is planned may grow. A record that takes the place of an earlier one is a line of its own, which
    names the digest of that one.
    """

    def __init__(self, path: Path, begun: Mapping[str, Any]) -> None:
        self.path = path
        self.begun = dict(begun)
        self.records: dict[Key, Geometry] = {}
        if path.exists():
            self._resume()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._begin()
            sync_folder(path.parent)

    def append(self, record: Geometry) -> None:
        """Add a record; it is on disk when this returns. A second record of the same point is refused."""
        if key_of(record) in self.records:
            raise CalibrationError(f"{record.label} is in {self.path.name} already")
        self._append(record.to_json())
        self.records[key_of(record)] = record

    def supersede(self, record: Geometry) -> None:
        """Add a record that takes the place of the one of the same point, which stays in the file."""
        before = self.records[key_of(record)].digest
        self._append({"schema": SUPERSEDING_SCHEMA, "supersedes": before, "record": record.to_json()})
        self.records[key_of(record)] = record

    def of(self, points: Iterable[Planned], purpose: str, runs: Iterable[int]) -> Iterator[Geometry]:
        """Return the records there are of planned points, in a purpose and runs."""
        keys = [planned_key(point, purpose, run) for run in runs for point in points]
        return (self.records[key] for key in keys if key in self.records)

    def _begin(self) -> None:
        self._append({"schema": JOURNAL_SCHEMA, **self.begun})

    def _append(self, document: dict[str, object]) -> None:
        text = canonical_json(document)
        line = f"{digest_bytes(text.encode())} {text}\n".encode()
        with self.path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _resume(self) -> None:
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
                os.fsync(file.fileno())
        lines = whole.decode().splitlines()
        if not lines:
            self._begin()
            return
        for number, line in enumerate(lines, start=1):
            name, _, text = line.partition(" ")
            if digest_bytes(text.encode()) != name:
                raise self._damaged(number)
            document = json.loads(text)
            if number == 1:
                self._judge_begun(document)
            else:
                self._take(number, document)

    def _judge_begun(self, document: dict[str, Any]) -> None:
        expected = {"schema": JOURNAL_SCHEMA, **self.begun}
        if document != expected:
            told = ", ".join(
                f"{name} {document.get(name)} and not {value}"
                for name, value in expected.items()
                if document.get(name) != value
            )
            raise CalibrationError(f"{self.path} was begun with {told}; use another folder, or the same again")

    def _take(self, number: int, document: dict[str, Any]) -> None:
        """Read one line: a first record of its point, or one that names the record it supersedes."""
        supersedes = document.get("supersedes") if document.get("schema") == SUPERSEDING_SCHEMA else None
        try:
            record = geometry_from_json(document if supersedes is None else document["record"])
        except (RecordError, KeyError) as error:
            raise CalibrationError(f"{self.path} line {number}: {error}") from error
        before = self.records.get(key_of(record))
        if supersedes != (None if before is None else before.digest):
            raise self._damaged(number)
        self.records[key_of(record)] = record

    def _damaged(self, number: int) -> CalibrationError:
        return CalibrationError(f"{self.path} line {number} is damaged; keep it aside and start another folder")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
