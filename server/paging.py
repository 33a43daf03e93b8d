"""Lists: limits, opaque cursors that belong to one list and filter, and cache headers of what never changes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from kernels.identity import digest
from server.errors import Problem
from server.strict_json import show

IMMUTABLE = "public, max-age=31536000, immutable"
DEFAULT_LIMIT = 50
_MARK_CHARACTERS = 12


def encode_cursor(position: int, of: Mapping[str, Any]) -> str:
    """Return an opaque cursor for a position in the list that `of` describes."""
    text = json.dumps([position, _mark(of)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, of: Mapping[str, Any]) -> int | None:
    """Return the position, or raise `Problem` where the cursor is damaged or of another list."""
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        position, mark = json.loads(text)
    except (ValueError, binascii.Error, TypeError, RecursionError):
        position, mark = None, None
    if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < 2**63 or mark != _mark(of):
        detail = "the cursor was not given by this list with these filters; start without one"
        raise Problem("query_invalid", detail, field="cursor")
    return position


def _mark(of: Mapping[str, Any]) -> str:
    return digest(dict(of))[:_MARK_CHARACTERS]


def listing(items: list[Any], following: int | None, of: Mapping[str, Any]) -> dict[str, Any]:
    """Return the wire form of one page."""
    return {"items": items, "next": None if following is None else encode_cursor(following, of)}


def page_limit(asked: int | None, most: int) -> int:
    """Return how many items a page holds, or raise `Problem` where more are asked for than this service gives."""
    if asked is not None and asked > most:
        raise Problem("query_invalid", f"limit {show(asked)} is more than {most}, the most in one page", field="limit")
    return min(DEFAULT_LIMIT, most) if asked is None else asked


def next_link(path: str, query: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the header that leads to the next page of a list that is not JSON (RFC 8288), where there is one."""
    return {"link": f'<{path}?{urlencode(query)}>; rel="next"'} if query else {}


def immutable(request: Request, etag: str, body: bytes, media_type: str = "application/json") -> Response:
    """Return a resource that never changes, or 304 where the client has it."""
    headers = {"etag": f'"{etag}"', "cache-control": IMMUTABLE}
    asked = request.headers.get("if-none-match", "")
    if asked.strip() == "*" or f'"{etag}"' in [tag.strip().removeprefix("W/") for tag in asked.split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=media_type)


def json_bytes(value: Any) -> bytes:
    """Return compact JSON; NaN raises, because no reader must ever see one."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
