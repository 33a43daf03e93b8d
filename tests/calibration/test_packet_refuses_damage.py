"""A packet is whole or refused, with the part that is wrong by name."""

import io
import json
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from calibration import archive
from calibration.errors import PacketError
from calibration.packet import Contents, pack, read, write
from kernels.identity import canonical_json, digest_bytes
from tests.calibration.planted import planted_contents

Members = list[tuple[str, bytes]]


@pytest.fixture(scope="module")
def whole() -> bytes:
    return pack("planted", planted_contents())


def members(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return [(info.filename, packed.read(info)) for info in packed.infolist()]


def zipped(parts: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as packed, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a duplicate name is what some of these tests are about
        for name, data in parts:
            packed.writestr(name, data)
    return buffer.getvalue()


def relisted(parts: Members) -> Members:
    """Return the members with a manifest that accounts for them."""
    old = json.loads(parts[0][1])
    listed = [{"name": name, "sha256": digest_bytes(data), "bytes": len(data)} for name, data in parts[1:]]
    return [("manifest.json", canonical_json({**old, "parts": listed}).encode()), *parts[1:]]


def replaced(parts: Members, name: str, data: bytes) -> Members:
    return [(n, data if n == name else d) for n, d in parts]


def test_a_packet_reads_back_as_it_was_written(whole: bytes, tmp_path: Path) -> None:
    """The same contents give the same bytes; any zip reader opens them, and another's packing keeps the name."""
    packet = read(whole)
    assert packet.contents == planted_contents()
    assert pack("planted", packet.contents) == whole
    assert write(tmp_path / "p.zip", "planted", packet.contents) == packet.digest
    assert (tmp_path / "p.zip").read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["p.zip"]
    assert read(tmp_path / "p.zip") == packet
    assert packet.digest == digest_bytes(members(whole)[0][1])
    assert read(zipped(members(whole), zipfile.ZIP_STORED)).digest == packet.digest


def test_a_packet_may_end_after_the_sweep(whole: bytes) -> None:
    full = planted_contents()
    early = Contents(full.plan, full.environment, full.sources, full.options, full.receipts, full.cohort)
    assert read(pack("early", early)).contents == early


def _altered_bytes(parts: Members) -> Members:
    return [(n, d[:-2] + b"0\n" if n == "residuals.jsonl" else d) for n, d in parts]


# Each damage, and the part that the message must name.
DAMAGES: dict[str, tuple[Callable[[Members], Members], str]] = {
    "altered": (_altered_bytes, "residuals.jsonl: is altered"),
    "shortened": (lambda p: replaced(p, "plan.json", p[1][1][:-1]), "plan.json: has"),
    "grown": (lambda p: replaced(p, "plan.json", p[1][1] + b" "), "plan.json: has"),
    "reordered": (lambda p: [p[0], p[2], p[1], *p[3:]], "environment.json: is out of order"),
    "reordered and relisted": (lambda p: relisted([p[0], p[2], p[1], *p[3:]]), "plan.json: was expected as part 0"),
    "duplicated": (lambda p: [*p, p[-1]], "residuals.jsonl: is in the file twice"),
    "duplicated manifest": (lambda p: [p[0], *p], "manifest.json: is in the file twice"),
    "unlisted": (lambda p: [*p, ("extra.json", b"{}")], "extra.json: is in the file and not listed"),
    "listed but unknown": (lambda p: relisted([*p, ("extra.json", b"{}")]), "extra.json: is no part of"),
    "missing": (lambda p: p[:-1], "residuals.jsonl: is listed in the manifest and not in the file"),
    "missing and relisted": (lambda p: relisted(p[:-1]), "residuals.jsonl: was expected"),
    "manifest last": (lambda p: [*p[1:], p[0]], "manifest.json: must be the first member"),
    "outside": (lambda p: relisted([*p, ("../up", b"")]), "../up: is not a plain relative name"),
    "absolute": (lambda p: relisted([*p, ("/etc/x", b"")]), "/etc/x: is not a plain relative name"),
    "not canonical": (lambda p: replaced(p, "manifest.json", p[0][1] + b"\n"), "manifest.json: cannot be read"),
    "repeated key": (
        lambda p: replaced(p, "manifest.json", b'{"name":"x",' + p[0][1][1:]),
        "manifest.json: cannot be read",
    ),
    "another schema": (
        lambda p: replaced(p, "manifest.json", p[0][1].replace(b"packet/1", b"packet/2")),
        "manifest.json: schema 'rowsmith.packet/2'",
    ),
    "a record that is none": (
        lambda p: relisted(replaced(p, "cohort.jsonl", b"{}\n")),
        "cohort.jsonl: cannot be read: RecordError",
    ),
    "a line cut short": (lambda p: relisted(replaced(p, "fits.jsonl", b"{}")), "fits.jsonl: cannot be read"),
    "NaN": (lambda p: relisted(replaced(p, "residuals.jsonl", b'{"a":NaN}\n')), "residuals.jsonl: cannot be read"),
    "nested too deep": (
        lambda p: relisted(replaced(p, "validation.json", b"[" * 100_000)),
        "validation.json: cannot be read",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_packet_is_refused_and_the_part_is_named(whole: bytes, damage: str) -> None:
    harm, said = DAMAGES[damage]
    with pytest.raises(PacketError) as refused:
        read(zipped(harm(members(whole))))
    assert str(refused.value).startswith(said)
    assert refused.value.part == said.split(": ")[0]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(whole: bytes, share: float) -> None:
    with pytest.raises(PacketError, match="file"):
        read(whole[: int(len(whole) * share)])


def test_a_flipped_bit_anywhere_is_refused_or_changes_nothing(whole: bytes) -> None:
    """Bits that no reader looks at (times, attributes) may flip; every other is found, always as a PacketError."""
    name = read(whole).digest
    for place in range(7, len(whole), len(whole) // 150):
        flipped = bytearray(whole)
        flipped[place] ^= 0x10
        try:
            assert read(bytes(flipped)).digest == name
        except PacketError:
            continue


def test_nothing_is_inflated_past_what_the_manifest_accounts_for(whole: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = b"0" * 2**24
    assert len(zipped([("x", bomb)])) < 2**15
    with pytest.raises(PacketError, match=r"manifest\.json: inflates to more than"):
        read(zipped([("manifest.json", bomb)]))
    honest = relisted(replaced(members(whole), "residuals.jsonl", bomb))
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", 2**23)
    with pytest.raises(PacketError, match=r"manifest\.json: lists \d+ bytes, more than"):
        read(zipped(honest))


def test_a_member_that_lies_about_its_size_is_cut_off(whole: bytes) -> None:
    """The zip's directory and the manifest agree on a small size; the stream behind them is a bomb."""
    parts = members(whole)
    size = len(parts[-1][1])
    data = bytearray(zipped(replaced(parts, "residuals.jsonl", b"0" * 2**24)))
    true, false = (2**24).to_bytes(4, "little"), size.to_bytes(4, "little")
    assert data.count(true) == 2, "the local header and the directory"
    with pytest.raises(PacketError, match=r"residuals\.jsonl: (is damaged|inflates|is altered)"):
        read(bytes(data).replace(true, false))


def test_a_file_with_too_many_members_is_refused(monkeypatch: pytest.MonkeyPatch, whole: bytes) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    with pytest.raises(PacketError, match="more than 3"):
        read(whole)
