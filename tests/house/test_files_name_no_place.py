"""No file that is or would be committed names a package registry or a folder of somebody's machine."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

REGISTRY = r"\b(?:(?:test\.)?pypi|files\.pythonhosted|registry\.npmjs|deb\.debian)\.(?:org|[a-z]+\.com)\b"
REGISTRY_OPTION = r"--(?:extra-index|index|find)-(?:url|links)[ =]"
DOWNLOAD = r"https?://\S+\.(?:whl|tar\.gz|tgz)\b"
FOLDER = r"(?<![\w.~})*-])/(?:home|root|work|Users)/\w"
PLACE = re.compile(f"{REGISTRY}|{REGISTRY_OPTION}|{DOWNLOAD}|{FOLDER}")


def committed_texts() -> list[tuple[str, str]]:
    """Name and text of every file that git tracks, or would with `git add .`; binary files are left out."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    texts = []
    for name in sorted(filter(None, listing.stdout.decode().split("\0"))):
        path = ROOT / name
        if path.is_file() and b"\0" not in (raw := path.read_bytes()):
            texts.append((name, raw.decode("utf-8", errors="replace")))
    return texts


def test_the_pattern_finds_places_and_leaves_routes_alone() -> None:
    """A place is an address to download from, or an absolute folder; a relative folder or a route is neither."""
    # In pieces, so that this file passes its own test.
    for place in ["py" + "pi.org/p", "--index-" + "url x", "http" + "://a.example/b-1.whl", "cd /" + "home/ann/x"]:
        assert PLACE.search(place), place
    for plain in ["GET /v1/home/a", "docs/home/a.md", "https://www.rfc-editor.org/rfc/rfc9457", "${root}/home/a"]:
        assert not PLACE.search(plain), plain


def test_no_committed_text_names_a_registry_or_a_machines_folder() -> None:
    """A clone works anywhere: where packages come from is the machine's configuration, not the project's."""
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in committed_texts()
        for number, line in enumerate(text.splitlines(), 1)
        if PLACE.search(line)
    ]
    assert not found, "\n".join(found)
