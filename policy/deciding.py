"""The order of the steps. The reason of a decision is that of the first step that decides, for one geometry or many."""

from __future__ import annotations

from attrs import frozen

from features.claim import Truth
from features.schema import Number
from kernels.recipe import Recipe
from policy.catalogue import Catalogue
from policy.profile import Fit, Profile

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
    original_unknown: Truth
    none_clean: Truth
    original_outside: Truth
    none_eligible: Truth
    admitted: Truth


def steps(found: Findings) -> tuple[tuple[str, Truth], ...]:
    """Return the reason codes of a decision with whether each decides, in the order of the steps; the last does."""
    return (
        ("no_proved_recipe", found.none_proved),
        ("target_mismatch", found.other_target),
        ("no_fit", found.no_fit),
        ("original_changed", found.original_changed),
        ("original_unknown", found.original_unknown),
        ("no_eligible_recipe", found.none_clean),  # resources: every receipt excludes
        ("outside_calibrated_domain", found.original_outside),
        ("no_eligible_recipe", found.none_eligible),  # domain: no clean recipe lies inside, or is priced, or earned
        ("admitted", found.admitted),
        ("not_below_threshold", True),
    )


def admits(best_us: Number, original_us: Number) -> Truth:
    """Tell whether a recipe's score lies strictly below 95 % of the original's; never where one was not scored."""
    return best_us is not None and original_us is not None and best_us < ADMISSION * original_us


def covers(profile: Profile, fit: Fit | None, original: Recipe, dtype: str) -> bool:
    """Tell whether the profile prices this program and dtype, and was calibrated with an original for them."""
    priced = fit is not None and fit.block(original.role, dtype) is not None
    return priced and (original.id, dtype) in profile.recorded


def changed(profile: Profile, original: Recipe, dtype: str, catalogue: Catalogue) -> bool:
    """Tell whether the original is made from another source or with other options than the profile's was."""
    before = profile.recorded.get((original.id, dtype))
    now = catalogue.identity(original, dtype)
    return before is not None and (before.source, before.options) != (now.source, now.options)
