"""Frozen profiles: the fits in force for one target and regime, with the receipts they were calibrated with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from importlib.resources import files
from typing import Any

from attrs import field, frozen

from features.schemas import SCHEMAS
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.target import Target
from policy.errors import ProfileError

PROFILE_SCHEMA = "rowsmith.profile/1"
ANY_DTYPE = "*"


@frozen
class Block:
    """One solve: the coefficients (microseconds a unit of each feature) of a role and dtype, and the calibrated ranges.

    `dtype` is `*` where all dtypes share the block.
    """

    role: str
    dtype: str
    coefficients: tuple[float, ...]
    ranges: tuple[tuple[float, float], ...]


@frozen
class Fit:
    """What a decision needs of a stored fit: its digest leads to the design matrix, residuals and cohort."""

    digest: str
    form: str
    feature_schema: str
    feature_schema_digest: str
    cohort: str
    blocks: tuple[Block, ...]

    def block(self, role: str, dtype: str) -> Block | None:
        """Return the block that prices a role for a dtype, or None."""
        for block in self.blocks:
            if block.role == role and block.dtype in (dtype, ANY_DTYPE):
                return block
        return None


@frozen(slots=False)
class Profile:
    """The fits in force for one target and regime; immutable, named by the digest of its document."""

    name: str
    regime: str
    target: Target
    fits: tuple[Fit, ...]
    receipts: tuple[Receipt, ...]
    earned: tuple[str, ...]
    document: Mapping[str, Any] = field(eq=False, repr=False)

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the document."""
        return digest(self.document)

    def fit(self, form: str) -> Fit | None:
        """Return the fit for programs of a form, or None."""
        return next((fit for fit in self.fits if fit.form == form), None)

    @cached_property
    def recorded(self) -> Mapping[tuple[str, str], Receipt]:
        """The receipts of the calibration, by recipe and dtype."""
        return {(receipt.recipe, receipt.dtype): receipt for receipt in self.receipts}


def profile_from_document(document: Mapping[str, Any], expected_digest: str | None = None) -> Profile:
    """Read a profile document, or raise `ProfileError` naming what is wrong with it."""
    if expected_digest is not None and (found := digest(document)) != expected_digest:
        raise ProfileError(f"profile is damaged: its digest is {found} and {expected_digest} was expected")
    try:
        if document["schema"] != PROFILE_SCHEMA:
            raise ProfileError(f"profile schema {document['schema']!r} is not {PROFILE_SCHEMA}; use a matching release")
        profile = Profile(
            name=document["name"],
            regime=document["regime"],
            target=Target(**document["target"]),
            fits=tuple(_fit(part) for part in document["fits"]),
            receipts=tuple(Receipt(**part) for part in document["receipts"]),
            earned=tuple(document["earned"]),
            document=document,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ProfileError(f"profile is malformed: {type(error).__name__} {error}; import its packet again") from error
    for fit in profile.fits:
        known = SCHEMAS.get(fit.feature_schema)
        if known is None or known.digest != fit.feature_schema_digest:
            message = f"profile {profile.name} uses feature schema {fit.feature_schema!r} ({fit.feature_schema_digest[:12]})"
            raise ProfileError(f"{message}, which this release does not hold; use a matching release")
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
    if any(value < 0 for block in blocks for value in block.coefficients):
        raise ProfileError(f"fit {part['digest'][:12]} has a negative coefficient")
    return Fit(
        digest=part["digest"],
        form=part["form"],
        feature_schema=part["feature_schema"],
        feature_schema_digest=part["feature_schema_digest"],
        cohort=part["cohort"],
        blocks=blocks,
    )


def bundled_profiles() -> tuple[Profile, ...]:
    """Return the profiles that ship with this release, each checked against its digest, in name order.

    Raises
    ------
    ProfileError : a file is damaged; the message names it.
    """
    found = []
    for entry in sorted(files("policy").joinpath("profiles").iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".json"):
            continue
        try:
            wrapper = json.loads(entry.read_text(encoding="utf-8"))
            found.append(profile_from_document(wrapper["profile"], wrapper["digest"]))
        except (ValueError, KeyError, TypeError, ProfileError) as error:
            raise ProfileError(f"bundled profile {entry.name}: {error}; reinstall rowsmith") from error
    return tuple(found)
