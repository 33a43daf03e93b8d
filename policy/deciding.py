"""The order of the steps. The reason of a decision is that of the first step that decides, for one geometry or many."""

from __future__ import annotations

from attrs import frozen

from features.claim import Truth
from policy.catalogue import Catalogue
from policy.profile import Fit, Profile
from policy.standing import Standing

# A recipe must be predicted to save more than 5 %: below that the two are not told apart by a model whose residuals
# are of that size. From the first research report; compared in float64, strictly.
ADMISSION = 0.95


@frozen(eq=False)
class Findings:
    """What the steps found: each a bool, or an array of them for many geometries."""

    none_proved: Truth
    other_target: Truth
    no_fit: Truth
    original_changed: Truth
    none_clean: Truth
    original_outside: Truth
    none_eligible: Truth
    admitted: Truth


def steps(found: Findings) -> tuple[tuple[str, Truth], ...]:
    """Return the reason codes of a decision with whether each step decides, in the order of the steps; the last does."""
    return (
        ("no_proved_recipe", found.none_proved),
        ("target_mismatch", found.other_target),
        ("no_fit", found.no_fit),
        ("original_changed", found.original_changed),
        ("no_eligible_recipe", found.none_clean),  # resources: every receipt excludes
        ("outside_calibrated_domain", found.original_outside),
        ("no_eligible_recipe", found.none_eligible),  # domain: no clean recipe lies inside, or is priced, or earned
        ("admitted", found.admitted),
        ("not_below_threshold", True),
    )


def covers(profile: Profile, fit: Fit | None, original: Standing, dtype: str) -> bool:
    """Tell whether the profile prices this program and dtype and was calibrated with this original."""
    return (
        fit is not None
        and fit.block(original.recipe.role, dtype) is not None
        and (original.recipe.id, dtype) in profile.recorded
    )


def changed(profile: Profile, original: Standing, dtype: str, catalogue: Catalogue) -> bool:
    """Tell whether the original is compiled from another source or with other options than the profile's was."""
    before = profile.recorded.get((original.recipe.id, dtype))
    now = catalogue.identity(original.recipe, dtype)
    return before is not None and (before.source, before.options) != (now.source, now.options)
