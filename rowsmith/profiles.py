"""Which bundled profile is in force for a request that names none."""

from __future__ import annotations

from functools import cache

from policy.errors import ProfileError
from policy.profile import Profile, bundled_profiles


@cache
def _bundled() -> tuple[Profile, ...]:
    return bundled_profiles()


def profile_for(name: str | None, regime: str) -> Profile:
    """Return the named bundled profile, or the only one of the regime, or raise `ProfileError` listing those there are."""
    profiles = _bundled()
    listed = ", ".join(f"{profile.name} ({profile.regime})" for profile in profiles) or "none"
    if name is not None:
        matching = [profile for profile in profiles if name in (profile.name, profile.digest)]
        if not matching:
            raise ProfileError(f"profile {name!r} is not known; there are: {listed}")
        return matching[0]
    matching = [profile for profile in profiles if profile.regime == regime]
    if len(matching) != 1:
        raise ProfileError(f"{len(matching)} profiles are made for the regime {regime!r}; name one of: {listed}")
    return matching[0]
