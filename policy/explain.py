"""The one English sentence of a decision: it formats what was decided and computes nothing a second time."""

from __future__ import annotations

from typing import Any

from features.proof import Refused
from policy.profile import Profile
from policy.selection import Candidate


def sentence(
    reason: str,
    chosen: Candidate,
    original: Candidate,
    other: Candidate | None,
    seen: tuple[Candidate, ...],
    profile: Profile,
    differences: tuple[tuple[str, Any, Any], ...],
) -> str:
    """Return one sentence that names the recipe and the fact that decided."""
    kept = f"{original.recipe.id} is kept"
    if reason == "admitted":
        runner = f"; next is {other.recipe.id} at {_us(other)}" if other is not None else ""
        return (
            f"{chosen.recipe.id} scores {_us(chosen)}, below 95 % of the {_us(original)} of "
            f"{original.recipe.id}{runner}."
        )
    if reason == "not_below_threshold" and other is not None:
        return f"{kept}: the best recipe, {other.recipe.id}, scores {_us(other)}, not below 95 % of its {_us(original)}."
    if reason == "no_proved_recipe":
        facts = "; ".join(dict.fromkeys(c.proof.fact for c in seen if isinstance(c.proof, Refused)))
        return f"{kept}: no recipe is proved legal ({facts})."
    if reason == "target_mismatch":
        listed = ", ".join(f"{name} is {theirs}, not {ours}" for name, ours, theirs in differences)
        return (
            f"{kept}: profile {profile.name} does not describe this target ({listed}); "
            "calibrate it with `rowsmith calibrate --out packet.zip`, about three minutes a family."
        )
    if reason == "no_fit":
        return f"{kept}: profile {profile.name} holds no fit for this program and dtype with the original as it is now."
    if reason == "outside_calibrated_domain" and original.excluded is not None:
        return f"{kept}: {original.excluded.fact}."
    facts = "; ".join(dict.fromkeys(f"{c.recipe.id}: {c.excluded.fact}" for c in seen if c.excluded is not None))
    return f"{kept}: no proved recipe is eligible ({facts})."


def _us(candidate: Candidate) -> str:
    return "no score" if candidate.score_us is None else f"{candidate.score_us:.3f} us"
