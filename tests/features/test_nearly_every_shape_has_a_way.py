"""Nearly every shape that people run has a proved recipe besides the original, for every program and dtype."""

from __future__ import annotations

import pytest

from features.program import OPS
from kernels.recipe import ORIGINAL
from tests.gpu.grid import DTYPES, GROUPS, ROWS, WIDTHS, proved

LEAST_SHARE = 0.95


@pytest.mark.parametrize("offset", [0, 1], ids=["on a boundary", "past a boundary"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
def test_a_recipe_besides_the_original_is_proved(op: str, dtype: str, offset: int) -> None:
    asked = [width for width in WIDTHS if width > 1 or op != "softmax"]  # of one element a softmax is 1
    held = {(rows, width): proved(op, dtype, rows, width, offset) for rows in ROWS for width in asked}
    assert all(recipes[0].role == ORIGINAL for recipes in held.values())
    without = [shape for shape, recipes in held.items() if len(recipes) == 1]
    assert len(without) <= (1 - LEAST_SHARE) * len(held), without


def test_the_grid_has_every_program() -> None:
    assert sorted(op for ops in GROUPS.values() for op in ops) == sorted(OPS)
