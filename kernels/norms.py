"""Row normalizations as a table: forms, and the ways through rows that hold or stream them.

Numbers are whole numbers, or arrays of them.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

Number = Any  # an int, or a NumPy array of them

FAMILY = "rownorm"


@frozen
class Norm:
    """What the programs of a form make of a row. `op` names it for people.

    Attributes
    ----------
    algebra : what the templates are compiled with.
    weights : vectors that all rows share: times the first, plus the second.
    """

    op: str
    form: str
    algebra: str
    weights: int = 0


SOFTMAX = "divide(map.exp.subtract(x,reduce.max),reduce.sum.map.exp.subtract(x,reduce.max))"
NORMS: dict[str, Norm] = {norm.form: norm for norm in (Norm("softmax", SOFTMAX, "softmax"),)}
# Rows of at most this many elements are a warp's in the original, longer ones a CTA's: to be measured.
LAST_WARP_WIDTH = 1024

_ANYWHERE = ("any", "any")
_ROWS_ALIGNED = ("rows", "rows")


@frozen
class Holding:
    """A way that keeps rows on chip; `<op>.<name>` is its recipe, and `name` its role: lanes cost what they cost.

    Attributes
    ----------
    moves : `vectors` of rows that are whole vectors on boundaries, or vectors that `cover` a row of any base.
    phases : packs of eight elements a lane.
    """

    lanes: int
    phases: int
    moves: str

    @property
    def name(self) -> str:
        """Lanes a row, and elements a lane."""
        return f"{'held' if self.moves == 'vectors' else 'cover'}{self.lanes}x{8 * self.phases}"

    @property
    def threads(self) -> int:
        """Threads a CTA: 128, or as many as a row takes."""
        return max(128, self.lanes)

    @property
    def proofs(self) -> tuple[str, ...]:
        """What it needs besides the expression."""
        return ("row_in_lanes", "aligned_rows") if self.moves == "vectors" else ("row_in_cover",)

    @property
    def alignment(self) -> tuple[str, str]:
        """What a launch demands of x and y."""
        return _ROWS_ALIGNED if self.moves == "vectors" else _ANYWHERE

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """What the template is compiled with."""
        return (("LANES", str(self.lanes)), ("MOVES", self.moves))


# Lanes and packs, from rows of a lane each to those of a whole CTA. Four packs a lane are 16 registers, 32 of FP32.
_HELD = ((1, 2), (8, 1), (32, 1), (32, 2), (32, 4), (128, 2), (128, 4), (256, 4), (512, 4), (1024, 4))
HOLDINGS = tuple(Holding(lanes, phases, moves) for moves in ("vectors", "cover") for lanes, phases in _HELD)

# Threads a row and packs of eight elements a thread at a step, of rows that are read twice.
STREAMS = ((256, 2), (512, 2), (1024, 2))


def original_lanes(width: Number) -> Number:
    """Return the lanes that take a row of the original."""
    return 32 + (256 - 32) * (width > LAST_WARP_WIDTH)
