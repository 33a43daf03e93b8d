"""Nearly every shape that people run has a proved recipe besides the original, for every program and dtype."""

from __future__ import annotations

import pytest

from features.program import program_of
from features.proof import form_of
from kernels.norms import NORMS
from kernels.recipe import ORIGINAL
from tests.gpu.grid import DTYPES, GROUPS, ROW_OPS, ROWS, WIDTHS, proved

LEAST_SHARE = 0.95


@pytest.mark.parametrize("offset", [0, 1], ids=["on a boundary", "past a boundary"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ROW_OPS)
def test_a_recipe_besides_the_original_is_proved(op: str, dtype: str, offset: int) -> None:
    # Of one element a softmax is 1 and another normalization its sign: lanes that hold rows are not there for that.
    asked = [width for width in WIDTHS if width > 1 or form_of(program_of(op, dtype)) not in NORMS]
    held = {(rows, width): proved(op, dtype, rows, width, offset) for rows in ROWS for width in asked}
    assert all(recipes[0].role == ORIGINAL for recipes in held.values())
    without = [shape for shape, recipes in held.items() if len(recipes) == 1]
    assert len(without) <= (1 - LEAST_SHARE) * len(held), without


def test_the_grid_has_every_program() -> None:
    assert sorted(op for ops in GROUPS.values() for op in ops) == sorted(ROW_OPS)
