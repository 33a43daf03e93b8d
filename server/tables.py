"""Tables. Every stored thing is one immutable row of `nodes`, named by its kind and digest and chained by hash."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

# "rows" in ASCII: tells a database of ours from any other SQLite file.
APPLICATION_ID = 0x726F7773

metadata = MetaData()

nodes = Table(
    "nodes",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("digest", String(64), nullable=False),
    Column("body", Text, nullable=False),  # canonical JSON; its SHA-256 is the digest
    Column("observed", Text),  # JSON beside the facts: how they were seen, outside the digest
    Column("stored_at_ms", BigInteger, nullable=False),
    # Facets: copies of members of the body to filter lists by. NULL where the kind has none.
    Column("parent", String(64)),
    Column("form", Text),
    Column("dtype", String(16)),
    Column("rows", BigInteger),
    Column("width", BigInteger),
    Column("recipe", Text),
    Column("reason", Text),
    Column("purpose", String(16)),
    Column("geometry", String(64)),
    Column("prev", String(64), nullable=False),
    Column("head", String(64), nullable=False),
    UniqueConstraint("kind", "digest", name="uq_nodes_kind_digest"),
    CheckConstraint("seq >= 1", name="ck_nodes_seq"),
    CheckConstraint("length(digest) = 64", name="ck_nodes_digest"),
    CheckConstraint("length(prev) = 64 AND length(head) = 64", name="ck_nodes_chain"),
)
Index("ix_nodes_kind_seq", nodes.c.kind, nodes.c.seq)
Index("ix_nodes_kind_parent_seq", nodes.c.kind, nodes.c.parent, nodes.c.seq)

FACETS = ("parent", "form", "dtype", "rows", "width", "recipe", "reason", "purpose", "geometry")

# INSERT OR REPLACE deletes without a DELETE trigger unless PRAGMA recursive_triggers is on: server.database turns it on
# for every connection, and ABORT in BEFORE INSERT holds for connections that did not.
TRIGGERS = {
    "nodes_no_update": "BEFORE UPDATE ON nodes BEGIN SELECT RAISE(ABORT, 'nodes is append-only: no update'); END",
    "nodes_no_delete": "BEFORE DELETE ON nodes BEGIN SELECT RAISE(ABORT, 'nodes is append-only: no delete'); END",
    "nodes_in_order": (
        "BEFORE INSERT ON nodes WHEN NEW.seq != 1 + (SELECT coalesce(max(seq), 0) FROM nodes) "
        "OR NEW.prev != coalesce((SELECT head FROM nodes ORDER BY seq DESC LIMIT 1), "
        "'0000000000000000000000000000000000000000000000000000000000000000') "
        "OR EXISTS (SELECT 1 FROM nodes WHERE kind = NEW.kind AND digest = NEW.digest) "
        "BEGIN SELECT RAISE(ABORT, 'nodes is append-only: a row must follow the head and be new'); END"
    ),
}
