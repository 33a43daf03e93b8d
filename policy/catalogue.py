"""What a decision asks of the outside: the kernels this release would run, and a source of their receipts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from attrs import frozen

from kernels.receipt import Receipt
from kernels.recipe import Recipe
from kernels.source import SourceIdentity, catalogue_digest, identity
from policy.profile import Profile

# Answers with the receipt of a recipe for a dtype, or None where there is none. It may compile and query a GPU.
ReceiptSource = Callable[[Recipe, str], Receipt | None]


@frozen(cache_hash=True)
class Catalogue:
    """The kernels this release would run: the digest of the whole, and the source identity of each."""

    digest: str
    identity: Callable[[Recipe, str], SourceIdentity]


@cache
def shipped_catalogue() -> Catalogue:
    """Return the catalogue of the files in this installation."""
    return Catalogue(catalogue_digest(), identity)


def recorded(profile: Profile) -> ReceiptSource:
    """Return a source that answers with the receipts the profile was calibrated with."""
    return lambda recipe, dtype: profile.recorded.get((recipe.id, dtype))
