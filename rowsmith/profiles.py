"""Which bundled profile is in force for a request that names none."""

from __future__ import annotations

from functools import cache

from features.errors import show
from kernels.target import Target
from policy.errors import ProfileError, RequestError
from policy.judging import HOT, REGIMES
from policy.profile import Known, Profile, bundled


@cache
def _bundled() -> tuple[Known, ...]:
    return bundled()


def profile_for(name: str | None, regime: str | None = None) -> Profile:
    """Return the named bundled profile, or the only active one of the regime, `hot` where none is said.

    Raises
    ------
    ProfileError : no such profile, several, or the named one is of another regime than the one that is said.
    RequestError : no such regime.
    """
    if regime is not None and regime not in REGIMES:
        raise RequestError(f"regime {show(regime)} is not known; use {', '.join(REGIMES)}")
    entries = _bundled()
    shown = (f"{entry.profile.name} ({entry.profile.regime}, {entry.standing})" for entry in entries)
    listed = ", ".join(shown) or "none"
    if name is not None:
        matching = [entry.profile for entry in entries if name in (entry.profile.name, entry.profile.digest)]
        if not matching:
            raise ProfileError(f"profile {name!r} is not known; there are: {listed}")
        if regime not in (None, matching[0].regime):
            raise ProfileError(f"profile {name!r} is {matching[0].regime}, not {regime}; there are: {listed}")
        return matching[0]
    wanted = regime or HOT
    matching = [entry.profile for entry in entries if entry.active and entry.profile.regime == wanted]
    if len(matching) != 1:
        raise ProfileError(f"{len(matching)} active profiles are of the regime {wanted!r}; name one of: {listed}")
    return matching[0]


def profile_on(target: Target, regime: str) -> Profile | None:
    """Return the active profile of a regime that was made for the target, else the only one there is, else None.

    Raises
    ------
    ProfileError : a bundled profile is damaged, or several would do.
    """
    active = [entry.profile for entry in _bundled() if entry.active and entry.profile.regime == regime]
    exact = [profile for profile in active if profile.target == target]
    if len(exact) == 1:
        return exact[0]
    return profile_for(None, regime) if active else None
