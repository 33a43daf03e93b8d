"""The profile that is asked: the one that ships with the release."""

from __future__ import annotations

from policy.profile import Profile, bundled_profiles


def profile() -> Profile:
    """Return the first bundled profile."""
    return bundled_profiles()[0]
