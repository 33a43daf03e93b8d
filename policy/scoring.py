"""Domain and score: the same operations on one geometry and on many, so that both give the same bits."""

from __future__ import annotations

from collections.abc import Sequence

from features.errors import Refused
from features.schema import Feature, Number
from policy.profile import Block


def score(values: Sequence[Number], coefficients: Sequence[float]) -> Number:
    """Return the dot product in microseconds, in float64, added left to right; of numbers, or of arrays of them.

    A BLAS dot adds in an order of its own and differs in the last bit in a quarter of cases.
    """
    total: Number = 0.0
    for value, coefficient in zip(values, coefficients, strict=True):
        total = total + value * coefficient
    return total


def outside(features: Sequence[Feature], values: Sequence[Number], block: Block) -> Refused | None:
    """Return the first feature of one geometry that lies outside its calibrated range, or None."""
    for feature, value, (low, high) in zip(features, values, block.ranges, strict=True):
        if not low <= value <= high:
            fact = f"{feature.name} is {value} {feature.unit}, calibrated from {low:.17g} to {high:.17g}"
            return Refused("outside_calibrated_domain", fact)
    return None


def inside(values: Sequence[Number], block: Block) -> Number:
    """Return for which of many geometries every feature lies in its calibrated range."""
    verdict: Number = True
    for value, (low, high) in zip(values, block.ranges, strict=True):
        verdict = verdict & (low <= value) & (value <= high)
    return verdict
