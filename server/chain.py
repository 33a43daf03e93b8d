"""The hash chain over all stored rows: whoever keeps an earlier head can tell that nothing before it was changed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from attrs import frozen
from sqlalchemy import Connection, select

from server.node import Node
from server.tables import FACETS, nodes

GENESIS = "0" * 64
HEAD = "SELECT seq, head FROM nodes ORDER BY seq DESC LIMIT 1"
COVERED = ("seq", "kind", "digest", "stored_at_ms", *FACETS, "observed", "body")


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


def covered(node: Node, seq: int, stored_at_ms: int) -> tuple[Any, ...]:
    """Return the columns that the chain covers, in the order of `COVERED`."""
    facets = (getattr(node, name) for name in FACETS)
    return (seq, node.kind, node.digest, stored_at_ms, *facets, node.observed, node.body)


def link(prev: str, row: Sequence[Any]) -> str:
    """Return the chain value of a row: SHA-256 over the previous one and each covered column with its length."""
    parts = [prev]
    for value in row:
        text = "" if value is None else str(value)
        parts.append(f"{'null' if value is None else len(text)}:{text}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def head_of(connection: Connection) -> Head:
    """Return the published head. Rows are numbered without gaps, so the last number is the count."""
    found = connection.exec_driver_sql(HEAD).first()
    return Head(0, GENESIS) if found is None else Head(found.seq, found.head)


def first_break(connection: Connection, kept: Head | None = None) -> Broken | None:
    """Walk the whole chain and return the first row that is edited, missing or foreign, or None.

    `kept` is a head published earlier: it finds rows deleted at the end and a chain rewritten from its beginning.
    """
    prev, expected_seq = GENESIS, 1
    rows = connection.execution_options(yield_per=500).execute(select(nodes).order_by(nodes.c.seq)).mappings()
    for row in rows:
        if row["seq"] != expected_seq:
            return Broken(expected_seq, "row", str(expected_seq), str(row["seq"]))
        if row["prev"] != prev:
            return Broken(expected_seq, "prev", prev, row["prev"])
        body = hashlib.sha256(row["body"].encode()).hexdigest()
        if body != row["digest"]:
            return Broken(expected_seq, "digest", body, row["digest"])
        if (expected := link(prev, [row[name] for name in COVERED])) != row["head"]:
            return Broken(expected_seq, "head", expected, row["head"])
        if kept is not None and kept.count == expected_seq and kept.head != expected:
            return Broken(expected_seq, "kept head", kept.head, expected)
        prev, expected_seq = expected, expected_seq + 1
    if kept is not None and kept.count >= expected_seq:
        return Broken(expected_seq, "row", f"{kept.count} rows", f"{expected_seq - 1} rows")
    return None
