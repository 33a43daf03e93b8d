"""From a packet to nodes: every document under its own digest, all in one transaction. Repeating changes nothing."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import structlog
from attrs import frozen

from calibration.cohort import cohort_document
from calibration.packet import MANIFEST, Contents, Packet, read
from calibration.records import Geometry
from kernels.identity import digest, digest_bytes
from kernels.receipt import Receipt
from kernels.recipes import recipe
from kernels.source import macros, options_document, source_document
from server.answer import node_of_facts
from server.node import Node, node_of, receipt_node
from server.store import Store

_log = structlog.get_logger("rowsmith")


@frozen
class Imported:
    """How many nodes a packet has, and how many of them were new."""

    packet: str
    nodes: int
    new: int


def import_packet(store: Store, packet: Packet) -> Imported:
    """Store what a packet holds, whole or not at all, and return when it is durable.

    Raises
    ------
    Problem : the database does not take it; nothing of it is stored.
    """
    batch = {(node.kind, node.digest): node for node in nodes_of(packet)}
    stored = store.add(tuple(batch.values()))
    return Imported(packet.digest, len(stored), sum(node.new for node in stored))


def import_bundled(store: Store) -> None:
    """Import the packets that ship with the release and are not stored yet."""
    folder = files("calibration").joinpath("packets")
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".zip"):
            data = entry.read_bytes()
            if store.get("packet", _name(data)) is None:
                _log.info("importing packet, once: half a minute", file=entry.name)
                done = import_packet(store, read(data))
                _log.info("packet imported", file=entry.name, packet=done.packet, nodes=done.nodes)


def _name(data: bytes) -> str:
    """Return a packet's digest without reading its parts; "" where there is none, which reading will explain."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return digest_bytes(archive.read(MANIFEST))
    except (zipfile.BadZipFile, KeyError):
        return ""


def nodes_of(packet: Packet) -> Iterator[Node]:
    """Yield a packet's nodes, what others name before those that name them."""
    held, parent = packet.contents, packet.digest
    environment = node_of("environment", held.environment, parent=parent)
    yield node_of("plan", held.plan.to_json(), parent=parent)
    yield environment
    yield from _sources(held)
    for receipt in held.receipts:
        yield receipt_node(receipt)
    for record in (*held.cohort, *held.validation_records):
        yield _geometry(record)
    cohort = cohort_document(held.cohort, held.receipts, environment.digest)
    yield node_of("cohort", cohort, parent=parent)
    for fit in held.fits:
        yield node_of("fit", fit, parent=fit["cohort"], form=fit["form"])
    if held.crossvalidation is not None:
        yield node_of("crossvalidation", held.crossvalidation, parent=parent)
    if held.profile is not None:
        yield node_of("profile", held.profile, parent=_target_digest(held.profile))
    if held.validation is not None:
        yield node_of("validation", held.validation, parent=held.validation["profile"])
    for facts in held.selections:
        yield node_of_facts(facts)
    yield from _residuals(held)
    yield node_of("packet", packet.manifest)


def _target_digest(profile: Mapping[str, Any]) -> str:
    facts = {name: value for name, value in profile["target"].items() if name != "label"}
    return digest({"schema": "rowsmith.target/1", **facts})


def _geometry(record: Geometry) -> Node:
    facets = {"form": record.form, "dtype": record.dtype, "rows": record.rows, "width": record.width}
    return node_of("geometry", record.to_json(), purpose=record.purpose, **facets)


def _residuals(held: Contents) -> Iterator[Node]:
    for line in held.residuals:
        facets = {"recipe": line["recipe"], "purpose": line["set"], "geometry": line["geometry"]}
        yield node_of("residual", line, parent=line["fit"], **facets)


def _sources(held: Contents) -> Iterator[Node]:
    """Yield the files as text, and the documents that the receipts' source and options digests are of."""
    for data in held.sources.values():
        yield Node("file", digest_bytes(data), data.decode())
    yield node_of("source", options_document(held.options))
    for receipt in held.receipts:
        yield node_of("source", _source_document(held.sources, receipt), recipe=receipt.recipe, dtype=receipt.dtype)


def _source_document(files: Mapping[str, bytes], receipt: Receipt) -> dict[str, Any]:
    """Return the document of `kernels.source.identity`, over the packet's own files."""
    row = recipe(receipt.recipe)
    return source_document(row.template, files.__getitem__, macros(row, receipt.dtype))
