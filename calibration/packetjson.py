"""JSON in packets: canonical text both ways, so that one document has one text and a repeated key or a NaN has none."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kernels.identity import canonical_json


def to_json(document: Any) -> bytes:
    """Return a document as canonical JSON."""
    return canonical_json(document).encode()


def to_jsonl(documents: Iterable[Any]) -> bytes:
    """Return documents as canonical JSON, one a line, each line ended."""
    return b"".join(to_json(document) + b"\n" for document in documents)


def from_json(data: bytes) -> Any:
    """Read one canonical JSON document; `ValueError` says how it is not."""
    document = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    if to_json(document) != data:
        raise ValueError("the text is not canonical JSON (RFC 8785): keys, spaces, numbers or a repeated key")
    return document


def from_jsonl(data: bytes) -> tuple[dict[str, Any], ...]:
    """Read canonical JSON objects, one a line; `ValueError` names the line."""
    if data and not data.endswith(b"\n"):
        raise ValueError("the last line is not ended")
    documents = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            document = from_json(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        if not isinstance(document, dict):
            raise ValueError(f"line {number} is not an object")
        documents.append(document)
    return tuple(documents)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} has no JSON form")
