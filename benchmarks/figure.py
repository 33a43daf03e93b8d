"""One measured figure beside what was promised."""

from __future__ import annotations

from attrs import frozen


@frozen
class Figure:
    """`at_least` tells whether more is better; `goal` None is for reading only."""

    what: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = True

    @property
    def reached(self) -> bool:
        """Whether the figure is as promised."""
        if self.goal is None:
            return True
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def row(self) -> str:
        """Return the figure as a line of a table."""
        goal = "" if self.goal is None else f"{'at least' if self.at_least else 'at most'} {self.goal:,.6g}"
        verdict = "" if self.goal is None else ("reached" if self.reached else "SHORT")
        return f"{self.what:<58} {self.value:>12,.4g} {self.unit:<12} {goal:<16} {verdict}"


@frozen
class Skipped:
    """A figure that could not be measured here, and why."""

    what: str
    reason: str

    def row(self) -> str:
        """Return the reason as a line of a table."""
        return f"{self.what:<58} {'skipped':>12} {self.reason}"
