"""Reading profiles: a document becomes a frozen value, or an error that names what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from attrs import frozen

from features.errors import show
from kernels.identity import digest
from kernels.receipt import Receipt
from policy.errors import ProfileError, TargetError
from policy.frozen import ANY_DTYPE, Block, Fit, Profile
from policy.judging import judge_profile
from policy.target_facts import target_from_facts

__all__ = ["ANY_DTYPE", "PROFILE_SCHEMA", "Block", "Fit", "Profile", "bundled_profiles", "profile_from_document"]

PROFILE_SCHEMA = "rowsmith.profile/1"

# What is known of a profile from its validation: that it repeats no regression, that it does, or nothing.
STANDARD, EXPERIMENTAL, UNVALIDATED = STANDINGS = ("standard", "experimental", "unvalidated")


def profile_from_document(document: Mapping[str, Any], expected_digest: str | None = None) -> Profile:
    """Read a profile document, or raise `ProfileError` naming what is wrong with it."""
    try:
        found = digest(document)
        if expected_digest not in (None, found):
            raise ProfileError(f"profile is damaged: its digest is {found} and {expected_digest} was expected")
        if document["schema"] != PROFILE_SCHEMA:
            message = f"profile schema {show(document['schema'])} is not {PROFILE_SCHEMA}; use a matching release"
            raise ProfileError(message)
        profile = Profile(
            name=document["name"],
            regime=document["regime"],
            target=target_from_facts(document["target"]),
            fits=tuple(_fit(part) for part in document["fits"]),
            receipts=tuple(Receipt(**part) for part in document["receipts"]),
            earned=tuple(document["earned"]),
            document=document,
        )
    except TargetError as error:
        raise ProfileError(f"profile {show(document['name'])}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProfileError(f"profile is malformed: {type(error).__name__} {error}; import its packet again") from error
    judge_profile(profile)
    return profile


def _fit(part: Mapping[str, Any]) -> Fit:
    blocks = tuple(
        Block(
            role=block["role"],
            dtype=block["dtype"],
            coefficients=tuple(float(value) for value in block["coefficients"]),
            ranges=tuple((float(low), float(high)) for low, high in block["ranges"]),
        )
        for block in part["blocks"]
    )
    return Fit(
        digest=part["digest"],
        family=part["form"],
        feature_schema=part["feature_schema"],
        feature_schema_digest=part["feature_schema_digest"],
        cohort=part["cohort"],
        blocks=blocks,
    )


@frozen
class Known:
    """A profile and its standing, one of `STANDINGS`; this lies outside the profile's digest."""

    profile: Profile
    standing: str

    @property
    def active(self) -> bool:
        """Whether it may answer a request that names no profile: only what a validation found no fault with."""
        return self.standing == STANDARD


def bundled_profiles() -> tuple[Profile, ...]:
    """Return the profiles that ship with this release, in name order."""
    return tuple(entry.profile for entry in bundled())


def bundled(folder: Traversable | None = None) -> tuple[Known, ...]:
    """Return the profiles that ship with this release with their standing, each checked against its digest.

    `folder` stands in for that of the installation.

    Raises
    ------
    ProfileError : a file is damaged, or its standing unknown; the message names it.
    """
    folder = folder or files("policy").joinpath("profiles")
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name) if folder.is_dir() else []
    found = []
    for entry in entries:
        if not entry.name.endswith(".json"):
            continue
        try:
            wrapper = json.loads(entry.read_text(encoding="utf-8"))
            found.append(_entry(wrapper))
        except (ValueError, KeyError, TypeError, ProfileError) as error:
            raise ProfileError(f"bundled profile {entry.name}: {error}; reinstall rowsmith") from error
    return tuple(found)


def _entry(wrapper: Mapping[str, Any]) -> Known:
    if wrapper["standing"] not in STANDINGS:
        raise ProfileError(f"standing {show(wrapper['standing'])} is not known; it is one of {', '.join(STANDINGS)}")
    return Known(profile_from_document(wrapper["profile"], wrapper["digest"]), wrapper["standing"])
