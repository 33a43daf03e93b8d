"""The packet: everything a sweep leaves, in one zip that any reader opens, named by the digest of its manifest.

Its bytes depend on nothing but its contents: fixed order, fixed times, canonical JSON. Reading trusts nothing that the
manifest does not account for.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from calibration.archive import Member, read_members, safe_name
from calibration.errors import CalibrationError, PacketError
from calibration.packetjson import from_json, from_jsonl, to_json, to_jsonl
from calibration.plan import Plan, plan_from_json
from calibration.records import Geometry, geometry_from_json
from kernels.identity import digest_bytes
from kernels.receipt import Receipt

PACKET_SCHEMA = "rowsmith.packet/1"
MANIFEST = "manifest.json"
SOURCES = "sources/"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can say


@frozen(slots=False)
class Contents:
    """What a packet holds, parsed. What was not done yet is None or empty: a packet may end after any step."""

    plan: Plan
    environment: Mapping[str, Any]
    sources: Mapping[str, bytes] = field(repr=False)
    options: tuple[str, ...]
    receipts: tuple[Receipt, ...]
    cohort: tuple[Geometry, ...] = field(repr=False)
    fits: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    crossvalidation: Mapping[str, Any] | None = field(default=None, repr=False)
    profile: Mapping[str, Any] | None = field(default=None, repr=False)
    validation_records: tuple[Geometry, ...] = field(default=(), repr=False)
    validation: Mapping[str, Any] | None = field(default=None, repr=False)
    selections: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    residuals: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)


@frozen(slots=False)
class Packet:
    """A packet as it was read: `digest` is its name, `parts` maps each member to its bytes."""

    digest: str
    name: str
    manifest: Mapping[str, Any] = field(repr=False)
    parts: Mapping[str, bytes] = field(repr=False)
    contents: Contents


@frozen
class _Part:
    """One member: the attribute of `Contents` it holds, and how it is read and written."""

    member: str
    attribute: str
    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]


def _records(data: bytes) -> tuple[Geometry, ...]:
    return tuple(geometry_from_json(line) for line in from_jsonl(data))


def _write_records(records: Iterable[Geometry]) -> bytes:
    return to_jsonl(record.to_json() for record in records)


def _options(data: bytes) -> tuple[str, ...]:
    options = from_json(data)
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise ValueError("the options are not a list of strings")
    return tuple(options)


def _document(data: bytes) -> Any:
    document = from_json(data)
    if document is not None and not isinstance(document, dict):
        raise ValueError("the document is not an object")
    return document


# The members besides the sources, in their order; sources come after `environment.json`.
_HEAD = (
    _Part("plan.json", "plan", lambda data: plan_from_json(from_json(data)), lambda plan: to_json(plan.to_json())),
    _Part("environment.json", "environment", _document, to_json),
)
_TAIL = (
    _Part("options.json", "options", _options, lambda options: to_json(list(options))),
    _Part(
        "receipts.jsonl",
        "receipts",
        lambda data: tuple(Receipt(**line) for line in from_jsonl(data)),
        lambda receipts: to_jsonl(receipt.facts() for receipt in receipts),
    ),
    _Part("cohort.jsonl", "cohort", _records, _write_records),
    _Part("fits.jsonl", "fits", from_jsonl, to_jsonl),
    _Part("crossvalidation.json", "crossvalidation", _document, to_json),
    _Part("profile.json", "profile", _document, to_json),
    _Part("validation.jsonl", "validation_records", _records, _write_records),
    _Part("validation.json", "validation", _document, to_json),
    _Part("selections.jsonl", "selections", from_jsonl, to_jsonl),
    _Part("residuals.jsonl", "residuals", from_jsonl, to_jsonl),
)


def pack(name: str, contents: Contents) -> bytes:
    """Return the bytes of a packet; `name` is for people and part of the manifest."""
    members = [Member(part.member, part.write(getattr(contents, part.attribute))) for part in _HEAD]
    members += [Member(SOURCES + file, data) for file, data in sorted(contents.sources.items())]
    members += [Member(part.member, part.write(getattr(contents, part.attribute))) for part in _TAIL]
    parts = [{"name": m.name, "sha256": digest_bytes(m.data), "bytes": len(m.data)} for m in members]
    manifest = Member(MANIFEST, to_json({"schema": PACKET_SCHEMA, "name": name, "parts": parts}))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for member in (manifest, *members):
            if not safe_name(member.name):
                raise PacketError(member.name, "is not a plain relative name")
            info = zipfile.ZipInfo(member.name, _EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, member.data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def write(path: str | Path, name: str, contents: Contents) -> str:
    """Write a packet, whole or not at all, and return its digest."""
    data = pack(name, contents)
    written = read(data)  # what cannot be read back is not written
    path = Path(path)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(data)
    unfinished.replace(path)
    return written.digest


def read(source: str | Path | bytes) -> Packet:
    """Read a packet from a file or from bytes.

    Raises
    ------
    PacketError : truncated, altered, reordered, duplicated, oversized, unlisted or malformed; names the part.
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    manifest_bytes, manifest, parts = read_members(data, MANIFEST, PACKET_SCHEMA)
    names = list(parts)
    files = [name for name in names if name.startswith(SOURCES)]
    expected = [*(p.member for p in _HEAD), *sorted(files), *(p.member for p in _TAIL)]
    for place, name in enumerate(expected):
        if place >= len(names) or names[place] != name:
            found = names[place] if place < len(names) else "nothing"
            raise PacketError(name, f"was expected as part {place} of the packet; there is {found}")
    if len(names) > len(expected):
        raise PacketError(names[len(expected)], f"is no part of {PACKET_SCHEMA}")
    values = {part.attribute: _parse(part, parts[part.member]) for part in (*_HEAD, *_TAIL)}
    values["sources"] = {name.removeprefix(SOURCES): parts[name] for name in files}
    if values["environment"] is None:
        raise PacketError("environment.json", "is null; a packet says where it was measured")
    return Packet(digest_bytes(manifest_bytes), str(manifest["name"]), manifest, parts, Contents(**values))


def empty_members(contents: Contents) -> tuple[str, ...]:
    """Return the members that hold nothing, in the packet's order: what was not done yet, or not kept."""
    return tuple(part.member for part in (*_HEAD, *_TAIL) if not getattr(contents, part.attribute))


def _parse(part: _Part, data: bytes) -> Any:
    try:
        return part.read(data)
    except (CalibrationError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise PacketError(part.member, f"cannot be read: {type(error).__name__} {error}") from error
