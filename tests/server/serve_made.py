"""Serves the made-up profile in a process of its own: python -m tests.server.serve_made FILE."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from server import serving
from server.app import create_app
from server.live import no_gpu
from tests.server.service import only_made, settings_for


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    settings = settings_for(Path(sys.argv[1]).parent, port=free_port(), log_level="warning")
    print(f"http://{settings.host}:{settings.port}", flush=True)
    serving.serve(settings, create_app(settings, live=no_gpu, shipped=only_made))
