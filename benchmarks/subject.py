"""The profile that is asked: the one that ships with the release, or the tests' made-up one until there is one."""

from __future__ import annotations

from policy.profile import Profile, bundled_profiles


def profile() -> Profile:
    """Return the first bundled profile, else the made-up one."""
    for found in bundled_profiles():
        return found
    from tests.made import made_profile

    return made_profile()
