"""Serves what ships with the release on a database of its own: python -m benchmarks.served FILE PORT."""

from __future__ import annotations

import sys

from server import database
from server.app import create_app
from server.live import no_gpu
from server.serving import serve
from server.settings import Settings

if __name__ == "__main__":
    settings = Settings(database_url=f"sqlite:///{sys.argv[1]}", port=int(sys.argv[2]), log_level="warning")
    database.upgrade(settings)
    serve(settings, create_app(settings, live=no_gpu))
