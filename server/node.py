"""A node: one immutable stored thing, with its canonical body, its name and the facets lists are filtered by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from kernels.identity import canonical_json, digest_bytes
from kernels.receipt import Receipt

SELECTION = "selection"


@frozen
class Node:
    """What is handed to the writer. `digest` is the SHA-256 of `body`; `observed` stands beside it, outside."""

    kind: str
    digest: str
    body: str
    observed: str | None = None
    parent: str | None = None
    form: str | None = None
    dtype: str | None = None
    rows: int | None = None
    width: int | None = None
    recipe: str | None = None
    reason: str | None = None
    purpose: str | None = None
    geometry: str | None = None


@frozen
class Stored:
    """A node as the database holds it. `new` tells whether this submission stored it."""

    seq: int
    digest: str
    body: str
    observed: str | None
    stored_at_ms: int
    new: bool = False


def node_of(kind: str, document: Mapping[str, Any], **facets: Any) -> Node:
    """Return the node of a document, named by the digest of its canonical JSON."""
    body = canonical_json(document)
    return Node(kind, digest_bytes(body.encode()), body, **facets)


def receipt_node(receipt: Receipt) -> Node:
    """Return the node of a receipt."""
    return node_of("receipt", receipt.facts(), recipe=receipt.recipe, dtype=receipt.dtype)
