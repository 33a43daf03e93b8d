"""Errors as RFC 9457 problem documents: what went wrong, with which value, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from features.errors import FeatureError, WorkloadError
from kernels.errors import KernelError
from policy.errors import PolicyError, RequestError, TargetError

MEDIA_TYPE = "application/problem+json"

# code: status and title. The detail is written where the fact is known.
PROBLEMS: dict[str, tuple[int, str]] = {
    "json_invalid": (422, "The body is not acceptable JSON"),
    "request_invalid": (422, "The request has a wrong, unknown or missing field"),
    "query_invalid": (422, "The query or path has a wrong or unknown value"),
    "program_unsupported": (422, "No kernel runs this program"),
    "workload_unsupported": (422, "No kernel takes this shape or layout"),
    "recipe_refused": (422, "The named recipe cannot be run here"),
    "profile_unknown": (422, "No profile answers this request"),
    "decision_impossible": (422, "No decision can be made"),
    "body_too_large": (413, "The body is larger than accepted"),
    "body_late": (408, "The body did not arrive in time"),
    "media_type": (415, "The body's type or encoding is not accepted"),
    "not_found": (404, "There is nothing at this address"),
    "method_not_allowed": (405, "The method is not allowed here"),
    "token_required": (401, "This request needs a bearer token"),
    "queue_full": (429, "Too many selections wait to be stored"),
    "disk_full": (507, "The database cannot grow"),
    "store_failed": (503, "The database did not take the record"),
    "not_ready": (503, "The service is not ready"),
    "unavailable": (501, "This installation cannot do that"),
    "internal": (500, "The service failed"),
}


class ServerError(Exception):
    """Something that keeps the service from starting or an administrator's command from finishing."""


class Problem(Exception):
    """An answer that is an error. `code` is a key of `PROBLEMS`; `more` are extra members of the document."""

    def __init__(self, code: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more
        self.status, self.title = PROBLEMS[code]

    def document(self) -> dict[str, Any]:
        """Return the members of the problem document."""
        return {
            "type": f"urn:rowsmith:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **self.more,
        }

    def response(self) -> Response:
        """Return the problem as an HTTP response that no cache keeps."""
        text = json.dumps(self.document(), allow_nan=False)
        return Response(text, self.status, {"cache-control": "no-store", **self.headers}, media_type=MEDIA_TYPE)


def problem_of(error: Exception) -> Problem:
    """Return the problem that an error of a lower room stands for; what nobody foresaw is `internal`."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, WorkloadError):
        return Problem("workload_unsupported", str(error), reason=error.code, field=error.field)
    if isinstance(error, FeatureError | KernelError):
        return Problem("program_unsupported", str(error))
    if isinstance(error, RequestError):
        return Problem("recipe_refused", str(error), field="recipe")
    if isinstance(error, TargetError):
        return Problem("request_invalid", str(error), field="target")
    if isinstance(error, PolicyError):
        return Problem("decision_impossible", str(error))
    return Problem("internal", "An unforeseen error was logged with its traceback; nothing was stored by this request.")
