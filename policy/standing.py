"""A recipe's standing: what the decision knows of it before any geometry. One request and a batch share it."""

from __future__ import annotations

from functools import lru_cache

from attrs import frozen

from features.errors import Refused
from features.schema import Feature
from features.schemas import SCHEMAS
from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL, Recipe
from kernels.target import Target
from policy.catalogue import Catalogue, ReceiptSource
from policy.errors import PolicyError
from policy.exclusion import exclusion
from policy.profile import Block, Fit, Profile


@frozen(cache_hash=True)
class Pricing:
    """The columns of a role and the block that prices them."""

    features: tuple[Feature, ...]
    block: Block


@frozen
class Standing:
    """One recipe of a program and dtype, on one target, under one profile.

    `excluded` is what its receipt says against it, `unpriced` why the fit does not price it, `unearned` why it may not
    be admitted whatever its score. `pricing` is None where no score may be given.
    """

    recipe: Recipe
    receipt: Receipt | None
    excluded: Refused | None
    unpriced: Refused | None
    pricing: Pricing | None
    unearned: Refused | None


def standing(
    recipe: Recipe,
    dtype: str,
    target: Target,
    profile: Profile,
    fit: Fit | None,
    receipts: ReceiptSource,
    catalogue: Catalogue,
) -> Standing:
    """Ask for the receipt of a recipe, once, and judge it. `fit` is None where no score may be given.

    Raises
    ------
    PolicyError : the original could not be compiled: without it there is nothing to keep.
    """
    return _judged(recipe, dtype, receipts(recipe, dtype), target, profile, fit, catalogue)


@lru_cache(maxsize=4096)  # receipts are few; targets come from requests, so the cache is bounded
def _judged(
    recipe: Recipe,
    dtype: str,
    receipt: Receipt | None,
    target: Target,
    profile: Profile,
    fit: Fit | None,
    catalogue: Catalogue,
) -> Standing:
    excluded = unpriced = unearned = None
    if recipe.role != ORIGINAL:
        calibrated = profile.recorded.get((recipe.id, dtype))
        excluded = exclusion(recipe, dtype, receipt, calibrated, catalogue.identity(recipe, dtype), target)
    elif receipt is not None and receipt.failure is not None:
        raise PolicyError(f"{recipe.id} for {dtype} cannot be compiled ({receipt.failure}); run rowsmith doctor")
    pricing = None
    if fit is not None:
        unpriced = _unpriced(recipe, dtype, receipt, fit)
        pricing = None if unpriced is not None else _pricing(recipe, dtype, fit)
    if recipe.experimental and recipe.id not in profile.earned:
        fact = f"{recipe.id} is experimental and profile {profile.name} has not earned it"
        unearned = Refused("experimental_not_earned", fact)
    return Standing(recipe, receipt, excluded, unpriced, pricing, unearned)


def _unpriced(recipe: Recipe, dtype: str, receipt: Receipt | None, fit: Fit) -> Refused | None:
    """Return why a fit does not price a recipe. A capacity that a schema asks for is known of every clean receipt."""
    if fit.block(recipe.role, dtype) is None:
        return Refused("no_fit", f"the profile's fit has no coefficients for {recipe.id} in {dtype}")
    needed = recipe.role in SCHEMAS[fit.feature_schema].needs_capacity
    if needed and (receipt is None or (receipt.capacity or 0) < 1):
        return Refused(
            "resource_unknown", f"{fit.feature_schema} asks for the capacity of {recipe.id}, which is unknown"
        )
    return None


def _pricing(recipe: Recipe, dtype: str, fit: Fit) -> Pricing | None:
    block = fit.block(recipe.role, dtype)
    return None if block is None else Pricing(SCHEMAS[fit.feature_schema].roles[recipe.role], block)
