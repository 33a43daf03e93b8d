"""The wide tables: one grid for programs of any family over what people run, rows and widths from 1 to 2^20."""

from __future__ import annotations

from collections.abc import Iterable

from calibration.strata import HIDDEN, ROWS, VOCABULARIES, Grid, Named, RowStratum, WidthStratum

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

# Geometries that the goals name, by family: few wide rows for all, those on which a policy of the first research report
# regressed, and those that normalizations are compared with peers on.
_FEW_WIDE = (Named(1, MOST), Named(4, 2**18))
_REGRESSED = (Named(65, 2048, ("float16",)), Named(1024, 512, ("float16",)), Named(257, 128, ("bfloat16",)))
_OF_NORMS = (Named(128, 8192), Named(1024, 512), Named(1024, 65_536))
NAMED: tuple[tuple[str, tuple[Named, ...]], ...] = (
    ("prefix", _FEW_WIDE),
    ("reduce", (*_FEW_WIDE, *_REGRESSED)),
    ("rownorm", (*_FEW_WIDE, *_OF_NORMS)),
)

# Where draws seldom reach: the most rows and CTAs of a split; rows of the documented recipes and the most steps
# of paired chunks just before traffic leaves L2 (45 of 60 MB); a ragged row past 2^20; the fewest rows of which lanes
# take several.
_HALVES = ("float16", "bfloat16")
_SPLITS = (Named(48, MOST), Named(31, MOST), Named(31, 2**19), Named(1, 2 * MOST - 1))
_NEAR = tuple(
    Named(rows // elements, width, dtypes)
    for elements, dtypes in ((1, _HALVES), (2, ("float32",)))
    for rows, width in ((10_560, 1024), (5280, 2048), (2640, 4096), (1320, 8192), (330, 32_767))
)
_SEVERAL = (
    *(Named(2048, 8, _HALVES), Named(1024, 16, _HALVES)),
    *(Named(2048, 4, ("float32",)), Named(1024, 8, ("float32",))),
)
ANCHORS: dict[str, tuple[Named, ...]] = {"prefix": (*_SPLITS, *_NEAR), "reduce": (Named(1, 2 * MOST - 1), *_SEVERAL)}


def wide(family: str) -> Grid:
    """Return the wide grid of a family: the same for all, but for the geometries named for its first operator.

    Training goes one octave beyond the widest row, since a feature that falls as rows grow is largest at one row of it.
    On 132 SMs an op has about 680 training geometries and 162 to judge them; `calibration.estimate` says how long.
    """
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
        anchors=ANCHORS.get(family.partition(".")[0], ()),
        named=dict(NAMED).get(family.partition(".")[0], ()),
        peers=40,
    )
