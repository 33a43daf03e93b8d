"""One byte of one template changes the identity of its kernels, and receipts of the old ones no longer match."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.recipes import Recipe, recipe
from kernels.source import SourceIdentity
from policy.catalogue import Catalogue, shipped_catalogue
from tests.policy.cases import SCAN_IDS, ask

ROOT = Path(__file__).parents[2]
PROBE = """
from kernels.recipes import recipe
from kernels.source import catalogue_digest, identity
for name in ("scan.original", "scan.cub128"):
    print(identity(recipe(name), "float16").source, identity(recipe(name), "float16").options)
print(catalogue_digest(), "-")
"""


def identities_with(tmp_path: Path, changed: str) -> list[list[str]]:
    """Return the digests that a copy of the kernels gives after one byte of one device file was changed."""
    shutil.copytree(ROOT / "kernels", tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "kernels" / "device" / changed
    data = bytearray(path.read_bytes())
    data[3] ^= 1  # in the first comment
    path.write_bytes(data)
    run = subprocess.run([sys.executable, "-c", PROBE], cwd=tmp_path, capture_output=True, text=True, check=True)
    return [line.split() for line in run.stdout.splitlines()]


@pytest.mark.parametrize(
    ("changed", "differ"),
    [("scan_cub.cu", (False, True)), ("scan_original.cu", (True, False)), ("rowio.cuh", (True, True))],
)
def test_one_byte_changes_the_kernels_it_reaches(tmp_path: Path, changed: str, differ: tuple[bool, bool]) -> None:
    """A template its own kernels, a header those of every template that includes it; the options stay."""
    original, cub, whole = identities_with(tmp_path, changed)
    now = shipped_catalogue()
    ours = [now.identity(recipe(name), "float16") for name in ("scan.original", "scan.cub128")]
    assert (original[0] != ours[0].source, cub[0] != ours[1].source) == differ
    assert (original[1], cub[1]) == (ours[0].options, ours[1].options)
    assert whole[0] != now.digest


def test_a_recipe_with_one_byte_changed_no_longer_matches_its_receipt(tmp_path: Path) -> None:
    """The template's recipe is excluded and the original, untouched, is kept."""
    changed = identities_with(tmp_path, "scan_cub.cu")
    now = shipped_catalogue()

    def identity(row: Recipe, dtype: str) -> SourceIdentity:
        return SourceIdentity(*changed[1]) if row.template == "scan_cub.cu" else now.identity(row, dtype)

    chosen = ask(128, 8192, catalogue=Catalogue(changed[2][0], identity))
    for recipe_id in SCAN_IDS:
        found = chosen.candidate(recipe_id).excluded
        assert found is not None
        assert found.code == "source_changed"
        assert changed[1][0][:12] in found.fact
    assert chosen.decision.reason == "no_eligible_recipe"
    assert chosen.provenance["catalogue"] == changed[2][0]


def test_another_original_than_the_profiles_is_not_priced(tmp_path: Path) -> None:
    """Its coefficients describe a kernel that would not run."""
    changed = identities_with(tmp_path, "scan_original.cu")
    now = shipped_catalogue()

    def identity(row: Recipe, dtype: str) -> SourceIdentity:
        return SourceIdentity(*changed[0]) if row.template == "scan_original.cu" else now.identity(row, dtype)

    chosen = ask(128, 8192, catalogue=Catalogue(changed[2][0], identity)).decision
    assert (chosen.recipe, chosen.reason) == ("scan.original", "original_changed")
    assert "another source" in chosen.sentence
