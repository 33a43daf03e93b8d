"""Judging a profile that was read: types, numbers and schemas, so that no decision stumbles over a document later."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from attrs import asdict

from features.errors import show
from features.schemas import SCHEMAS
from kernels.dtypes import STORAGE
from kernels.receipt import OF_CLUSTERS, RESOURCES, Receipt
from policy.errors import ProfileError
from policy.frozen import ANY_DTYPE, Block, Fit, Profile

HOT, COLD = REGIMES = ("hot", "cold")
_OPTIONAL_TEXT = ("cubin", "failure")


def judge_profile(profile: Profile) -> None:
    """Raise `ProfileError` for the first thing in a profile that a decision could not use."""
    for wrong in _faults(profile):
        raise ProfileError(f"profile {show(profile.name)}: {wrong}")


def _faults(profile: Profile) -> Iterator[str]:
    if not all(isinstance(text, str) for text in (profile.name, *profile.earned)):
        yield "name and earned recipes must be text"
    if profile.regime not in REGIMES:
        yield f"regime {show(profile.regime)} is not {' or '.join(REGIMES)}"
    for receipt in profile.receipts:
        yield from _receipt_faults(receipt)
    if len(profile.recorded) != len(profile.receipts):
        yield "two receipts are of one recipe and dtype"
    if len({fit.family for fit in profile.fits}) != len(profile.fits):
        yield "two fits are of one family of programs"
    for fit in profile.fits:
        yield from _fit_faults(fit)


def _receipt_faults(receipt: Receipt) -> Iterator[str]:
    for name, value in asdict(receipt).items():
        if name in (*RESOURCES, *OF_CLUSTERS):
            if value is not None and not _is_count(value):
                yield f"receipt of {show(receipt.recipe)}: {name} {show(value)} is not a whole number or null"
        elif not isinstance(value, str) and not (value is None and name in _OPTIONAL_TEXT):
            yield f"receipt of {show(receipt.recipe)}: {name} {show(value)} is not text"


def _fit_faults(fit: Fit) -> Iterator[str]:
    schema = SCHEMAS.get(fit.feature_schema) if isinstance(fit.feature_schema, str) else None
    if schema is None or schema.digest != fit.feature_schema_digest:
        yield (
            f"feature schema {show(fit.feature_schema)} with digest {show(fit.feature_schema_digest)} "
            "is not held by this release; use a matching one"
        )
        return
    texts = (fit.digest, fit.family, fit.cohort)
    if not all(isinstance(text, str) for text in texts):
        yield "digest, form and cohort of a fit must be text"
    pairs = [(block.role, block.dtype) for block in fit.blocks]
    if any(pairs.count(pair) > 1 for pair in pairs):
        yield f"fit {show(fit.family)} has two blocks of one role and dtype"
    for block in fit.blocks:
        columns = schema.roles.get(block.role)
        if columns is None or block.dtype not in (*STORAGE, ANY_DTYPE):
            yield f"block {show(block.role)}, {show(block.dtype)} is of no role or dtype of {schema.id}"
        else:
            yield from _block_faults(block, len(columns))


def _block_faults(block: Block, columns: int) -> Iterator[str]:
    where = f"block {block.role}, {block.dtype}"
    if not columns == len(block.coefficients) == len(block.ranges):
        yield f"{where} must have {columns} coefficients and ranges"
        return
    for coefficient, (low, high) in zip(block.coefficients, block.ranges, strict=True):
        if not (math.isfinite(coefficient) and coefficient >= 0):
            yield f"{where}: coefficient {coefficient} is not a nonnegative number"
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            yield f"{where}: range {low} to {high} is not one"
    worst = sum(c * max(abs(low), abs(high)) for c, (low, high) in zip(block.coefficients, block.ranges, strict=True))
    if not math.isfinite(worst):
        yield f"{where}: scores overflow inside its own ranges"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
