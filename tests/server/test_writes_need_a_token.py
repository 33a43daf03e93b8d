"""Deny by default: whatever is not reading or asking is refused, on every route there is and on those to come."""

import pytest
from fastapi import APIRouter

from server.access import ASKING, READING
from server.app import all_routes
from server.kinds import KINDS
from tests.server.service import QUESTION, TestClient, inner

ADDRESSES = sorted({route.path for route in all_routes()})
WRITES = ["PUT", "PATCH", "DELETE", "POST"]


@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.parametrize("method", WRITES)
def test_no_route_takes_a_write(client: TestClient, method: str, path: str) -> None:
    """405, or 401 where a route would take it; asking alone is answered otherwise."""
    client.post("/v1/selections", json=QUESTION)
    head = client.get("/v1/chain").json()
    address = path.replace("{digest}", "0" * 64).replace("{selection_id}", "0" * 64).replace("{seq}", "1")
    answer = client.request(method, address, json={})
    asks = method == "POST" and path in ASKING
    assert answer.status_code in ((404, 422) if asks else (401, 405)), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("/v1/chain").json() == head


def test_every_route_is_for_reading_or_asking() -> None:
    """This release has no route that changes what is stored."""
    for route in all_routes():
        others = set(route.methods or ()) - READING
        assert not others or (others == {"POST"} and route.path in ASKING), route.path


def test_asking_names_only_routes_that_there_are() -> None:
    """A renamed route does not leave a hole behind."""
    assert set(ADDRESSES) >= ASKING
    assert {f"/v1/{kind.path}" for kind in KINDS.values()} <= set(ADDRESSES)


@pytest.mark.parametrize("method", WRITES)
def test_a_route_added_later_is_refused_until_it_is_listed(client: TestClient, method: str) -> None:
    """The dependency belongs to the application, not to a route."""
    router = APIRouter()

    @router.api_route("/v1/new-thing", methods=[method])
    def change() -> str:
        raise AssertionError("was let in")

    inner(client).include_router(router)
    answer = client.request(method, "/v1/new-thing", headers={"authorization": "Bearer anything"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
