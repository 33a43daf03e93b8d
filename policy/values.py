"""What a decision is made of, as frozen values: priced features, candidates and the choice between them."""

from __future__ import annotations

from typing import Any, NamedTuple

from attrs import frozen

from features.errors import Refused
from features.proof import Proved
from kernels.receipt import Receipt
from kernels.recipe import Recipe
from policy.standing import Pricing

# Exclusions that say nothing against a receipt: they come with the score.
_OF_SCORING = frozenset({"no_fit", "outside_calibrated_domain", "experimental_not_earned"})


class Priced(NamedTuple):
    """A named feature value with its unit."""

    name: str
    value: int | float
    unit: str


@frozen
class Candidate:
    """One recipe of the catalogue as the decision saw it.

    `excluded` is the code and the fact that kept a proved recipe from competing; `score_us` is None where it was not
    scored. `values` are of the features of `pricing`, in their order, and empty where it is None.
    """

    recipe: Recipe
    proof: Proved | Refused
    receipt: Receipt | None = None
    excluded: Refused | None = None
    pricing: Pricing | None = None
    values: tuple[int | float, ...] = ()
    score_us: float | None = None

    @property
    def features(self) -> tuple[Priced, ...]:
        """The values with their names and units."""
        features = () if self.pricing is None else self.pricing.features
        return tuple(Priced(f.name, value, f.unit) for f, value in zip(features, self.values, strict=True))

    @property
    def eligible(self) -> bool:
        """Whether it may be chosen: proved, not excluded and scored."""
        return isinstance(self.proof, Proved) and self.excluded is None and self.score_us is not None

    @property
    def clean(self) -> bool:
        """Whether it is proved and nothing speaks against its receipt."""
        return isinstance(self.proof, Proved) and (self.excluded is None or self.excluded.code in _OF_SCORING)


@frozen
class Decision:
    """What was chosen and why. `policy_recipe` is the policy's own pick, which `forced` may override.

    The runner-up is the best recipe that was not chosen; where the request named one, none is.
    """

    recipe: str
    reason: str
    sentence: str
    policy_recipe: str
    policy_reason: str
    score_us: float | None
    original_score_us: float | None
    runner_up: str | None
    runner_up_score_us: float | None
    differences: tuple[tuple[str, Any, Any], ...] = ()
