"""Many clients that ask the same new questions at once all get the same answers, and the service goes on."""

import asyncio
from pathlib import Path

import httpx

from server.settings import Settings
from tests.server.service import QUESTION, fresh, opened, process, settings_for

CLIENTS = 64
SHAPES = [[rows, width] for rows in (1, 3, 200, 5000) for width in (1024, 3584, 8192)]


async def ask_all(address: str) -> list[list[httpx.Response]]:
    """Let each client ask every shape in order, all clients at once."""

    async def client() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=address, timeout=60) as http:
            return [await http.post("/v1/selections", json={**QUESTION, "shape": shape}) for shape in SHAPES]

    return await asyncio.gather(*(client() for _ in range(CLIENTS)))


def test_the_same_new_shapes_from_64_clients(tmp_path: Path) -> None:
    """Each shape is created once, every client has the same bytes, and the chain holds."""
    fresh(tmp_path)
    with process(tmp_path) as (_, address):
        answers = asyncio.run(ask_all(address))
        assert httpx.get(f"{address}/readyz").status_code == 200
    for shape, column in zip(SHAPES, zip(*answers, strict=True), strict=True):
        assert {answer.status_code for answer in column} <= {200, 201}, shape
        assert [answer.status_code for answer in column].count(201) == 1, shape
        assert len({answer.content for answer in column}) == 1, shape
    assert_whole(settings_for(tmp_path), len(SHAPES))


def assert_whole(settings: Settings, selections: int) -> None:
    """The chain is unbroken and holds this many selections."""
    with opened(settings) as store:
        assert store.first_break() is None
        assert len(store.page("selection", 1000).rows) == selections
