"""On a full disk a new selection is a 507 and what is stored is still answered; with space, all works again."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from server import database
from server.errors import ServerError
from tests.server.service import QUESTION, fresh, opened, serving, settings_for

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to mount a small disk")


def question(rows: int) -> dict[str, object]:
    """Return a question of its own."""
    return {**QUESTION, "shape": [rows, 8192]}


def test_a_full_disk_is_a_507_and_recovers(small_disk: Path) -> None:
    """Known answers go on; after space was freed, so do new ones, and the chain is whole."""
    ballast = small_disk / "ballast"  # more than half: what the log holds is written again into the file
    ballast.write_bytes(bytes(1_100_000))
    settings = fresh(small_disk)
    with serving(settings) as client:
        stored, rows = {}, 0
        while True:
            rows += 1
            answer = client.post("/v1/selections", json=question(rows))
            if answer.status_code != 201:
                break
            stored[rows] = answer.content
        assert answer.status_code == 507, answer.text
        assert "free space" in answer.json()["detail"]
        assert len(stored) > 10
        for known, content in stored.items():
            again = client.post("/v1/selections", json={**question(known), "regime": "hot"})
            assert (again.status_code, again.content) == (200, content)
        assert client.get("/readyz").status_code == 503
        ballast.unlink()
        assert client.post("/v1/selections", json=question(rows)).status_code == 201
    with opened(settings) as store:
        assert store.first_break() is None
        assert len(store.page("selection", 1000).rows) == len(stored) + 1


def fill(ballast: Path) -> None:
    """Write until nothing fits."""
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def test_an_upgrade_on_a_full_disk_is_a_clear_error(small_disk: Path) -> None:
    """And it works once there is space: nothing half made is left."""
    ballast = small_disk / "ballast"
    fill(ballast)
    settings = settings_for(small_disk)
    with pytest.raises(ServerError, match="free space"):
        database.upgrade(settings)
    ballast.unlink()
    assert database.upgrade(settings) == database.head_revision()
