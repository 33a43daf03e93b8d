"""The OpenAPI document: FastAPI's own, with problem responses, wire types and an example for each operation."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from server.wire import Batch, ProblemDocument, Question

QUESTION = {"op": "scan", "shape": [128, 8192], "dtype": "float16"}
BODIES = {"/v1/selections": QUESTION, "/v1/selections:batch": {"items": [QUESTION, {**QUESTION, "dtype": "float32"}]}}
ANSWERS: dict[str, Any] = {
    "/livez": {"status": "alive"},
    "/v1/selections:batch": {
        "items": [
            {"status": 201, "selection": {"id": "0" * 64, "decision": {"recipe": "scan.cub512", "reason": "admitted"}}},
            {"status": 422, "problem": {"code": "workload_unsupported", "detail": "extent -1 on axis 0 is not …"}},
        ],
        "next": None,
    },
    "/v1/reasons": {"items": [{"code": "admitted", "of": ["decision"], "meaning": "…", "remedy": "…"}], "next": None},
}
_PROBLEMS = {
    "get": ("404", "422", "500", "503"),
    "post": ("401", "404", "408", "413", "415", "422", "429", "500", "501", "503", "507"),
}


def document(app: FastAPI, generated: dict[str, Any]) -> dict[str, Any]:
    """Return the generated document, completed. Walks every operation, so that a new route has what the others have."""
    schemas = generated["components"]["schemas"]
    for model in (Question, Batch, ProblemDocument):
        described = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= described.pop("$defs", {})
        schemas[model.__name__] = described
    for path, operations in generated["paths"].items():
        for method, operation in operations.items():
            _complete(path, method, operation)
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    return generated


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    answers = operation["responses"]
    if any(parameter["name"] == "format" for parameter in operation.get("parameters", ())):
        answers["200"]["content"]["text/csv"] = {"schema": {"type": "string"}}
    if method == "get" and "{" in path:
        answers["304"] = {"description": "The client has it: it never changes"}
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}}
    for status in _PROBLEMS[method]:
        answers[status] = {"description": "Problem", "content": problem}
    for answer in answers.values():
        if (content := answer.get("content", {}).get("application/json")) is not None:
            content["example"] = ANSWERS.get(path, _example(path, operation))
    for content in operation.get("requestBody", {}).get("content", {}).values():
        content["example"] = BODIES[path]
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":
            parameter["example"] = 1 if parameter["name"] == "seq" else "0" * 64


def _example(path: str, operation: dict[str, Any]) -> Any:
    """Return a short example of the right form where none is written out."""
    reference = str(operation["responses"].get("200", operation["responses"].get("201")))
    if "Listing" in reference:
        return {"items": [{"digest": "0" * 64, "links": {"self": f"{path}/{'0' * 64}"}}], "next": None}
    if "Answered" in reference:
        return {
            "id": "0" * 64,
            "candidates": [],
            "decision": {"recipe": "scan.cub512", "reason": "admitted", "score_us": 5.6, "original_score_us": 12.9},
            "provenance": {"profile": "0" * 64, "fit": "0" * 64, "cohort": "0" * 64},
            "schema": "rowsmith.selection/1",
            "target": {"compute_capability": "9.0", "sm_count": 132},
            "workload": {"rows": 128, "width": 8192, "dtype": "float16"},
            "observed": {"receipts": "recorded", "at": None},
            "links": {"self": f"/v1/selections/{'0' * 64}", "verify": f"/v1/selections/{'0' * 64}/verify"},
        }
    return {"digest": "0" * 64, "links": {"self": path}}
