"""The extents of a geometry: in keys, in memory and for people. Where `inner` is not 1 so many rows interleave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def extents(rows: int, width: int, inner: int) -> tuple[int, ...]:
    """Return rows and width, and the inner extent where it is not 1."""
    return (rows, width) if inner == 1 else (rows, width, inner)


def shape_in_memory(rows: int, width: int, inner: int) -> tuple[int, ...]:
    """Return the extents of an array: rows and width, or images, channels and positions."""
    return (rows, width) if inner == 1 else (rows // inner, width, inner)


def shape_of(facts: Mapping[str, Any]) -> str:
    """Return the extents that an outcome names, as people read them."""
    return shape_text(facts["rows"], facts["width"], facts.get("inner", 1))


def shape_text(rows: int, width: int, inner: int = 1) -> str:
    """Return extents as people read them: rows x width, or images x channels x positions."""
    return " x ".join(map(str, shape_in_memory(rows, width, inner)))
