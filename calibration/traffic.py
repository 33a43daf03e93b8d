"""What a program moves at least: every input element read once, every output element written once."""

from __future__ import annotations

from features.program import Program
from kernels.dtypes import storage


def output_elements(program: Program, rows: int, width: int) -> int:
    """Return how many elements a program writes: one each of the input, or one a row."""
    extent = program.expression.type()[1]
    return rows * (width if extent == "row" else 1)


def footprint_bytes(program: Program, rows: int, width: int) -> int:
    """Return the bytes of one input and one output, which is also the least traffic of a launch."""
    return storage(program.dtype).bytes * (rows * width + output_elements(program, rows, width))
