"""One plain page for people. It loads nothing from anywhere, so it works offline."""

from __future__ import annotations

from html import escape
from importlib.resources import files

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from server.openapi import QUESTION

router = APIRouter(include_in_schema=False)

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@router.get("/")
@router.get("/docs")
def page(request: Request) -> HTMLResponse:
    """List every operation of the API, from its OpenAPI document."""
    rows = [
        _row(method, path, operation["summary"])
        for path, operations in request.app.openapi()["paths"].items()
        for method, operation in operations.items()
    ]
    template = files("server").joinpath("pages", "index.html").read_text(encoding="utf-8")
    body = '{{"op":"{op}","shape":{shape},"dtype":"{dtype}"}}'.format(**QUESTION).replace(" ", "")
    text = template.replace("@@QUESTION@@", escape(body)).replace("@@OPERATIONS@@", "\n".join(rows))
    return HTMLResponse(text, headers={"content-security-policy": _POLICY, "x-content-type-options": "nosniff"})


def _row(method: str, path: str, summary: str) -> str:
    shown = f"<code>{escape(path)}</code>"
    linked = f'<a href="{escape(path)}">{shown}</a>' if method == "get" and "{" not in path else shown
    return f"<tr><td><code>{method.upper()}</code></td><td>{linked}</td><td>{escape(summary)}</td></tr>"
