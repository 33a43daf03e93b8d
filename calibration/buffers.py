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
from features.program import parameters_of, weights_of
from features.usual import PARAMETERS
from kernels.operands import Operands, weight


@frozen(eq=False)
class Given:
    """What launches take besides x and y: guarded vectors, one row each, and the usual values of parameters."""

    weights: tuple[Guarded, ...]
    parameters: tuple[float, ...]

    @property
    def operands(self) -> Operands:
        """What a launch is given."""
        vectors = tuple(weight(vector.address, vector.width, vector.dtype) for vector in self.weights)
        return Operands(vectors, self.parameters)

    def values(self) -> tuple[Any, ...]:
        """Return what a reference takes: vectors as FP64, then numbers."""
        return (*(vector.values()[0].astype("float64") for vector in self.weights), *self.parameters)


# Tensors of a launch: x, y, and what else its program takes, if it takes anything.
Call = tuple[Guarded, Guarded] | tuple[Guarded, Guarded, Given]


@frozen(eq=False)
class Buffers:
    """Pairs of equal inputs and of outputs, which launches take in turn, and equal operands for each, if any."""

    pairs: tuple[tuple[Guarded, Guarded], ...]
    given: tuple[Given, ...] = ()

    @property
    def first(self) -> tuple[Guarded, Guarded]:
        """The pair of the first launch."""
        return self.pairs[0]

    @property
    def calls(self) -> tuple[Call, ...]:
        """What each launch in turn takes."""
        if not self.given:
            return self.pairs
        return tuple((*pair, given) for pair, given in zip(self.pairs, self.given, strict=True))

    def turns(self, launch: Callable[..., Any]) -> Callable[[], None]:
        """Return a launch of the next call, beginning with the first."""
        turns = cycle(self.calls)

        def next_launch() -> None:
            launch(*next(turns))

        return next_launch


def buffers(planned: Planned, regime: str, l2_bytes: int, seed: int) -> Buffers:
    """Allocate the pairs of a geometry; every input holds the same values, a function of the seed."""
    x, y = evolve(uniform(planned.dtype, planned.rows, planned.width, seed), inner=planned.inner), _output(planned)
    pairs = [(x, y)]
    count = pairs_needed(regime, x.body.size + y.body.size, l2_bytes)
    pairs.extend((_again(x), _output(planned)) for _ in range(1, count))
    return Buffers(tuple(pairs), _given(planned, len(pairs), seed))


def tensors(call: Call) -> tuple[Guarded, ...]:
    """Return every tensor of a launch: x, y and the weights."""
    x, y, *given = call
    return (x, y, *(vector for operands in given for vector in operands.weights))


def _given(planned: Planned, count: int, seed: int) -> tuple[Given, ...]:
    """Return operands for so many pairs, none where the program takes none. Weights, too, are kept out of L2 so."""
    places, names = weights_of(planned.program), parameters_of(planned.program)
    if not places and not names:
        return ()
    vectors = [uniform(planned.dtype, 1, planned.width, seed + 1 + of.place) for of in places]
    parameters = tuple(PARAMETERS[name] for name in names)
    first = Given(tuple(vectors), parameters)
    return (first, *(Given(tuple(map(_again, vectors)), parameters) for _ in range(1, count)))


def _again(tensor: Guarded) -> Guarded:
    copied = guarded(tensor.dtype, tensor.rows, tensor.width)
    copied.body[...] = tensor.body
    return evolve(copied, inner=tensor.inner)


def _output(planned: Planned) -> Guarded:
    result = guarded(planned.dtype, planned.rows, output_elements(planned.program, 1, planned.width))
    return evolve(result, inner=planned.inner)
