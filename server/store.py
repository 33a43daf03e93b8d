"""The store: nodes go in through the writer and come out by name, by list and by cursor. It knows no HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from sqlalchemy import Engine, Row, RowMapping, Select, select

from server import chain, database
from server.node import Node, Stored
from server.settings import Settings
from server.tables import FACETS, nodes
from server.writer import Writer

_BODY = (nodes.c.seq, nodes.c.digest, nodes.c.body, nodes.c.observed, nodes.c.stored_at_ms)
_SUMMARY = (nodes.c.seq, nodes.c.digest, nodes.c.stored_at_ms, *(nodes.c[name] for name in FACETS))


@frozen
class Page:
    """Rows of a list, newest or oldest first, and the sequence number to go on from."""

    rows: Sequence[Row[Any]]
    following: int | None


@frozen(eq=False)
class Store:
    """Reads use the engine's pool; every write goes through the one writer."""

    engine: Engine
    writer: Writer

    def start(self) -> None:
        """Start the writer."""
        self.writer.start()

    def close(self) -> None:
        """Store what is waiting and let the connections go."""
        self.writer.stop()
        self.engine.dispose()

    def add(self, batch: Sequence[Node]) -> tuple[Stored, ...]:
        """Store nodes together or not at all, and return when they are durable. Blocks: not for the event loop."""
        return self.writer.submit_from_thread(tuple(batch)).result()

    def get(self, kind: str, digest: str) -> Stored | None:
        """Return a node by its name."""
        query = select(*_BODY).where(nodes.c.kind == kind, nodes.c.digest == digest)
        with self.engine.connect() as connection:
            row = connection.execute(query).first()
        return None if row is None else Stored(**row._mapping)

    def bodies(self, kind: str, digests: Sequence[str]) -> dict[str, str]:
        """Return the bodies of the nodes that exist, by digest."""
        query = select(nodes.c.digest, nodes.c.body).where(nodes.c.kind == kind)
        found: dict[str, str] = {}
        with self.engine.connect() as connection:
            for start in range(0, len(digests), 500):
                part = digests[start : start + 500]
                found |= {row.digest: row.body for row in connection.execute(query.where(nodes.c.digest.in_(part)))}
        return found

    def page(
        self,
        kind: str,
        limit: int,
        *,
        filters: Mapping[str, Any] | None = None,
        after: int | None = None,
        newest_first: bool = False,
        bodies: bool = False,
    ) -> Page:
        """Return up to `limit` rows of a kind that have these facets (a tuple: any of them), going on from a number."""
        query: Select[Any] = select(*(_BODY if bodies else _SUMMARY)).where(nodes.c.kind == kind)
        for name, value in (filters or {}).items():
            column = nodes.c[name]
            query = query.where(column.in_(value) if isinstance(value, tuple) else column == value)
        if after is not None:
            query = query.where(nodes.c.seq < after if newest_first else nodes.c.seq > after)
        query = query.order_by(nodes.c.seq.desc() if newest_first else nodes.c.seq).limit(limit + 1)
        with self.engine.connect() as connection:
            rows = connection.execute(query).all()
        return Page(rows[:limit], rows[limit - 1].seq if len(rows) > limit else None)

    def all_bodies(self, kind: str) -> list[Stored]:
        """Return every node of a kind of which there are few (profiles, validations), oldest first."""
        query = select(*_BODY).where(nodes.c.kind == kind).order_by(nodes.c.seq)
        with self.engine.connect() as connection:
            return [Stored(**row._mapping) for row in connection.execute(query)]

    def head(self) -> chain.Head:
        """Return the head of the hash chain."""
        with self.engine.connect() as connection:
            return chain.head_of(connection)

    def link_at(self, seq: int) -> RowMapping | None:
        """Return one row's place in the chain."""
        query = select(nodes.c.seq, nodes.c.kind, nodes.c.digest, nodes.c.prev, nodes.c.head).where(nodes.c.seq == seq)
        with self.engine.connect() as connection:
            return connection.execute(query).mappings().first()

    def first_break(self, kept: chain.Head | None = None) -> chain.Broken | None:
        """Walk the whole chain; see `server.chain.first_break`."""
        with self.engine.connect() as connection:
            return chain.first_break(connection, kept)


def open_store(settings: Settings) -> Store:
    """Return the started store of a database of this release's schema; close it in the end.

    Raises
    ------
    ServerError : no database, or one of another schema or program.
    """
    engine = database.make_engine(settings)
    database.check(engine, settings)
    store = Store(engine, Writer(engine, settings.queue_max, settings.group_max))
    store.start()
    return store
