"""Identity is a digest: SHA-256 over RFC 8785 canonical JSON, the same bytes on every machine and in every process."""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode

# The two notations differ only where Python writes an exponent or a trailing ".0" (repr switches to an exponent below
# 1e-4 and from 1e16, ECMAScript below 1e-6 and from 1e21); both print the shortest digits that read back.
# Integers of 16 digits and more are range-checked. A string may hold these signs too; that costs time only.
_SIGNS_OF_DIFFERENCE = ("e-", "e+", ".0,", ".0]", ".0}")
_WIDE_INTEGER = re.compile(r"[:,\[-]\d{16}")
_SAFE_INTEGER = 2**53


def canonical_json(value: Any) -> str:
    """Return `value` as RFC 8785 JSON text.

    Keys must be ASCII strings (code-point and UTF-16 order then agree). NaN, infinities and integers a double cannot
    hold raise `ValueError`: another reader would see a different number.
    """
    text = _encode(value)
    if len(text) < 32 or any(sign in text for sign in _SIGNS_OF_DIFFERENCE) or _WIDE_INTEGER.search(text):
        return _encode_slowly(value)
    return text


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON of `value`, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def digest_bytes(data: bytes) -> str:
    """Return the SHA-256 of raw bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _encode_slowly(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_encode(key)}:{_encode_slowly(value[key])}" for key in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_encode_slowly, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int) and abs(value) > _SAFE_INTEGER:
        raise ValueError(f"integer {value} is not exact as a JSON number; store it as text")
    return _encode(value)


def _number(value: float) -> str:
    """ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20), which RFC 8785 section 3.2.2.3 prescribes."""
    if not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form")
    if value == 0:
        return "0"
    sign, (mantissa, _, exponent) = "-" * (value < 0), repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    mantissa = digits[0] + ("." + digits[1:] if count > 1 else "")
    return f"{sign}{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"
