"""The OpenAPI document is complete, has an example for each operation, works offline, and the service obeys it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kernels.recipes import RECIPES
from policy.reasons import REASONS
from server.app import all_routes
from tests.server.service import QUESTION, TestClient, fresh, serving


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A service with a selection in it."""
    with serving(fresh(tmp_path_factory.mktemp("api"))) as client:
        client.post("/v1/selections", json=QUESTION)
        yield client


@pytest.fixture(scope="module")
def document(service: TestClient) -> dict[str, Any]:
    """The OpenAPI document."""
    found: dict[str, Any] = service.get("/openapi.json").json()
    return found


def test_every_route_is_documented(document: dict[str, Any]) -> None:
    """All but the page for people."""
    documented = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    routes = {(r.path, m) for r in all_routes() for m in r.methods or () if r.path not in ("/", "/docs")}
    assert documented == routes


def test_every_operation_has_an_example(document: dict[str, Any]) -> None:
    """Of its body where it takes one, and of its answer where that is JSON."""
    for path, methods in document["paths"].items():
        for operation in methods.values():
            answers = [r for status, r in operation["responses"].items() if status in ("200", "201")]
            contents = [c for r in answers for t, c in r["content"].items() if t == "application/json"]
            contents += operation.get("requestBody", {}).get("content", {}).values()
            assert contents or path in ("/metrics", "/v1/files/{digest}"), path
            assert all("example" in content for content in contents), path


def test_the_example_question_is_answered(service: TestClient, document: dict[str, Any]) -> None:
    """As it stands in the document."""
    for path in ("/v1/selections", "/v1/selections:batch"):
        example = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert service.post(path, json=example).status_code in (200, 201)


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_the_page_for_people_loads_nothing(service: TestClient, path: str) -> None:
    """No script, and no address of another machine: it works offline."""
    page = service.get(path)
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"(?:src|href)=.?(?:https?:)?//|<script|@import|url\(", page.text)
    for address in re.findall(r'href="([^"]+)"', page.text):
        assert service.get(address).status_code in (200, 503), address


def test_health_and_metrics(service: TestClient) -> None:
    """What a supervisor looks at."""
    assert service.get("/livez").json() == {"status": "alive"}
    ready = service.get("/readyz").json()
    assert ready["status"] == "ready"
    assert ready["chain"]["count"] >= 2
    assert [profile["name"] for profile in ready["active_profiles"]] == ["made"]
    assert set(service.get("/version").json()) >= {"rowsmith", "sqlite", "catalogue", "selection_schema"}
    text = service.get("/metrics").text
    assert 'rowsmith_requests_total{route="/v1/selections",status="201"}' in text
    assert 'rowsmith_requests_total{route="/readyz",status="200"}' in text
    assert "rowsmith_decisions_total" in text
    head = service.head("/readyz")
    assert (head.status_code, head.content) == (200, b"")


def test_catalogue(service: TestClient) -> None:
    """Ops with programs, recipes with legality and units, reasons with remedies."""
    ops = service.get("/v1/ops").json()["items"]
    assert next(op for op in ops if op["op"] == "scan")["recipes"][0] == "scan.original"
    recipes = service.get("/v1/recipes").json()
    schemas = [schema for row in recipes["items"] for schema in row["feature_schemas"]]
    assert all(f["unit"] and f["formula"] for schema in schemas for f in schema["features"])
    assert all(row["feature_schemas"] for row in recipes["items"]), "a recipe that no schema prices"
    assert {row["role"] for row in recipes["items"]} == {row.role for row in RECIPES}
    assert all(proof["meaning"] for row in recipes["items"] for proof in row["proofs"])
    reasons = service.get("/v1/reasons").json()["items"]
    assert all(row["meaning"] and row["remedy"] for row in reasons)
    assert {row["code"] for row in reasons} == set(REASONS)


def test_lists_are_filtered_and_paged(service: TestClient) -> None:
    """Newest first, each selection once, and only those that fit."""
    for rows in range(1, 8):
        service.post("/v1/selections", json={**QUESTION, "shape": [rows, 2048], "dtype": "float32"})
    seen, cursor = [], ""
    while cursor is not None:
        page = service.get(f"/v1/selections?op=scan&dtype=float32&width=2048&limit=3{cursor}").json()
        seen += [item["rows"] for item in page["items"]]
        cursor = f"&cursor={page['next']}" if page["next"] else None
    assert seen == list(range(7, 0, -1))
    assert service.get("/v1/selections?recipe=none-such").json()["items"] == []
