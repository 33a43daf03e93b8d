"""Assembly: `create_app(settings)` puts the parts together; nothing is built when this module is imported."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from features.errors import FeatureError
from kernels.errors import KernelError
from policy.errors import PolicyError
from server import page
from server.access import permitted
from server.asking import Asking
from server.body import ClientGone
from server.errors import Problem, problem_of
from server.front import Front
from server.importing import import_bundled
from server.live import LiveSource, this_machine
from server.metrics import Metrics
from server.node import Node, receipt_node
from server.openapi import document
from server.profiles import bundled_nodes, known_profiles
from server.routes import catalogue, chain, evidence, fits, health, residuals, samples, selections
from server.settings import Settings
from server.state import State
from server.store import Store, open_store
from server.strict_json import show

_log = structlog.get_logger("rowsmith")
_ROUTERS = (health, selections, chain, catalogue, residuals, samples, fits, evidence, page)


def create_app(
    settings: Settings | None = None,
    *,
    live: LiveSource = this_machine,
    shipped: Callable[[], Sequence[Node]] = bundled_nodes,
) -> ASGIApp:
    """Return the service.

    Parameters
    ----------
    live : asked once at start for this machine's own GPU.
    shipped : what is stored at start where it is not yet, besides the packets of the release.

    Raises
    ------
    ServerError : when the application starts, on a database that is absent, foreign, old or cannot be written.
    """
    settings, metrics = settings or Settings(), Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state = app.state.rowsmith = _state(settings, _open(settings, shipped), live, metrics)
        names = [entry.profile.name for entry in state.profiles]
        _log.info("ready", profiles=names, database=str(settings.database_path))
        try:
            yield
        finally:
            state.store.close()

    app = FastAPI(
        title="rowsmith",
        version="1",
        description="Picks the GPU kernel for a row collective from a frozen cost model, and shows why.",
        lifespan=lifespan,
        dependencies=[Depends(permitted)],
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    for module in _ROUTERS:
        app.include_router(module.router)
    _handle_errors(app)
    generate = app.openapi
    app.openapi = lambda: _once(app, generate)  # type: ignore[method-assign]
    return Front(app, settings, metrics, lambda: app.state.rowsmith.asking)


def all_routes() -> list[Route]:
    """Return every route of the application but its OpenAPI document."""
    return [route for module in _ROUTERS for route in module.router.routes if isinstance(route, Route)]


def _once(app: FastAPI, generate: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if app.openapi_schema is None:
        app.openapi_schema = document(app, generate())
    return app.openapi_schema


def _open(settings: Settings, shipped: Callable[[], Sequence[Node]]) -> Store:
    """Open the database, or refuse; store what ships with the release where it is not stored yet."""
    store = open_store(settings)
    try:
        if settings.import_bundled:
            import_bundled(store)
        store.add(shipped())
    except BaseException:
        store.close()
        raise
    return store


def _state(settings: Settings, store: Store, live: LiveSource, metrics: Metrics) -> State:
    try:
        known, found = known_profiles(store), live()
        if found is not None:
            store.add([receipt_node(receipt) for receipt in found.receipts.values()])
    except BaseException:
        store.close()
        raise
    asking = Asking(store, known, found, metrics, settings.answer_cache_entries)
    return State(settings, store.engine, store, asking, known, found, metrics)


def _handle_errors(app: FastAPI) -> None:
    """Turn every error into a problem document."""

    async def any_error(request: Request, error: Exception) -> Response:
        if isinstance(error, ClientGone):
            raise error
        return problem_of(error).response()

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _http_problem(request, error).response()

    async def query_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"][1:])
        detail = f"{field or 'the query'} {show(first.get('input'))}: {first['msg']}"
        return Problem("query_invalid", detail, field=field).response()

    for kind in (Problem, FeatureError, KernelError, PolicyError):
        app.add_exception_handler(kind, any_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, query_error)
    app.add_exception_handler(Exception, any_error)  # answered, then raised again: server.front logs it


def _allowed(request: Request) -> list[str]:
    """Return every method that some route has at this address; Starlette names those of the first one only."""
    matching = [route for route in all_routes() if route.path_regex.match(request.url.path)]
    methods = {method for route in matching for method in route.methods or ()}
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def _http_problem(request: Request, error: HTTPException) -> Problem:
    path, method = show(request.url.path), show(request.method)[1:-1]
    if error.status_code == 404:
        return Problem("not_found", f"there is nothing at {path}; /openapi.json lists what there is")
    if error.status_code == 405:
        allowed = ", ".join(_allowed(request))
        headers = {"allow": allowed}
        return Problem("method_not_allowed", f"{method} is not allowed at {path}; use {allowed}", headers=headers)
    return Problem("internal", f"{error.status_code} {error.detail}")
