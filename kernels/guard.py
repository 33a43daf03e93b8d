"""What the actual buffers of a launch allow: a selection authorises a kernel, never a pointer."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from kernels.dtypes import storage

VECTOR_BYTES = 16


class Verdict(Enum):
    """What runs. Everything but RECIPE is a fallback and is counted by its value."""

    RECIPE = "recipe"
    MISALIGNED = "misaligned"
    IN_PLACE = "in_place"
    OVERLAP = "overlap"
    NO_WORKSPACE = "no_workspace"


@frozen
class Span:
    """Rows in memory: base address, rows, width and pitch in elements of `element_bytes`. `inner` rows interleave."""

    address: int
    rows: int
    width: int
    pitch: int
    element_bytes: int
    inner: int = 1

    @property
    def bytes(self) -> int:
        """The length of the whole byte interval, gaps between rows included."""
        if self.rows == 0 or self.width == 0:
            return 0
        return ((self.rows - 1) * self.pitch + self.width) * self.element_bytes

    def overlaps(self, other: Span) -> bool:
        """Whether the two byte intervals meet; one without bytes meets nothing."""
        ends = self.address + self.bytes, other.address + other.bytes
        return max(self.address, other.address) < min(ends)

    @property
    def aligned(self) -> bool:
        """Whether every row starts on a 16-byte boundary."""
        pitch_free = self.rows <= 1 or self.pitch * self.element_bytes % VECTOR_BYTES == 0
        return self.address % VECTOR_BYTES == 0 and pitch_free


def span(address: int, rows: int, width: int, pitch: int, dtype: str, inner: int = 1) -> Span:
    """Return the span of rows of a storage dtype, of which `inner` consecutive ones interleave."""
    return Span(address, rows, width, pitch, storage(dtype).bytes, inner)


# What a recipe may demand of a tensor: every row on a 16-byte boundary, one span of rows without gaps that starts on
# one, rows without gaps wherever they start, or nothing.
DEMANDS: dict[str, Callable[[Span], bool]] = {
    "rows": lambda span: span.aligned,
    "span": lambda span: span.address % VECTOR_BYTES == 0 and (span.rows <= 1 or span.pitch == span.width),
    "packed": lambda span: span.rows <= 1 or span.pitch == span.width,
    "any": lambda span: True,
}


def judge(x: Span, y: Span, alignment: tuple[str, str] = ("rows", "rows"), weights: tuple[Span, ...] = ()) -> Verdict:
    """Return what may run on these buffers. Overlap is looked at first: it forbids more than misalignment does.

    `alignment` names what the recipe demands of x and of y; of weights it demands what it does of a row of x.
    """
    if x.overlaps(y):
        return Verdict.IN_PLACE if x == y else Verdict.OVERLAP
    of_x, of_y = (DEMANDS[demand] for demand in alignment)
    met = of_y(y) and all(map(of_x, (x, *weights)))
    return Verdict.RECIPE if met else Verdict.MISALIGNED
