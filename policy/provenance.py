"""What a decision rests on besides workload, target and receipts: profile, fit, schema and catalogue, by digest."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from attrs import frozen

from kernels.identity import canonical_json
from policy.catalogue import Catalogue
from policy.deciding import ADMISSION
from policy.profile import Fit, Profile


@frozen
class Provenance:
    """The facts, and their canonical JSON."""

    facts: Mapping[str, Any]
    text: str


@lru_cache(maxsize=256)
def provenance(profile: Profile, fit: Fit | None, catalogue: Catalogue) -> Provenance:
    """Return what every decision of a profile for a family of programs rests on; `fit` is None where it has none."""
    facts = {
        "profile": profile.digest,
        "profile_name": profile.name,
        "regime": profile.regime,
        "fit": None if fit is None else fit.digest,
        "cohort": None if fit is None else fit.cohort,
        "feature_schema": None if fit is None else fit.feature_schema,
        "feature_schema_digest": None if fit is None else fit.feature_schema_digest,
        "catalogue": catalogue.digest,
        "admission": ADMISSION,
    }
    return Provenance(MappingProxyType(facts), canonical_json(facts))
