"""Reading a zip that may be hostile: nothing is inflated past what its manifest accounts for."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from calibration.errors import PacketError
from calibration.packetjson import from_json
from kernels.identity import digest_bytes

# A sweep of one family is about 3 MiB uncompressed; these leave room for a hundred families and bound the memory that
# a hostile upload can take.
MAX_TOTAL_BYTES = 256 * 2**20
MAX_MANIFEST_BYTES = 2**20
MAX_MEMBERS = 512
_FILE = "file"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_ENCRYPTED = 0x1


@frozen
class Member:
    """One member of a packet."""

    name: str
    data: bytes


def safe_name(name: str) -> bool:
    """Return whether a member's name is a plain relative path, which stays inside any folder it is unpacked to."""
    return len(name) <= 200 and _NAME.fullmatch(name) is not None


def read_members(data: bytes, manifest_name: str, schema: str) -> tuple[bytes, Mapping[str, Any], dict[str, bytes]]:
    """Return the manifest's bytes, the manifest, and every part by name in its order.

    Raises
    ------
    PacketError : the file is no whole zip, or differs from its manifest in a name, an order, a size or a digest.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            _judge_directory(infos, manifest_name)
            manifest_bytes = _inflate(archive, infos[0], MAX_MANIFEST_BYTES)
            manifest = _manifest(manifest_bytes, manifest_name, schema)
            listed = manifest["parts"]
            _judge_listing(infos[1:], listed)
            parts = {}
            for info, part in zip(infos[1:], listed, strict=True):
                parts[info.filename] = _checked(_inflate(archive, info, part["bytes"]), part)
            return manifest_bytes, manifest, parts
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        NotImplementedError,
        EOFError,
        OSError,
        ValueError,
        struct.error,
    ) as error:
        raise PacketError(_FILE, f"is not a whole zip file: {error}") from error


def _judge_directory(infos: list[zipfile.ZipInfo], manifest_name: str) -> None:
    """Refuse a directory that no packet has, before anything is inflated."""
    if not infos or infos[0].filename != manifest_name:
        found = infos[0].filename[:80] if infos else "nothing"
        raise PacketError(manifest_name, f"must be the first member; there is {found!r}")
    if len(infos) > MAX_MEMBERS:
        raise PacketError(_FILE, f"has {len(infos)} members, more than {MAX_MEMBERS}")
    seen: set[str] = set()
    offset = -1
    for info in infos:
        name = info.filename
        if not safe_name(name):
            raise PacketError(name[:80], "is not a plain relative name")
        if name in seen:
            raise PacketError(name, "is in the file twice")
        if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise PacketError(name, "is encrypted or packed by another method than stored or deflated")
        if info.header_offset <= offset:
            raise PacketError(name, "lies before the member that precedes it")
        seen.add(name)
        offset = info.header_offset


def _manifest(data: bytes, name: str, schema: str) -> Mapping[str, Any]:
    try:
        manifest = from_json(data)
    except (ValueError, RecursionError) as error:
        raise PacketError(name, f"cannot be read: {error}") from error
    if not isinstance(manifest, dict) or set(manifest) != {"schema", "name", "parts"}:
        raise PacketError(name, "must hold exactly schema, name and parts")
    if manifest["schema"] != schema:
        raise PacketError(name, f"schema {str(manifest['schema'])[:80]!r} is not {schema}; use a matching release")
    if not isinstance(manifest["name"], str) or not isinstance(manifest["parts"], list):
        raise PacketError(name, "name must be text and parts a list")
    for place, part in enumerate(manifest["parts"]):
        if not isinstance(part, dict) or set(part) != {"name", "sha256", "bytes"}:
            raise PacketError(name, f"part {place} must hold exactly name, sha256 and bytes")
        if type(part["bytes"]) is not int or part["bytes"] < 0 or not isinstance(part["name"], str):
            raise PacketError(name, f"part {place} has a size or a name that is none")
    total = sum(part["bytes"] for part in manifest["parts"])
    if total > MAX_TOTAL_BYTES:
        raise PacketError(name, f"lists {total} bytes, more than the {MAX_TOTAL_BYTES} that a packet may have")
    return manifest


def _judge_listing(infos: list[zipfile.ZipInfo], listed: list[Mapping[str, Any]]) -> None:
    names, wanted = [info.filename for info in infos], [part["name"] for part in listed]
    for name in wanted:
        if wanted.count(name) > 1:
            raise PacketError(name[:80], "is listed twice in the manifest")
        if name not in names:
            raise PacketError(name[:80], "is listed in the manifest and not in the file")
    for place, name in enumerate(names):
        if name not in wanted:
            raise PacketError(name, "is in the file and not listed in the manifest")
        if wanted[place] != name:
            raise PacketError(name, f"is out of order; the manifest has {wanted[place]} there")
    for info, part in zip(infos, listed, strict=True):
        if info.file_size != part["bytes"]:
            raise PacketError(info.filename, f"has {info.file_size} bytes and the manifest says {part['bytes']}")


def _inflate(archive: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    """Return a member's bytes, reading one byte past `limit` at most."""
    try:
        with archive.open(info) as stream:
            data = stream.read(limit + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise PacketError(info.filename, f"is damaged: {error}") from error
    if len(data) > limit:
        raise PacketError(info.filename, f"inflates to more than the {limit} bytes it may have")
    return data


def _checked(data: bytes, part: Mapping[str, Any]) -> bytes:
    if len(data) != part["bytes"]:
        raise PacketError(part["name"], f"is cut short: {len(data)} bytes of {part['bytes']}")
    if (found := digest_bytes(data)) != part["sha256"]:
        raise PacketError(part["name"], f"is altered: its SHA-256 is {found} and {part['sha256']} was expected")
    return data
