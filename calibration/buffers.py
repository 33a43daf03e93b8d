"""The buffers of a point: one pair of input and output where data stay hot, as many as keep them cold otherwise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

from attrs import evolve, frozen

from calibration.inputs import Guarded, guarded, uniform
from calibration.planned import Planned
from calibration.rotation import pairs_needed
from calibration.traffic import output_elements


@frozen(eq=False)
class Buffers:
    """Pairs of equal inputs and of outputs, which launches take in turn."""

    pairs: tuple[tuple[Guarded, Guarded], ...]

    @property
    def first(self) -> tuple[Guarded, Guarded]:
        """The pair of the first launch."""
        return self.pairs[0]

    def turns(self, launch: Callable[[Guarded, Guarded], Any]) -> Callable[[], None]:
        """Return a launch on the next pair, beginning with the first."""
        turns = cycle(self.pairs)

        def next_launch() -> None:
            launch(*next(turns))

        return next_launch


def buffers(planned: Planned, regime: str, l2_bytes: int, seed: int) -> Buffers:
    """Allocate the pairs of a geometry; every input holds the same values, a function of the seed."""
    x, y = evolve(uniform(planned.dtype, planned.rows, planned.width, seed), inner=planned.inner), _output(planned)
    pairs = [(x, y)]
    for _ in range(1, pairs_needed(regime, x.body.size + y.body.size, l2_bytes)):
        again = evolve(guarded(planned.dtype, planned.rows, planned.width), inner=planned.inner)
        again.body[...] = x.body
        pairs.append((again, _output(planned)))
    return Buffers(tuple(pairs))


def _output(planned: Planned) -> Guarded:
    result = guarded(planned.dtype, planned.rows, output_elements(planned.program, 1, planned.width))
    return evolve(result, inner=planned.inner)
