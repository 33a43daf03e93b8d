"""The errors of this room. Each message says what, which value, and what to do."""

from __future__ import annotations


class CalibrationError(Exception):
    """A plan, a measurement, a fit or a packet that cannot be used."""


class PlanError(CalibrationError):
    """A plan that cannot be drawn or read."""


class RecordError(CalibrationError):
    """A geometry record, or a set of samples, that no figure may be computed from."""


class FitError(CalibrationError):
    """A cohort that cannot be fitted, or a solve that did not end."""


class PacketError(CalibrationError):
    """A packet that is refused. `part` names the member that is wrong, `file` where it is the zip as a whole."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(f"{part}: {message}")
        self.part = part
