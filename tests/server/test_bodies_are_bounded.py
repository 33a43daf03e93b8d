"""A body is judged by its headers, counted as it arrives, and not waited for without end."""

import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.server.service import QUESTION, TestClient, fresh, process, serving, settings_for

JSON = {"content-type": "application/json"}
PATHS = ["/v1/selections", "/v1/selections:batch"]


@pytest.mark.parametrize("path", PATHS)
def test_a_body_over_the_cap_is_refused(client: TestClient, path: str) -> None:
    """413 from its announced length, and the cap is named."""
    answer = client.post(path, content=b" " * 1_048_577, headers=JSON)
    assert answer.status_code == 413
    assert "bytes" in answer.json()["detail"]


@pytest.mark.parametrize("path", PATHS)
def test_a_chunked_body_is_counted(client: TestClient, path: str) -> None:
    """413 without an announced length too."""

    def chunks() -> Iterator[bytes]:
        for _ in range(2000):
            yield b" " * 1000

    assert client.post(path, content=chunks(), headers=JSON).status_code == 413


def test_a_chunked_body_within_the_cap_is_read(client: TestClient) -> None:
    """The pieces are joined."""

    def chunks() -> Iterator[bytes]:
        yield b'{"op":"scan","shape":'
        yield b'[128,8192],"dtype":"float16"}'

    assert client.post("/v1/selections", content=chunks(), headers=JSON).status_code == 201


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, identity"])
def test_compressed_bodies_are_refused(client: TestClient, path: str, encoding: str) -> None:
    """415: nothing is inflated."""
    answer = client.post(path, content=zlib.compress(b" " * 9_999), headers={**JSON, "content-encoding": encoding})
    assert answer.status_code == 415
    assert encoding in answer.json()["detail"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "media_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json; charset=latin-1"],
)
def test_other_media_types_are_refused(client: TestClient, path: str, media_type: str) -> None:
    """415 with the header to send."""
    answer = client.post(path, content=b"{}", headers={"content-type": media_type})
    assert answer.status_code == 415
    assert "content-type: application/json" in answer.json()["detail"]


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"'])
def test_the_charset_may_be_named(client: TestClient, media_type: str) -> None:
    """UTF-8 is what JSON is in."""
    body = b'{"op":"scan","shape":[128,8192],"dtype":"float16"}'
    assert client.post("/v1/selections", content=body, headers={"content-type": media_type}).status_code == 201


def test_a_body_that_does_not_arrive_is_given_up(tmp_path: Path) -> None:
    """408 by the real server, and the connection is closed."""
    fresh(tmp_path)
    with process(tmp_path, ROWSMITH_BODY_TIMEOUT_S="0.3") as (_, address):
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port), timeout=20) as link:
            lines = ["POST /v1/selections HTTP/1.1", "host: x", "content-type: application/json", "content-length: 50"]
            link.sendall("\r\n".join([*lines, "", "{"]).encode())
            started, answer = time.monotonic(), b""
            while part := link.recv(65536):
                answer += part
            assert time.monotonic() - started < 15
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"application/problem+json" in answer


def test_an_endless_body_is_cut_off(tmp_path: Path) -> None:
    """413 by the real server while the client still sends."""
    fresh(tmp_path)
    with process(tmp_path) as (_, address):

        def endless() -> Iterator[bytes]:
            while True:
                yield b" " * 65_536

        with suppress(httpx.TransportError):  # the server may close before the client has finished writing
            assert httpx.post(f"{address}/v1/selections", content=endless(), headers=JSON).status_code == 413
        assert httpx.post(f"{address}/v1/selections", json=QUESTION).status_code == 201


def test_the_caps_are_settings(tmp_path: Path) -> None:
    """A smaller cap refuses what the default takes."""
    fresh(tmp_path)
    with serving(settings_for(tmp_path, body_max_bytes=1024)) as client:
        question = {**QUESTION, "shape": [1] * 64, "profile": "x" * 900}
        assert client.post("/v1/selections", json=question).status_code == 413
