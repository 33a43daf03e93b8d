"""A recipe named by the request: legal and with a clean receipt, or an error. The policy's own pick stays beside it."""

from __future__ import annotations

from difflib import get_close_matches

from attrs import evolve

from features.errors import Refused, show
from kernels.recipe import ORIGINAL
from policy.errors import RequestError
from policy.selection import Candidate, Decision

_NEAREST = 6  # of the recipes' names; a program may have forty


def force(seen: tuple[Candidate, ...], policy: Decision, forced: str) -> Decision:
    """Return the decision for the recipe that the request named, or raise `RequestError`."""
    named = next((c for c in seen if c.recipe.id == forced), None)
    if named is None:
        ids = [c.recipe.id for c in seen]
        near = get_close_matches(forced.lower(), ids, _NEAREST, cutoff=0.0)
        more = f", or one of {len(ids) - len(near)} more" if len(near) < len(ids) else ""
        raise RequestError(f"recipe {show(forced)} is none of this program's; use one of {', '.join(near)}{more}")
    if isinstance(named.proof, Refused):
        raise RequestError(f"recipe {forced} is not legal here: {named.proof.fact}")
    if named.excluded is not None and not named.clean and named.recipe.role != ORIGINAL:
        raise RequestError(f"recipe {forced} has no clean receipt: {named.excluded.fact}")
    return evolve(
        policy,
        recipe=forced,
        reason="forced",
        sentence=f"{forced} was named by the request; the policy would run {policy.recipe} ({policy.reason}).",
        score_us=named.score_us,
        runner_up=None,
        runner_up_score_us=None,
    )
