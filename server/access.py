"""Who may do what: reads and asking are open on loopback, everything else is refused without a token."""

from __future__ import annotations

from starlette.requests import Request

from server.errors import Problem

READING = frozenset({"GET", "HEAD"})

# Asking computes and records an answer; it changes nothing that an earlier answer rests on.
ASKING = frozenset(
    {
        "/v1/selections",
        "/v1/selections:batch",
        "/v1/fits/{digest}/verify",
    }
)


def permitted(request: Request) -> None:
    """Deny by default. A dependency of the whole application, so that a new route is refused until it is listed."""
    route = getattr(request.scope.get("route"), "path", "")
    if request.method in READING or (request.method == "POST" and route in ASKING):
        return
    detail = f"{request.method} {route} changes the store and needs a bearer token; this release issues none"
    raise Problem("token_required", detail, headers={"www-authenticate": "Bearer"})
