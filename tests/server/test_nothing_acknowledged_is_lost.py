"""kill -9 in the middle of concurrent questions: what was answered is stored, what is stored is whole."""

import asyncio
import os
import signal
from pathlib import Path

import httpx

from tests.server.service import QUESTION, fresh, opened, process, serving, settings_for


async def ask_until_killed(address: str, pid: int) -> dict[str, bytes]:
    """Ask new shapes from 16 clients, kill the server after a while, and return every answer that arrived."""
    answered: dict[str, bytes] = {}

    async def client(number: int) -> None:
        async with httpx.AsyncClient(base_url=address, timeout=20) as http:
            for rows in range(1, 100_000):
                question = {**QUESTION, "shape": [rows * 100 + number, 8192]}
                try:
                    answer = await http.post("/v1/selections", json=question)
                except httpx.TransportError:
                    return
                assert answer.status_code == 201, answer.text
                answered[answer.json()["id"]] = answer.content
                if len(answered) == 400:
                    os.kill(pid, signal.SIGKILL)

    await asyncio.gather(*(client(number) for number in range(16)))
    return answered


def test_every_answer_survives_kill_9(tmp_path: Path) -> None:
    """A 201 means durable: it is there after the kill, with the same bytes, and the chain is unbroken."""
    fresh(tmp_path)
    with process(tmp_path) as (child, address):
        answered = asyncio.run(ask_until_killed(address, child.pid))
        assert child.wait() == -signal.SIGKILL
    assert len(answered) >= 400
    settings = settings_for(tmp_path)
    with opened(settings) as store:
        assert store.first_break() is None
    with serving(settings) as client:
        for name, body in answered.items():
            assert client.get(f"/v1/selections/{name}").content == body
