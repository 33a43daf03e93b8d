"""One geometry of a plan: what is measured there, and which strata it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import asdict, frozen

from calibration.extents import extents
from features.program import Program, program_of
from features.proof import form_of
from features.workload import Workload


@frozen
class Planned:
    """One geometry to measure; `peers` tells whether torch and a copy join its rounds in a validation.

    `inner` consecutive rows interleave, as those of an image whose channels they lie along do.
    """

    op: str
    dtype: str
    rows: int
    width: int
    stratum: Mapping[str, str]
    peers: bool = True
    inner: int = 1

    @property
    def program(self) -> Program:
        """The program to measure."""
        return program_of(self.op, self.dtype)

    @property
    def form(self) -> str:
        """The form of the program."""
        return form_of(self.program)

    @property
    def workload(self) -> Workload:
        """The workload to measure: rows without gaps on aligned bases."""
        return Workload(self.program, self.rows, self.width, self.width, inner=self.inner)

    @property
    def extents(self) -> tuple[int, ...]:
        """Rows and width, and the inner extent where there is one: what geometries of a program are told apart by."""
        return extents(self.rows, self.width, self.inner)

    @property
    def key(self) -> tuple[str, str, *tuple[int, ...]]:
        """What tells two geometries apart: op, dtype and extents."""
        return self.op, self.dtype, *self.extents

    def to_json(self) -> dict[str, Any]:
        """Return the geometry as a plan stores it; `peers` and `inner` only where they are not the usual ones."""
        return {name: value for name, value in asdict(self).items() if name not in _USUAL or value != _USUAL[name]}


_USUAL = {"peers": True, "inner": 1}
