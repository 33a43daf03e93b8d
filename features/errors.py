"""How this room says no: errors, refusals, and a safe rendering of the value that is refused."""

from __future__ import annotations

from attrs import frozen

_SHOWN_CHARACTERS = 80


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


@frozen
class Refused:
    """A recipe may not run, or not compete: the reason code and the fact that failed, as a clause."""

    code: str
    fact: str


def show(value: object) -> str:
    """Return a short, safe rendering of an untrusted value. Integers of thousands of digits have no cheap text."""
    try:
        text = repr(value)
    except ValueError:
        return "with thousands of digits"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
