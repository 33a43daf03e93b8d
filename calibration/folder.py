"""The documents of a calibration's folder: written once, never changed, followed by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from calibration.packetjson import from_json, to_json

Document = Mapping[str, Any]


def documents(folder: Path, name: str) -> tuple[Document, ...]:
    """Return the documents of a name, oldest first: `name.json`, `name-2.json` and so on."""
    found: list[Document] = []
    while (path := _path(folder, name, len(found) + 1)).exists():
        found.append(from_json(path.read_bytes()))
    return tuple(found)


def kept(folder: Path, name: str, holds: Callable[[Document], bool], make: Callable[[], Document]) -> Document:
    """Return the last document of a name that holds, writing a new one where none does.

    So a call that goes on with unchanged measurements has the same documents, to the last bit, on any machine.
    """
    earlier = documents(folder, name)
    for document in reversed(earlier):
        if holds(document):
            return document
    path = _path(folder, name, len(earlier) + 1)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(to_json(make()))
    unfinished.replace(path)
    document = from_json(path.read_bytes())
    assert isinstance(document, dict)
    return document


def _path(folder: Path, name: str, number: int) -> Path:
    return folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
