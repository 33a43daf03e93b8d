"""The one English sentence of a decision: it formats what was decided and computes nothing a second time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from features.errors import Refused
from policy.profile import Profile
from policy.reasons import CALIBRATE_IN
from policy.selection import Candidate


@frozen(eq=False)
class Story:
    """What a sentence may speak of. `other` is the best recipe that was not chosen, or None."""

    chosen: Candidate
    original: Candidate
    other: Candidate | None
    seen: tuple[Candidate, ...]
    profile: Profile
    differences: tuple[tuple[str, Any, Any], ...]

    @property
    def kept(self) -> str:
        return f"{self.original.recipe.id} is kept"


def sentence(reason: str, story: Story) -> str:
    """Return one sentence that names the recipe and the fact that decided."""
    return _SENTENCES[reason](story)


def _admitted(story: Story) -> str:
    other = "" if story.other is None else f"; next is {story.other.recipe.id} at {_us(story.other)}"
    return (
        f"{story.chosen.recipe.id} scores {_us(story.chosen)}, below 95 % of the {_us(story.original)} of "
        f"{story.original.recipe.id}{other}."
    )


def _not_below_threshold(story: Story) -> str:
    assert story.other is not None
    return (
        f"{story.kept}: the best recipe, {story.other.recipe.id}, scores {_us(story.other)}, "
        f"not below 95 % of its {_us(story.original)}."
    )


def _no_proved_recipe(story: Story) -> str:
    facts = [c.proof.fact for c in story.seen if isinstance(c.proof, Refused)]
    return f"{story.kept}: no recipe is proved legal ({_listed(facts)})."


def _target_mismatch(story: Story) -> str:
    listed = ", ".join(f"{name} is {theirs}, not {ours}" for name, ours, theirs in story.differences)
    remedy = CALIBRATE_IN[story.profile.regime]
    return f"{story.kept}: profile {story.profile.name} does not describe this target ({listed}); {remedy}."


def _no_fit(story: Story) -> str:
    return f"{story.kept}: profile {story.profile.name} holds no fit for this program and dtype."


def _original_changed(story: Story) -> str:
    return (
        f"{story.kept}: profile {story.profile.name} was calibrated with another source or other options of it, "
        "so its scores do not apply."
    )


def _original_unknown(story: Story) -> str:
    assert story.original.excluded is not None
    return f"{story.kept}: {story.original.excluded.fact}, so there is nothing to compare with."


def _outside(story: Story) -> str:
    assert story.original.excluded is not None
    return f"{story.kept}: its {story.original.excluded.fact}."


def _no_eligible_recipe(story: Story) -> str:
    facts = [f"{c.recipe.id}: {c.excluded.fact}" for c in story.seen if c.excluded is not None]
    return f"{story.kept}: no proved recipe is eligible ({_listed(facts)})."


def _listed(facts: list[str]) -> str:
    return "; ".join(dict.fromkeys(facts))


def _us(candidate: Candidate) -> str:
    return f"{candidate.score_us:.3f} us"


_SENTENCES: dict[str, Callable[[Story], str]] = {
    "admitted": _admitted,
    "not_below_threshold": _not_below_threshold,
    "no_proved_recipe": _no_proved_recipe,
    "no_eligible_recipe": _no_eligible_recipe,
    "target_mismatch": _target_mismatch,
    "outside_calibrated_domain": _outside,
    "no_fit": _no_fit,
    "original_changed": _original_changed,
    "original_unknown": _original_unknown,
}
