"""Channel norms in FP32 as the originals document them: additions from the first channel to the last, then the formula.

Nothing here needs a GPU: `xp` is NumPy or CuPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.channels import CHANNEL_NORMS
from kernels.recipe import Recipe


def in_order(xp: Any, recipe: Recipe, rows: Any, eps: float, element_bytes: int) -> Any:
    """Return FP32 results, not yet rounded to the storage dtype, of FP32 rows of channels."""
    norm = CHANNEL_NORMS[recipe.form].norm
    one, count = xp.float32(1), xp.float32(rows.shape[1])
    total = xp.zeros(rows.shape[0], xp.float32)
    for c in range(rows.shape[1]):
        total += abs(rows[:, c]) if norm == "mean_abs" else rows[:, c] * rows[:, c]
    if norm == "mean_abs":
        divisor = total / count
    else:
        divisor = xp.sqrt(total if norm == "l2" else total / count + xp.float32(eps))
    divisor = divisor[:, None]
    if element_bytes == 4:
        return rows / divisor
    small, large = xp.float32(2.0**64), xp.float32(2.0**-64)
    scale = xp.where(divisor < 2.0**-126, small, xp.where(divisor > 2.0**126, large, one))
    return rows * scale * (one / (divisor * scale))


def special_rows(rng: np.random.Generator, count: int, channels: int) -> dict[str, Any]:
    """Return FP32 rows of each control: zeros, squares that overflow or vanish, NaN and infinities, normal."""
    normal = rng.normal(0, 1, (count, channels)).astype(np.float32)
    mixed = normal.copy()
    kinds = (np.nan, np.inf, -np.inf, 0.0, -0.0)
    for row in range(0, count, 2):
        mixed[row, rng.integers(0, channels, 3)] = [kinds[(row + k) % len(kinds)] for k in range(3)]
    return {
        "zeros": np.zeros_like(normal),
        "1e20": np.full_like(normal, 1e20),
        "1e-40": np.full_like(normal, 1e-40),
        "mixed": mixed,
        "normal": normal,
    }
