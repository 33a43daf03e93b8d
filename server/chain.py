"""The hash chain over all stored rows: whoever keeps an earlier head can tell that nothing before it was changed."""

from __future__ import annotations

import hashlib
from typing import Any

from attrs import frozen
from sqlalchemy import Connection, select

from server.tables import COLUMNS, FACETS, nodes

GENESIS = "0" * 64
_COVERED = ("seq", "kind", "digest", "stored_at_ms", *FACETS, "observed", "body")


@frozen
class Head:
    """The newest row's number and chain value; `count` rows are stored."""

    count: int
    head: str


@frozen
class Broken:
    """The first row that does not follow from those before it."""

    seq: int
    what: str
    expected: str
    found: str


def link(prev: str, row: dict[str, Any]) -> str:
    """Return the chain value of a row: SHA-256 over the previous one and every column, each with its length."""
    hasher = hashlib.sha256(prev.encode())
    for name in _COVERED:
        value = row[name]
        text = b"-" if value is None else str(value).encode()
        hasher.update(b"%d:" % len(text) if value is not None else b"null:")
        hasher.update(text)
    return hasher.hexdigest()


def head_of(connection: Connection) -> Head:
    """Return the published head. Rows are numbered without gaps, so the last number is the count."""
    found = connection.execute(select(nodes.c.seq, nodes.c.head).order_by(nodes.c.seq.desc()).limit(1)).first()
    return Head(0, GENESIS) if found is None else Head(found.seq, found.head)


def first_break(connection: Connection, kept: Head | None = None) -> Broken | None:
    """Walk the whole chain and return the first row that is edited, missing or foreign, or None.

    `kept` is a head published earlier: it finds rows deleted at the end and a chain rewritten from its beginning.
    """
    prev, expected_seq = GENESIS, 1
    rows = connection.execution_options(yield_per=500).execute(select(nodes).order_by(nodes.c.seq)).mappings()
    for row in rows:
        values = {name: row[name] for name in COLUMNS}
        if values["seq"] != expected_seq:
            return Broken(expected_seq, "row", str(expected_seq), str(values["seq"]))
        if values["prev"] != prev:
            return Broken(expected_seq, "prev", prev, values["prev"])
        body = hashlib.sha256(values["body"].encode()).hexdigest()
        if body != values["digest"]:
            return Broken(expected_seq, "digest", body, values["digest"])
        if (expected := link(prev, values)) != values["head"]:
            return Broken(expected_seq, "head", expected, values["head"])
        if kept is not None and kept.count == expected_seq and kept.head != expected:
            return Broken(expected_seq, "kept head", kept.head, expected)
        prev, expected_seq = expected, expected_seq + 1
    if kept is not None and kept.count >= expected_seq:
        return Broken(expected_seq, "row", f"{kept.count} rows", f"{expected_seq - 1} rows")
    return None
