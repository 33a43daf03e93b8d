"""What a proof claims: conditions with the code and the fact of their failure, and the facts found where all hold.

A condition is a truth value for one workload, or an array of them for many: the same proof serves `prove` and `legal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Truth = Any  # a bool, or a NumPy array of them


# (reason code, whether it holds, the fact of its failure in words, asked for a single workload only)
Condition = tuple[str, Truth, Callable[[], str]]


class Claim(NamedTuple):
    """The conditions of a proof, in the order in which they are tried, and what it found where they all hold."""

    conditions: tuple[Condition, ...]
    facts: Callable[[], Mapping[str, Any]]
