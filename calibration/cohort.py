"""A cohort: the measured geometries of one sweep with its receipts and environment, in canonical order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from calibration.records import MEASURED, TRAINING, Geometry
from kernels.identity import digest
from kernels.receipt import Receipt

COHORT_SCHEMA = "rowsmith.cohort/1"


def canonical(records: Iterable[Geometry]) -> tuple[Geometry, ...]:
    """Return records by form, dtype, rows and width, then run; those of one point in the order of their digests."""
    return tuple(sorted(records, key=lambda record: (*record.key, record.run, record.digest)))


def canonical_receipts(receipts: Iterable[Receipt]) -> tuple[Receipt, ...]:
    """Return receipts by recipe and dtype."""
    return tuple(sorted(receipts, key=lambda receipt: (receipt.recipe, receipt.dtype)))


def cohort_document(records: Iterable[Geometry], receipts: Iterable[Receipt], environment: str) -> dict[str, Any]:
    """Return the cohort of all training records, drifted and failed ones included; `environment` is a digest."""
    return {
        "schema": COHORT_SCHEMA,
        "geometries": [record.digest for record in canonical(r for r in records if r.purpose == TRAINING)],
        "environment": environment,
        "receipts": [digest(receipt.facts()) for receipt in canonical_receipts(receipts)],
    }


def accepted(records: Iterable[Geometry]) -> tuple[Geometry, ...]:
    """Return the training records that a fit may use, in canonical order."""
    return canonical(r for r in records if r.purpose == TRAINING and r.status == MEASURED)
