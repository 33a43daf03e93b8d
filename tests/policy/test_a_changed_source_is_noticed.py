"""One byte of one template changes the identity of its kernels, and receipts of the old ones no longer match."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.recipe import Recipe
from kernels.recipes import recipe
from kernels.source import SourceIdentity
from policy.catalogue import Catalogue, shipped_catalogue
from tests.policy.cases import PROVED_AT, PROVED_IDS, ask, profile_priced_by

ROOT = Path(__file__).parents[2]
PROBE = """
from kernels.recipes import recipe
from kernels.source import catalogue_digest, identity
for name in ("scan.original", "scan.cub128", "scan.split2048"):
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
    [
        ("scan_cub.cu", (False, True, False)),
        ("scan_original.cu", (True, False, False)),
        ("scan_split.cu", (False, False, True)),
        ("scan_rows.cuh", (True, False, True)),
        ("rowio.cuh", (True, True, True)),
    ],
)
def test_one_byte_changes_the_kernels_it_reaches(tmp_path: Path, changed: str, differ: tuple[bool, ...]) -> None:
    """A template its own kernels, a header those of every template that includes it; the options stay."""
    *kernels, whole = identities_with(tmp_path, changed)
    now = shipped_catalogue()
    ours = [now.identity(recipe(name), "float16") for name in ("scan.original", "scan.cub128", "scan.split2048")]
    assert tuple(their[0] != our.source for their, our in zip(kernels, ours, strict=True)) == differ
    assert [their[1] for their in kernels] == [our.options for our in ours]
    assert whole[0] != now.digest


@pytest.mark.parametrize(("template", "line"), [("scan_cub.cu", 1), ("scan_split.cu", 2)])
def test_a_recipe_with_one_byte_changed_no_longer_matches_its_receipt(tmp_path: Path, template: str, line: int) -> None:
    """The template's recipes are excluded, those of others still compete, and without them the original is kept."""
    changed = identities_with(tmp_path, template)
    now = shipped_catalogue()

    def identity(row: Recipe, dtype: str) -> SourceIdentity:
        return SourceIdentity(*changed[line]) if row.template == template else now.identity(row, dtype)

    catalogue = Catalogue(changed[-1][0], identity)
    chosen = ask(*PROVED_AT, catalogue=catalogue, profile=profile_priced_by("scan/6", 0.5, 30.0, 0.01))
    for recipe_id in PROVED_IDS:
        found = chosen.candidate(recipe_id).excluded
        if recipe(recipe_id).template != template:
            assert found is None
            continue
        assert found is not None
        assert found.code == "source_changed"
        assert changed[line][0][:12] in found.fact
    assert recipe(chosen.decision.recipe).template != template
    assert chosen.provenance["catalogue"] == changed[-1][0]


def test_where_every_priced_recipe_was_changed_the_original_is_kept(tmp_path: Path) -> None:
    """scan/1 prices the recipes of one template alone."""
    changed = identities_with(tmp_path, "scan_cub.cu")
    now = shipped_catalogue()

    def identity(row: Recipe, dtype: str) -> SourceIdentity:
        return SourceIdentity(*changed[1]) if row.template == "scan_cub.cu" else now.identity(row, dtype)

    chosen = ask(128, 8192, catalogue=Catalogue(changed[-1][0], identity)).decision
    assert (chosen.recipe, chosen.reason) == ("scan.original", "no_eligible_recipe")


def test_another_original_than_the_profiles_is_not_priced(tmp_path: Path) -> None:
    """Its coefficients describe a kernel that would not run."""
    changed = identities_with(tmp_path, "scan_original.cu")
    now = shipped_catalogue()

    def identity(row: Recipe, dtype: str) -> SourceIdentity:
        return SourceIdentity(*changed[0]) if row.template == "scan_original.cu" else now.identity(row, dtype)

    chosen = ask(128, 8192, catalogue=Catalogue(changed[-1][0], identity)).decision
    assert (chosen.recipe, chosen.reason) == ("scan.original", "original_changed")
    assert "another source" in chosen.sentence
