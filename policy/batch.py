"""A decision for each of many geometries at once, as arrays, by the proofs, features, scores and steps of `select`."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from features.proof import candidates, legal, recipes_for
from features.schema import point
from features.workloads import Workloads
from kernels.recipe import Recipe
from kernels.target import Target
from policy.catalogue import Catalogue, ReceiptSource, shipped_catalogue
from policy.deciding import ADMISSION, Findings, changed, covers, steps
from policy.profile import Profile
from policy.scoring import inside, score
from policy.standing import Standing, standing

Flags = NDArray[np.bool_]


@frozen(eq=False)
class Choices:
    """The outcome for every geometry, in the order asked.

    Attributes
    ----------
    recipes : the recipes of the program, the original first.
    chosen : int64 (geometries,), an index into `recipes`.
    reasons : text (geometries,), the reason codes.
    scores_us : float64 (recipes, geometries), NaN where a recipe was not scored.
    """

    recipes: tuple[Recipe, ...]
    chosen: NDArray[np.int64]
    reasons: NDArray[np.str_]
    scores_us: NDArray[np.float64]


def select_batch(
    works: Workloads,
    target: Target,
    profile: Profile,
    receipts: ReceiptSource,
    *,
    catalogue: Catalogue | None = None,
) -> Choices:
    """Choose a recipe for each geometry; bit for bit what `select` chooses, scores and gives as reason.

    Parameters
    ----------
    receipts : asked once for each recipe that is legal for any of the geometries, in catalogue order.

    Raises
    ------
    ProgramError : no kernel runs the program.
    PolicyError : the original cannot be compiled.
    """
    catalogue = catalogue or shipped_catalogue()
    recipes = recipes_for(works.program)
    fit = profile.fit(recipes[0].family)
    differences = profile.target.differences(target)
    usable = None if differences else fit
    proved = np.array([_spread(legal(works, recipe), len(works)) for recipe in recipes])
    if not proved[0].all():
        candidates(works.at(int(proved[0].argmin())))  # raises, with the fact that failed
    standings = [
        standing(recipe, works.dtype, target, profile, usable, receipts, catalogue) if proved[i].any() else None
        for i, recipe in enumerate(recipes)
    ]
    clean, eligible = np.zeros_like(proved), np.zeros_like(proved)
    scores = np.full(proved.shape, np.nan)
    for i, stands in enumerate(standings):
        if stands is not None:
            clean[i] = proved[i] & (stands.excluded is None)
            scores[i] = _scores(works, target, stands, clean[i])
            eligible[i] = ~np.isnan(scores[i]) & (stands.unearned is None)
    best = _best(recipes, scores, eligible)
    best_us = np.where(eligible[1:].any(axis=0), np.take_along_axis(scores, best[None], axis=0)[0], np.nan)
    found = Findings(
        none_proved=~proved[1:].any(axis=0),
        other_target=bool(differences),
        no_fit=not covers(profile, fit, recipes[0], works.dtype),
        original_changed=changed(profile, recipes[0], works.dtype, catalogue),
        original_unknown=_is_unknown(standings[0]),
        none_clean=~clean[1:].any(axis=0),
        original_outside=np.isnan(scores[0]),
        none_eligible=~eligible[1:].any(axis=0),
        admitted=best_us < ADMISSION * scores[0],
    )
    reasons = _first(steps(found), len(works))
    return Choices(recipes, np.where(reasons == "admitted", best, 0), reasons, scores)


def _is_unknown(original: Standing | None) -> bool:
    return original is not None and original.unpriced is not None and original.unpriced.code == "resource_unknown"


def _scores(works: Workloads, target: Target, stands: Standing, wanted: Flags) -> NDArray[np.float64]:
    """Return the scores of one recipe, NaN where it is not wanted, not priced or outside its calibrated domain."""
    if stands.pricing is None or not wanted.any():
        return np.full(len(works), np.nan)
    capacity = None if stands.receipt is None else stands.receipt.capacity
    at = point(works, stands.recipe, capacity, target)
    values = [feature.of(at) for feature in stands.pricing.features]
    block = stands.pricing.block
    scores: NDArray[np.float64] = np.where(wanted & inside(values, block), score(values, block.coefficients), np.nan)
    return scores


def _best(recipes: tuple[Recipe, ...], scores: NDArray[np.float64], eligible: Flags) -> NDArray[np.int64]:
    """Return the index of the lowest-scored eligible recipe; of equal ones, that with the smaller id."""
    by_id = sorted(range(1, len(recipes)), key=lambda i: recipes[i].id)
    if not by_id:
        return np.zeros(scores.shape[1], dtype=np.int64)
    ranked = np.where(eligible[by_id], scores[by_id], np.inf)
    best: NDArray[np.int64] = np.array(by_id)[ranked.argmin(axis=0)]  # the first of equal ones
    return best


def _first(ordered: tuple[tuple[str, Any], ...], count: int) -> NDArray[np.str_]:
    """Return for each geometry the reason of the first step that decides."""
    codes = np.array([reason for reason, _ in ordered])
    decides = np.array([_spread(flag, count) for _, flag in ordered])
    reasons: NDArray[np.str_] = codes[decides.argmax(axis=0)]
    return reasons


def _spread(flag: Any, count: int) -> Flags:
    return np.broadcast_to(np.asarray(flag, dtype=np.bool_), (count,))
