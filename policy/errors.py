"""The errors of this room. Each message says what, which value, and what to do."""

from __future__ import annotations


class PolicyError(Exception):
    """A decision that cannot be made."""


class ProfileError(PolicyError):
    """A profile that is damaged, foreign or unknown."""


class TargetError(PolicyError):
    """Facts that describe no target."""


class RequestError(PolicyError):
    """A demand on the decision that makes no sense: an unknown recipe, or one of another program."""
