"""Frozen profiles as values: the fits in force for one target and regime, and the receipts they were made with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from attrs import field, frozen

from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.target import Target

ANY_DTYPE = "*"


@frozen(cache_hash=True)
class Block:
    """One solve: the coefficients (microseconds a unit of each feature) of a role and dtype, and the calibrated ranges.

    `dtype` is `*` where all dtypes share the block.
    """

    role: str
    dtype: str
    coefficients: tuple[float, ...]
    ranges: tuple[tuple[float, float], ...]


@frozen(cache_hash=True)
class Fit:
    """What a decision needs of a stored fit: its digest leads to the design matrix, residuals and cohort.

    The family stands under the key `form` in documents.
    """

    digest: str
    family: str
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


@frozen(cache_hash=True)
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

    def fit(self, family: str) -> Fit | None:
        """Return the fit for a family of programs, or None."""
        return next((fit for fit in self.fits if fit.family == family), None)

    @cached_property
    def recorded(self) -> Mapping[tuple[str, str], Receipt]:
        """The receipts of the calibration, by recipe and dtype."""
        return {(receipt.recipe, receipt.dtype): receipt for receipt in self.receipts}
