"""Reading JSON that strangers send: one value, no name twice, no NaN, bounded depth and numbers."""

from __future__ import annotations

import json
import math
from typing import Any

from server.errors import Problem

MAX_DEPTH = 32
MAX_DIGITS = 40
_FEW_OPENINGS = MAX_DEPTH  # text with no more brackets than this cannot be deeper


def read_json(raw: bytes) -> Any:
    """Return the value of a JSON text, or raise `Problem` saying what is wrong with it and where."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise _invalid(f"byte {error.start} is not UTF-8; send JSON text in UTF-8") from None
    try:
        value = _decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _invalid(f"{error.msg} at {where}; send one JSON value") from None
    except RecursionError:
        raise _invalid(f"values are nested deeper than {MAX_DEPTH}; send a flatter document") from None
    if text.count("[") + text.count("{") > _FEW_OPENINGS:
        _refuse_deep(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _invalid(f"member {show(twice)} is given twice; give each once")
    return value


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _invalid(f"the number {text[:12]}… has {len(text)} digits; at most {MAX_DIGITS} are read")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= 2 * MAX_DIGITS else math.inf
    if not math.isfinite(value):
        raise _invalid(f"the number {text[:24]} is past what a double holds; use a smaller one")
    return value


def _constant(text: str) -> float:
    raise _invalid(f"{text} is not JSON; send a number or leave the member out")


def _invalid(detail: str) -> Problem:
    return Problem("json_invalid", detail)


def _refuse_deep(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH + 1:
            raise _invalid(f"values are nested deeper than {MAX_DEPTH}; send a flatter document")
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]


def show(value: object) -> str:
    """Return a short rendering of an untrusted value that is safe to put in a message and in UTF-8."""
    text = ascii(value)
    return text if len(text) <= 80 else text[:77] + "..."


_decode = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
).decode
