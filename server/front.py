"""The outermost layer: counts requests, answers HEAD, turns what escapes into a problem, and asks without routing.

POST /v1/selections is answered here, before FastAPI: its routing, dependencies and response objects cost about as much
as a whole decision. The route of the same name documents it and leads to the same code.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog
from attrs import frozen
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.asking import Answer, Asking
from server.body import ClientGone, read_body
from server.errors import Problem, problem_of
from server.metrics import Metrics
from server.settings import Settings

ASK = "/v1/selections"
_log = structlog.get_logger("rowsmith")


@frozen(eq=False)
class Front:
    """`asking` gives the pipeline that exists while the application runs."""

    app: ASGIApp
    settings: Settings
    metrics: Metrics
    asking: Callable[[], Asking]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or pass the lifespan on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, seen = time.perf_counter(), _Seen(send)
        if scope["path"] == ASK and scope["method"] == "POST":
            route = ASK
            await self._ask(scope, receive, seen)
        else:
            await self._route(scope, receive, seen)
            route = getattr(scope.get("route"), "path", "unknown")
        self.metrics.answered(route, seen.status, time.perf_counter() - started)

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit, timeout_s = self.settings.body_max_bytes, self.settings.body_timeout_s
        try:
            asking = self.asking()
            raw = await read_body(scope["headers"], receive, limit, timeout_s)
            answer = asking.known(raw) or await asking.answer(raw)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - the edge: every error becomes a problem document
            await _fail(error, scope, receive, send)
            return
        await _send_answer(answer, send)

    async def _route(self, scope: Scope, receive: Receive, seen: _Seen) -> None:
        head = scope["method"] == "HEAD"
        if head:
            scope["method"] = "GET"
        try:
            await self.app(scope, receive, _without_body(seen) if head else seen)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - the edge: whatever escaped is logged, and answered if it was not
            await _fail(error, scope, receive, None if seen.started else seen)


class _Seen:
    """Passes messages on and keeps the status."""

    __slots__ = ("_send", "started", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 499  # nothing was sent: the client had gone
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.started = message["status"], True
        await self._send(message)


def _without_body(send: Send) -> Send:
    async def only_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
        elif not message.get("more_body", False):
            await send({"type": "http.response.body", "body": b""})

    return only_headers


async def _send_answer(answer: Answer, send: Send) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(answer.body)),
        (b"location", answer.location.encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 201 if answer.new else 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _fail(error: Exception, scope: Scope, receive: Receive, send: Send | None) -> None:
    problem: Problem = problem_of(error)
    if problem.code == "internal":
        _log.error("request failed", path=scope["path"], method=scope["method"], exc_info=error)
    if send is not None:
        await problem.response()(scope, receive, send)
