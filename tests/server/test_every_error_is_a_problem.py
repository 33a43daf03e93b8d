"""404, 405, 422, 429, 500 and 507 are RFC 9457 documents that say what, which value and what to do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from server.asking import Asking
from server.errors import PROBLEMS
from server.settings import Settings
from tests.server.service import QUESTION, TestClient, fresh, inner, serving, settings_for, state

NOBODY = "0" * 64


def judged(answer: Any, status: int) -> dict[str, Any]:
    """Return the document of a problem, having looked at its form."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert document["title"]
    assert document["type"] == f"urn:rowsmith:problem:{document['code']}"
    assert document["code"] in PROBLEMS
    return document


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "/v1",
        "/v1/nope",
        "/v1/selections/",
        f"/v1/selections/{NOBODY}",
        f"/v1/selections/{NOBODY}/verify",
        f"/v1/fits/{NOBODY}",
        f"/v1/fits/{NOBODY}/design",
        f"/v1/cohorts/{NOBODY}/samples",
        f"/v1/geometries/{NOBODY}/samples",
        f"/v1/validations/{NOBODY}/residuals",
        "/v1/profiles/..%2f..%2fetc%2fpasswd",
        "/v1/chain/999999",
        "/docs/swagger",
        "/static/../pyproject.toml",
    ],
)
def test_what_is_not_there_is_a_404(client: TestClient, path: str) -> None:
    """The detail says where to look instead."""
    assert "/" in judged(client.get(path), 404)["detail"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/selections", "GET, HEAD, POST"),
        ("PUT", "/v1/selections", "GET, HEAD, POST"),
        ("GET", "/v1/selections:batch", "POST"),
        ("POST", "/v1/fits", "GET, HEAD"),
        ("PATCH", f"/v1/fits/{NOBODY}", "GET, HEAD"),
        ("GET", f"/v1/fits/{NOBODY}/verify", "POST"),
        ("TRACE", "/livez", "GET, HEAD"),
    ],
)
def test_another_method_is_a_405(client: TestClient, method: str, path: str, allowed: str) -> None:
    """The Allow header and the detail name those that there are."""
    answer = client.request(method, path)
    assert answer.headers["allow"] == allowed
    assert allowed in judged(answer, 405)["detail"]


def test_an_unknown_reason_and_a_long_page_are_told_what_there_is(client: TestClient) -> None:
    """The known codes, and the most that a page holds."""
    unknown = judged(client.get("/v1/selections?reason=bogus"), 422)
    assert unknown["field"] == "reason"
    assert all(code in unknown["detail"] for code in ("admitted", "target_mismatch", "forced"))
    assert client.get("/v1/selections?reason=admitted&limit=500").status_code == 200
    for path in ("selections", "profiles", "residuals"):
        long = judged(client.get(f"/v1/{path}?limit=501"), 422)
        assert (long["field"], "500" in long["detail"]) == ("limit", True)


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=x", "limit=-1", "rows=-1", "profile=abc", "nope=1", "op=sort", "reason=bogus", "limit=501"],
)
def test_a_bad_query_is_a_422(client: TestClient, query: str) -> None:
    """The detail names the parameter or its value."""
    assert query.partition("=")[2][:3].strip("%") in judged(client.get(f"/v1/selections?{query}"), 422)["detail"]


@pytest.mark.parametrize("cursor", ["AAAA", "%25%25", "é", "WzEsMl0", "a" * 300, "bnVsbA"])
def test_a_cursor_that_nobody_gave_is_refused(client: TestClient, cursor: str) -> None:
    """Damaged, foreign, too long or of another type."""
    assert "cursor" in judged(client.get(f"/v1/selections?cursor={cursor}"), 422)["detail"]


def test_a_cursor_of_another_list_is_refused(client: TestClient) -> None:
    """It would silently skip rows."""
    for rows in (1, 2, 3):
        client.post("/v1/selections", json={**QUESTION, "shape": [rows, 8192]})
    cursor = client.get("/v1/selections?limit=1").json()["next"]
    assert client.get(f"/v1/selections?limit=1&cursor={cursor}").status_code == 200
    judged(client.get(f"/v1/selections?limit=1&cursor={cursor}&rows=1"), 422)


def test_a_full_queue_is_a_429(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is told to come back; what is known is answered all the same."""
    fresh(tmp_path)
    with serving(settings_for(tmp_path, queue_max=1)) as client:
        client.post("/v1/selections", json=QUESTION)
        monkeypatch.setattr("server.writer.Writer.waiting", 1)
        answer = client.post("/v1/selections", json={**QUESTION, "dtype": "float32"})
        assert answer.headers["retry-after"] == "1"
        judged(answer, 429)
        assert client.post("/v1/selections", json=QUESTION).status_code == 200


@pytest.fixture
def broken(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A service with a fault in it."""

    def fail(self: Asking, value: object) -> None:
        raise ZeroDivisionError("secret of the house")

    monkeypatch.setattr(Asking, "judge", fail)
    with serving(settings) as client:
        yield client


@pytest.mark.parametrize("path", ["/v1/selections", "/v1/selections:batch"])
def test_a_fault_is_a_500_that_tells_no_secret(broken: TestClient, path: str) -> None:
    """The traceback is in the log, not in the answer; the next request is served."""
    answer = broken.post(path, json=QUESTION if path.endswith("s") else {"items": [QUESTION]})
    document = judged(answer, 500) if path.endswith("s") else answer.json()["items"][0]["problem"]
    assert document["code"] == "internal"
    assert "secret" not in answer.text
    assert broken.get("/livez").status_code == 200


def test_a_fault_in_a_route_is_a_500(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Routes that FastAPI serves are no exception."""

    def fail(*args: object, **more: object) -> None:
        raise ZeroDivisionError("secret of the house")

    monkeypatch.setattr("server.store.Store.page", fail)
    answer = client.get("/v1/fits")
    judged(answer, 500)
    assert "secret" not in answer.text


def test_not_ready_is_a_503(client: TestClient) -> None:
    """A writer that has ended makes the service not ready, and says so."""
    stored = state(client).store.head().count
    state(client).store.writer.stop()
    assert "writer" in judged(client.get("/readyz"), 503)["detail"]
    judged(client.post("/v1/selections", json=QUESTION), 503)
    assert client.get("/livez").status_code == 200
    assert inner(client).state.rowsmith.store.head().count == stored
