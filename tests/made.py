"""Small made-up values for tests that need no measurement: a target, receipts and a profile with round coefficients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from features.schemas import schemas_of
from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import RECIPES
from kernels.source import identity
from kernels.target import Target
from policy.profile import Profile, profile_from_document

H200 = Target(
    compute_capability="9.0",
    sm_count=132,
    warp_threads=32,
    threads_per_sm=2048,
    registers_per_sm=65536,
    shared_bytes_per_sm=233472,
    shared_optin_bytes_per_cta=232448,
    ctas_per_sm=32,
    l2_bytes=62914560,
    memory_bus_bits=6016,
    memory_clock_khz=3201000,
    nvrtc="13.0",
    cccl="3.1.2",
    math="strict",
    label="NVIDIA H200",
)

# Capacities as a driver would report them for 32 registers a thread; the original's 256 threads give 8.
CAPACITY = {32: 32, 64: 32, 128: 16, 256: 8, 512: 4, 1024: 2}
WIDE = (0.0, 1e12)
FAMILIES = tuple(dict.fromkeys(row.family for row in RECIPES))


def made_receipt(recipe: Recipe, dtype: str, **changes: Any) -> Receipt:
    """Return a clean receipt of a recipe, with `changes` applied."""
    made_from = identity(recipe, dtype)
    facts: dict[str, Any] = {
        "recipe": recipe.id,
        "dtype": dtype,
        "architecture": "sm_90",
        "source": made_from.source,
        "options": made_from.options,
        "cubin": "0" * 64,
        "registers": 32,
        "static_shared_bytes": 512,
        "dynamic_shared_bytes": 0,
        "local_bytes": 0,
        "max_threads_per_cta": recipe.threads,
        "cluster_ctas": recipe.cluster,
        "resident_ctas_per_sm": CAPACITY[recipe.threads],
        "resident_clusters": None if recipe.cluster == 1 else 120 // recipe.cluster * CAPACITY[recipe.threads],
    }
    return Receipt(**{**facts, **changes})


def made_document(families: Iterable[str] = ("prefix.sum",), **changes: Any) -> dict[str, Any]:
    """Return a profile document with coefficient 0.5 us for a launch and small round ones for every other feature.

    It prices the programs of `families`, and holds the receipts of their recipes.
    """
    families = tuple(families)
    fits = []
    for family in families:
        schema = schemas_of(family)[0]
        blocks = [
            {
                "role": role,
                "dtype": "*",
                "coefficients": [0.5, 30.0] + [0.001 if role == ORIGINAL else 0.01] * (len(features) - 2),
                "ranges": [list(WIDE) for _ in features],
            }
            for role, features in schema.roles.items()
        ]
        fits.append(
            {
                "digest": "f" * 64,
                "form": family,
                "feature_schema": schema.id,
                "feature_schema_digest": schema.digest,
                "cohort": "c" * 64,
                "blocks": blocks,
            }
        )
    receipts = [made_receipt(row, dtype).facts() for row in RECIPES if row.family in families for dtype in row.dtypes]
    document: dict[str, Any] = {
        "schema": "rowsmith.profile/1",
        "name": "made",
        "regime": "hot",
        "target": {**H200.facts(), "label": H200.label},
        "fits": fits,
        "receipts": receipts,
        "earned": [],
    }
    return {**document, **changes}


def made_profile(families: Iterable[str] = ("prefix.sum",), **changes: Any) -> Profile:
    """Return the made-up profile."""
    return profile_from_document(made_document(families, **changes))
