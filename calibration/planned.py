"""One geometry of a plan: what is measured there, and which strata it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import asdict, frozen

from features.program import Program, program_of
from features.proof import form_of


@frozen
class Planned:
    """One geometry to measure; `peers` tells whether torch and a copy join its rounds in a validation."""

    op: str
    dtype: str
    rows: int
    width: int
    stratum: Mapping[str, str]
    peers: bool = True

    @property
    def program(self) -> Program:
        """The program to measure."""
        return program_of(self.op, self.dtype)

    @property
    def form(self) -> str:
        """The form of the program."""
        return form_of(self.program)

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What tells two geometries apart: op, dtype, rows, width."""
        return self.op, self.dtype, self.rows, self.width

    def to_json(self) -> dict[str, Any]:
        """Return the geometry as a plan stores it; `peers` only where they stay away."""
        return {name: value for name, value in asdict(self).items() if name != "peers" or not value}
