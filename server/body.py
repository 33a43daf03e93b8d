"""Reading a request body: the right type, not compressed, counted as it arrives, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from starlette.types import Message, Receive

from server.errors import Problem

_CLOSE = {"connection": "close"}  # what was not read must not be taken for the next request


class ClientGone(Exception):
    """The client closed the connection before its body was whole."""


async def read_body(headers: Iterable[tuple[bytes, bytes]], receive: Receive, limit: int, timeout_s: float) -> bytes:
    """Return the body of a JSON request.

    Raises
    ------
    Problem : another media type, a content encoding, more than `limit` bytes, or not whole in `timeout_s`.
    ClientGone : nobody waits for an answer.
    """
    _judge_headers(headers, limit)
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body", False):
        body: bytes = message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        return body
    try:
        async with asyncio.timeout(timeout_s):
            return await _rest(message, receive, limit)
    except TimeoutError:
        detail = f"the body was not whole after {timeout_s:g} s; send it at once"
        raise Problem("body_late", detail, headers=_CLOSE) from None


async def _rest(message: Message, receive: Receive, limit: int) -> bytes:
    parts, size = [], 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGone
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()


def _judge_headers(headers: Iterable[tuple[bytes, bytes]], limit: int) -> None:
    media_type = b""
    for name, value in headers:
        if name == b"content-type":
            media_type = value
        elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            detail = f"content-encoding {_show(value)} is not read; send the body uncompressed"
            raise Problem("media_type", detail, headers=_CLOSE)
        elif name == b"content-length" and value.isdigit() and (len(value) > 15 or int(value) > limit):
            raise _too_large(limit)
    if media_type != b"application/json":
        _judge_media_type(media_type)


def _judge_media_type(value: bytes) -> None:
    kind, _, parameters = value.lower().partition(b";")
    charset = parameters.replace(b" ", b"").replace(b'"', b"")
    if kind.strip() != b"application/json" or charset not in (b"", b"charset=utf-8"):
        detail = f"content-type {_show(value) or 'none'} is not read; send content-type: application/json in UTF-8"
        raise Problem("media_type", detail, headers=_CLOSE)


def _too_large(limit: int) -> Problem:
    return Problem("body_too_large", f"the body is larger than {limit} bytes; send less at once", headers=_CLOSE)


def _show(value: bytes) -> str:
    return ascii(value[:60].decode("latin-1"))[1:-1]
