"""Running the service: uvicorn from within the program, logs as one JSON object a line on standard error."""

from __future__ import annotations

import gc
import logging
import sys
from contextlib import suppress
from typing import Any

import structlog
import uvicorn

from server.app import create_app
from server.errors import ServerError
from server.settings import Settings

# The event loop and the writer share one interpreter lock. At the default of 5 ms the writer waits that long at each of
# its few SQLite calls while the loop is busy: 1,000 new selections a second instead of 2,000 with 32 clients.
SWITCH_INTERVAL_S = 0.0005


def serve(settings: Settings) -> None:
    """Serve until a signal ends it.

    Raises
    ------
    ServerError : the database is absent, foreign, old or cannot be written, or the address is taken.
    """
    configure_logging(settings.log_level)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    server = _Server(
        uvicorn.Config(
            _reporting(create_app(settings)),
            host=settings.host,
            port=settings.port,
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="on",
            access_log=False,  # the metrics count requests; a line a request costs a fifth of the throughput
            log_config=None,
            server_header=False,
            date_header=False,
        )
    )
    with suppress(SystemExit):  # uvicorn's way to say that it could not bind; its log has the cause
        server.run()
    if not server.started:
        address = f"{settings.host}:{settings.port}"
        raise ServerError(_cause.pop() if _cause else f"cannot listen on {address}; another process may have it")


_cause: list[str] = []


def _reporting(app: Any) -> Any:
    """Keep the reason why the application did not start, which uvicorn only logs."""

    async def reporting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return

        async def keep(message: Any) -> None:
            if message["type"] == "lifespan.startup.failed":
                _cause.append(message.get("message", "").strip().splitlines()[-1])
            await send(message)

        await app(scope, receive, keep)

    return reporting


class _Server(uvicorn.Server):
    """Freezes what was built at start: the collector need not walk it again."""

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets)
        gc.collect()
        gc.freeze()


def configure_logging(level: str) -> None:
    """Send our log and the libraries' through one JSON formatter."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
