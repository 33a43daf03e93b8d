"""Every setting of the service, from `ROWSMITH_*` environment variables; docs/settings.md lists them."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError


def default_database_url() -> str:
    """Return the URL of `rowsmith.db` in the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return f"sqlite:///{Path(base) / 'rowsmith' / 'rowsmith.db'}"


class Settings(BaseSettings):
    """What may differ between two installations. Read once, at the edge, and handed down."""

    model_config = SettingsConfigDict(env_prefix="ROWSMITH_", frozen=True, extra="ignore")

    host: Annotated[str, Field(description="Address to listen on; loopback only in this release.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535, description="TCP port; 0 lets the system choose.")] = 8080
    database_url: Annotated[str, Field(description="SQLAlchemy URL of the database; `sqlite:///PATH`.")] = Field(
        default_factory=default_database_url
    )
    body_max_bytes: Annotated[int, Field(ge=1_024, description="Largest body of one question.")] = 65_536
    batch_body_max_bytes: Annotated[int, Field(ge=1_024, description="Largest body of a batch.")] = 1_048_576
    batch_max_items: Annotated[int, Field(ge=1, le=10_000, description="Most questions in a batch.")] = 256
    body_timeout_s: Annotated[float, Field(gt=0, description="Longest wait for the rest of a body.")] = 10.0
    queue_max: Annotated[int, Field(ge=1, description="Selections waiting to be stored before 429 is answered.")] = (
        4_096
    )
    group_max: Annotated[int, Field(ge=1, le=1_024, description="Most submissions in one transaction.")] = 256
    answer_cache_entries: Annotated[int, Field(ge=0, description="Answers kept in memory, about 8 KB each.")] = 4_096
    page_max: Annotated[int, Field(ge=1, le=10_000, description="Most items in one page of a list.")] = 500
    busy_timeout_ms: Annotated[int, Field(ge=0, description="Wait for another process's write.")] = 5_000
    disk_free_min_bytes: Annotated[int, Field(ge=0, description="Free bytes below which /readyz says not ready.")] = (
        16_777_216
    )
    import_bundled: Annotated[bool, Field(description="Import the packets shipped with the release at start.")] = True
    log_level: Annotated[Literal["debug", "info", "warning", "error"], Field(description="Least severity logged.")] = (
        "info"
    )

    @field_validator("host")
    @classmethod
    def _loopback(cls, host: str) -> str:
        if not is_loopback(host):
            message = (
                f"{host} is not a loopback address, and listening elsewhere needs access tokens, which this release "
                "does not have; use 127.0.0.1 or ::1 and a tunnel or reverse proxy"
            )
            raise ValueError(message)
        return host

    @field_validator("database_url")
    @classmethod
    def _sqlite_file(cls, text: str) -> str:
        try:
            url = make_url(text)
        except ArgumentError as error:
            raise ValueError("is not a database URL; use sqlite:///PATH") from error
        if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
            raise ValueError(f"{url.render_as_string()} is not a SQLite file; use sqlite:///PATH")
        return text

    @property
    def database_path(self) -> Path:
        """The SQLite file."""
        name = make_url(self.database_url).database
        assert name is not None
        return Path(name)


def is_loopback(host: str) -> bool:
    """Return whether an address or name can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
