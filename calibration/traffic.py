"""What a program moves at least: every element of input and weights read once, every output element written once."""

from __future__ import annotations

from features.program import Program, weights_of
from kernels.dtypes import storage


def output_elements(program: Program, rows: int, width: int) -> int:
    """Return how many elements a program writes: one each of the input, or one a row."""
    extent = program.expression.type()[1]
    return rows * (width if extent == "row" else 1)


def footprint_bytes(program: Program, rows: int, width: int) -> int:
    """Return the bytes of one input, its weights and one output, which is also the least traffic of a launch."""
    elements = (rows + len(weights_of(program))) * width + output_elements(program, rows, width)
    return storage(program.dtype).bytes * elements
