"""Rows of numbers as CSV (RFC 4180) or as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

MEDIA_TYPE = "text/csv; charset=utf-8"


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """Return a header and the rows; floats as their shortest exact text. Every text cell is ours, never a client's."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode()
