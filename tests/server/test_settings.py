"""Settings come from the environment, are documented, and listen on loopback only."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from server.settings import Settings
from tests.server.service import ROOT


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "", "127.0.0.1.example.org"])
def test_another_address_than_loopback_is_refused(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """Listening elsewhere needs tokens, and there are none."""
    monkeypatch.setenv("ROWSMITH_HOST", host)
    with pytest.raises(ValidationError, match="loopback"):
        Settings()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_is_accepted(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """By number or by name."""
    monkeypatch.setenv("ROWSMITH_HOST", host)
    assert Settings().host == host


@pytest.mark.parametrize("url", ["", "rowsmith.db", "sqlite://", "sqlite:///:memory:", "postgresql://u:secret@h/d"])
def test_another_database_than_a_sqlite_file_is_refused(url: str) -> None:
    """The message shows no password."""
    with pytest.raises(ValidationError, match="sqlite:///PATH") as caught:
        Settings(database_url=url)
    assert "secret" not in caught.value.errors()[0]["msg"]


def test_the_default_database_lies_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Never in the folder the service happens to be started from."""
    monkeypatch.delenv("ROWSMITH_DATABASE_URL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Settings().database_path == tmp_path / "rowsmith" / "rowsmith.db"


def test_every_setting_is_documented_with_its_default() -> None:
    """docs/settings.md has one row a setting, and no other."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(ROWSMITH_[A-Z_]+)` \| `?([^|`]*)`? \|", text, re.MULTILINE))
    fields = Settings.model_fields
    assert set(rows) == {f"ROWSMITH_{name.upper()}" for name in fields}
    for name, field in fields.items():
        if field.default_factory is None:
            assert rows[f"ROWSMITH_{name.upper()}"] == str(field.default), name


def test_every_variable_that_is_read_is_documented() -> None:
    """Those outside the service's settings too."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rooms = ("kernels", "features", "policy", "calibration", "server", "rowsmith")
    code = "".join(file.read_text(encoding="utf-8") for room in rooms for file in (ROOT / room).rglob("*.py"))
    read = set(re.findall(r'environ\.get\("([A-Z_]+)"', code))
    assert read >= {"ROWSMITH_CACHE_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME"}
    assert [name for name in read if name not in text] == []


def test_the_command_fails_in_one_line(tmp_path: Path) -> None:
    """No traceback: what is wrong, and which command mends it."""
    environment = {"XDG_DATA_HOME": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "rowsmith", "serve", "--port", "0"]
    child = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert child.returncode == 1
    (line,) = child.stderr.splitlines()
    assert line.startswith("error: there is no database at")
    assert "rowsmith db upgrade" in line
