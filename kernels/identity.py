"""Identity is a digest: SHA-256 over RFC 8785 canonical JSON, the same bytes on every machine and in every process."""

from __future__ import annotations

import hashlib
import json
import math
from json.encoder import encode_basestring as _string
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode

# JSON of the standard library differs from RFC 8785 in two ways only; both print the shortest digits that read back.
# Python writes an exponent below 1e-4 and from 1e16, ECMAScript below 1e-6 and from 1e21; Python also ends in ".0".
# Integers of 16 digits and more have to be range-checked. All three are looked for in the text, with what stands before
# or after a number made a comma and digits made 0: five times as fast as one regular expression. A string may hold such
# signs too; that costs time only.
_ENDS = bytes.maketrans(b"]}", b",,")
_STARTS = bytes.maketrans(b"123456789:[-", b"000000000,,,")
_WIDE_INTEGER = b",0000000000000000"
_SAFE_INTEGER = 2**53
# Named once: writing `dict | list` in a test makes a new union each time, which takes as long as the test.
_CONTAINERS = (dict, list, tuple)
_NUMBERS = (int, float)


def canonical_json(value: Any) -> str:
    """Return `value` as RFC 8785 JSON text.

    Keys must be ASCII strings (code-point and UTF-16 order then agree). NaN, infinities and integers a double cannot
    hold raise `ValueError`: another reader would see a different number.
    """
    if not isinstance(value, _CONTAINERS):
        return _encode_slowly(value)
    text = _encode(value)
    data = text.encode()
    may_differ = (
        b"+" in data  # a lone sign is looked for at the speed of memory, and is rare
        or (b"-" in data and b"e-" in data)
        or b".0," in data.translate(_ENDS)
        or _WIDE_INTEGER in data.translate(_STARTS)
    )
    return _encode_slowly(value) if may_differ else text


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of `value`, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def digest_bytes(data: bytes) -> str:
    """Return the SHA-256 of raw bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def canonical_string(value: str) -> str:
    """Return a string as RFC 8785 JSON text."""
    return _string(value)


def canonical_number(value: int | float) -> str:
    """Return a number as RFC 8785 JSON text, or raise `ValueError` where a double does not hold it exactly."""
    if isinstance(value, float):
        return _float(value)
    if abs(value) > _SAFE_INTEGER:
        raise ValueError(f"an integer of {value.bit_length()} bits is not exact as a JSON number; store it as text")
    return str(int(value))


def _encode_slowly(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, dict):
        return "{" + ",".join([f"{_string(key)}:{_encode_slowly(value[key])}" for key in sorted(value)]) + "}"
    if isinstance(value, _CONTAINERS):
        return "[" + ",".join([_encode_slowly(member) for member in value]) + "]"
    if isinstance(value, _NUMBERS) and not isinstance(value, bool):
        return canonical_number(value)
    return _encode(value)


def _float(value: float) -> str:
    """ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20), which RFC 8785 section 3.2.2.3 prescribes."""
    if not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form")
    if value == 0:
        return "0"
    text = repr(float(value))
    if "e" not in text:
        return text.removesuffix(".0")
    sign, text = ("-", text[1:]) if value < 0 else ("", text)
    mantissa, exponent = text.split("e")
    digits, point = mantissa.replace(".", ""), int(exponent) + 1
    if 0 < point <= 21:  # at most 17 digits, and Python writes an exponent from 17 places on
        return sign + digits.ljust(point, "0")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"
