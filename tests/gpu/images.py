"""Images for the tests of channel norms: memory in guard bytes, seen by a launch as rows that interleave."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from kernels.driver import Kernel
from kernels.execute import Prepared, prepare
from kernels.guard import Span, span
from kernels.recipe import Recipe
from kernels.recipes import original_of
from tests.gpu.tensors import Tensor, blank, holding, random


@frozen(eq=False)
class Images:
    """Images x channels x positions; `memory` holds them as rows of positions."""

    memory: Tensor
    channels: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Images, channels, positions."""
        return self.memory.rows // self.channels, self.channels, self.memory.width

    @property
    def span(self) -> Span:
        """What a launch takes."""
        images, channels, positions = self.shape
        of = self.memory.span
        return span(of.address, images * positions, channels, channels, self.memory.dtype, positions)

    def rows(self) -> Any:
        """Return the channels of each position as numbers that FP64 arithmetic takes."""
        return self.memory.values().reshape(self.shape).swapaxes(1, 2).reshape(-1, self.channels)

    def prepared(self, kernels: dict[tuple[str, str], Kernel], recipe: Recipe, sm_count: int) -> Prepared:
        """Return a forced recipe with the original behind it."""
        pair = [kernels[row.id, self.memory.dtype] for row in (original_of(recipe.form), recipe)]
        return prepare(*pair, self.span.rows, self.channels, sm_count)


def empty(dtype: str, images: int, channels: int, positions: int, *, offset: int = 0) -> Images:
    """Return poisoned images."""
    return Images(blank(dtype, images * channels, positions, offset=offset), channels)


def uniform(dtype: str, images: int, channels: int, positions: int, *, seed: int = 0, offset: int = 0) -> Images:
    """Return images of values uniform in [-1, 1)."""
    return Images(random(dtype, images * channels, positions, seed=seed, offset=offset), channels)


def made_of(dtype: str, rows: Any, positions: int, *, offset: int = 0) -> Images:
    """Return images whose positions hold these NumPy rows of channels, rounded to the storage dtype."""
    channels = rows.shape[1]
    images = rows.reshape(-1, positions, channels).swapaxes(1, 2).reshape(-1, positions)
    return Images(holding(dtype, images, offset=offset), channels)
