"""The errors of this room. Each message says what, which value, and what would be accepted."""

from __future__ import annotations


class FeatureError(Exception):
    """A program, workload or schema that cannot be used."""


class WorkloadError(FeatureError):
    """A shape, dtype, layout or alignment that no kernel of ours takes. `code` and `field` say which rule and input."""

    def __init__(self, code: str, field: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field


class ProgramError(FeatureError):
    """An expression that is not well typed, or that no original kernel runs."""
