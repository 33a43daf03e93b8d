"""Short ways to ask the made-up profile, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from features.proof import Proved, candidates
from features.schemas import SCHEMAS
from features.workload import workload
from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL, Recipe
from kernels.target import Target
from policy.catalogue import Catalogue, ReceiptSource, recorded
from policy.profile import Profile, profile_from_document
from policy.select import select
from policy.selection import Selection
from tests.made import H200, made_document, made_profile


def ask(
    rows: int,
    width: int,
    dtype: str = "float16",
    *,
    profile: Profile | None = None,
    target: Target = H200,
    receipts: ReceiptSource | None = None,
    catalogue: Catalogue | None = None,
    forced: str | None = None,
    **layout: Any,
) -> Selection:
    """Return the decision on a scan, from the made-up profile's recorded receipts where nothing else is said."""
    profile = profile or made_profile()
    work = workload("scan", (rows, width), dtype, **layout)
    return select(work, target, profile, receipts or recorded(profile), catalogue=catalogue, forced=forced)


def with_receipts(change: Callable[[Receipt], Receipt | None], profile: Profile | None = None) -> ReceiptSource:
    """Return a source whose answers are the recorded ones after `change`; the original's are left alone."""
    known = recorded(profile or made_profile())

    def source(recipe: Recipe, dtype: str) -> Receipt | None:
        receipt = known(recipe, dtype)
        return receipt if receipt is None or recipe.role == ORIGINAL else change(receipt)

    return source


def profile_with(
    *,
    original: list[float] | None = None,
    recipe: list[float] | None = None,
    ranges: dict[str, list[list[float]]] | None = None,
    **changes: Any,
) -> Profile:
    """Return the made-up profile with other coefficients and ranges (by role) for scans, or other members."""
    document = made_document(**changes)
    for fit in (fit for fit in document["fits"] if fit["form"] == "prefix.sum"):
        for block in fit["blocks"]:
            coefficients = original if block["role"] == ORIGINAL else recipe
            block["coefficients"] = coefficients or block["coefficients"]
            block["ranges"] = (ranges or {}).get(block["role"], block["ranges"])
    return profile_from_document(document)


def profile_priced_by(schema_id: str, *coefficients: float) -> Profile:
    """Return the made-up profile with a fit of another schema; the last coefficient stands for all that follow.

    The profile then holds fits of the schema's family alone.
    """
    schema, document = SCHEMAS[schema_id], made_document()
    document["fits"] = [
        {
            **fit,
            "feature_schema": schema.id,
            "feature_schema_digest": schema.digest,
            "blocks": [
                {
                    "role": role,
                    "dtype": "*",
                    "coefficients": [coefficients[min(i, len(coefficients) - 1)] for i in range(len(features))],
                    "ranges": [[0.0, 1e12] for _ in features],
                }
                for role, features in schema.roles.items()
            ],
        }
        for fit in document["fits"]
        if fit["form"] == schema.family
    ]
    return profile_from_document(document)


PROVED_AT = (128, 16384)  # rows and width at which every documented recipe is proved, and every one that splits rows
PROVED_IDS = [
    row.id
    for row, proof in candidates(workload("scan", PROVED_AT, "float16"))
    if isinstance(proof, Proved) and row.role != ORIGINAL
]
