"""Running the service: uvicorn from within the program, logs as one JSON object a line on standard error."""

from __future__ import annotations

import gc
import logging
import sys
from contextlib import suppress
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp

from server import database
from server.app import create_app
from server.errors import ServerError
from server.settings import Settings

# Tried and left out: a shorter sys.setswitchinterval (0.2 to 1 ms), so that the writer has the interpreter lock sooner,
# and rarer garbage collection. New selections from 32 clients came at 1,810 to 1,990 a second with any value, p99 33 to
# 45 ms (two cores, 2026-11).


def serve(settings: Settings, app: ASGIApp | None = None) -> None:
    """Serve until a signal ends it; `app` is made from the settings where it is not given.

    Raises
    ------
    ServerError : the database is absent, foreign, old or cannot be written, or the address is taken.
    """
    configure_logging(settings.log_level)
    _judge_database(settings)
    server = _Server(
        uvicorn.Config(
            app or create_app(settings),
            host=settings.host,
            port=settings.port,
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="on",
            access_log=False,  # the metrics count requests; a line a request costs a fifth of the throughput
            log_config=None,
            proxy_headers=False,
            server_header=False,
            date_header=False,
        )
    )
    with suppress(SystemExit):  # uvicorn's way to say that it could not bind; its log has the cause
        server.run()
    if not server.started:
        raise ServerError(f"the service did not start on {settings.host}:{settings.port}; the log above says why")


def _judge_database(settings: Settings) -> None:
    """Refuse a wrong database in one line; the application would refuse it with uvicorn's traceback around it."""
    engine = database.make_engine(settings)
    try:
        database.check(engine, settings)
    finally:
        engine.dispose()


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
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it announces its dialect at every look at the schema
