"""A fresh database, and a client of a service on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from server.settings import Settings
from tests.server.service import fresh, serving


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a database that was just made."""
    return fresh(tmp_path)


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """A client of a service with the made-up profile."""
    with serving(settings) as found:
        yield found
