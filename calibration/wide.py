"""The wide tables: one grid for programs of any family over what people run, rows and widths from 1 to 2^20."""

from __future__ import annotations

from collections.abc import Iterable

from calibration.images import IMAGES
from calibration.strata import HIDDEN, ROWS, VOCABULARIES, Grid, RowStratum, WidthStratum
from features.usual import anchors, named

MOST = 2**20
_POWERS = tuple(2**k for k in range(21))
# Where most lanes of a step are masked.
_PAST = tuple(2**k + 1 for k in range(5, 14))
_BETWEEN = (
    *(3, 5, 12, 31, 96, 100, 127, 192, 384, 768, 3000, 3072, 4095, 5000, 6144, 7168, 10_000, 12_288, 20_001, 24_576),
    *(4089, 8185, 16_377),  # two whole parts of a split row, whatever its base
    *(40_961, 50_000, 65_537, 100_000, 200_001, 393_216, 600_001),
)
_MODEL = tuple(sorted((*HIDDEN, *VOCABULARIES)))


def _within(widths: Iterable[int]) -> tuple[int, ...]:
    """Return distinct widths from 1 to 2^20, those of models left out, ascending."""
    return tuple(sorted({width for width in widths if 1 <= width <= MOST} - set(_MODEL)))


# Four an octave, so that a draw is spread over the octaves and not over the last of them.
_ROUND = _within(quarter * 2**k // 4 for k in range(21) for quarter in (4, 5, 6, 7) if quarter * 2**k % 4 == 0)
# One short of and past each power of two, and the odd neighbours of seven steps between.
_ODD = _within(
    width
    for k in range(1, 21)
    for width in (2**k - 1, 2**k + 1, *(round(2 ** (k + step / 8)) | 1 for step in range(1, 8)))
)

WIDE_ROWS = tuple(
    RowStratum("many", plain=(*row.plain, 65536, 100_000, 2**17, 200_000, 2**18, 500_000, 2**19, 1_000_000, 2**20))
    if row.name == "many"
    else row
    for row in ROWS
)


def wide(family: str) -> Grid:
    """Return the wide grid of a family: the same for all, but for the geometries named for it.

    Training goes one octave beyond the widest row, since a feature that falls as rows grow is largest at one row of it.
    On 132 SMs an op has about 680 training geometries and 162 to judge them; `calibration.estimate` says how long.
    """
    if family == IMAGES.family:
        return IMAGES
    return Grid(
        family=family,
        widths=tuple(sorted({*_POWERS, *_PAST, *_BETWEEN, 2 * MOST})),
        rows=_POWERS,
        sm_multiples=(1, 2, 4, 8, 16, 32),
        picks=2,
        inventory=(
            WidthStratum("round", 13, _ROUND),
            WidthStratum("model-shape", 13, _MODEL),
            WidthStratum("odd", 13, _ODD),
        ),
        row_strata=WIDE_ROWS,
        balanced=True,
        spans=(*_POWERS, *_PAST, 4089, 8185, 16_377),
        anchors=anchors(family),
        named=named(family),
        peers=40,
    )
