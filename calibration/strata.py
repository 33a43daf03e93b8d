"""The committed tables that a plan is drawn from: strata of the inventory, and where each family is measured."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

from features.usual import Named

# Hidden sizes and vocabularies of models that people run.
HIDDEN = (2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 12288, 16384)
VOCABULARIES = (32000, 50257, 128256, 151936)


@frozen
class ElementStratum:
    """Geometries of at least `low` and fewer than `high` elements."""

    name: str
    low: int
    high: int


@frozen
class RowStratum:
    """Row counts by name: plain ones, and multiples of the SM count with one short of, at and past each."""

    name: str
    plain: tuple[int, ...] = ()
    sm_multiples: tuple[int, ...] = ()

    def rows(self, sm_count: int) -> tuple[int, ...]:
        """Return the row counts on a GPU with this many SMs, ascending."""
        around = {m * sm_count + step for m in self.sm_multiples for step in (-1, 0, 1)}
        return tuple(sorted(around | set(self.plain)))

    def places(self, sm_count: int) -> tuple[Place, ...]:
        """Return the row counts, and that none of them interleave."""
        return tuple((rows, 1) for rows in self.rows(sm_count))


# Rows, and how many consecutive ones interleave.
Place = tuple[int, int]


@frozen
class ImageStratum:
    """Images of so many positions by name; each position is a row, and those of an image interleave."""

    name: str
    images: tuple[int, ...]
    positions: tuple[int, ...]

    def places(self, sm_count: int) -> tuple[Place, ...]:
        """Return rows and positions of an image, those of fewer rows first."""
        return tuple(sorted((images * each, each) for images in self.images for each in self.positions))


@frozen
class WidthStratum:
    """Widths by name, and how many of each element stratum's geometries have them."""

    name: str
    count: int
    widths: Sequence[int] = field(repr=False)


ELEMENTS = (
    ElementStratum("below 2^16", 1, 2**16),
    ElementStratum("2^16 to 2^20", 2**16, 2**20),
    ElementStratum("2^20 to 2^25", 2**20, 2**25),
    ElementStratum("2^25 and above", 2**25, 2**60),
)

ROWS = (
    RowStratum("few", plain=(1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64)),
    RowStratum("SM-count-like", sm_multiples=tuple(range(1, 17))),
    RowStratum(
        "many",
        plain=(
            *(1024, 1500, 2048, 2500, 3000, 4095, 4096, 5000),
            *(8191, 8192, 10000, 12288, 16384, 20000, 32768, 50000, 65535),
        ),
    ),
)


@frozen
class Grid:
    """Where the programs of one family are measured. A new family is a new row of `GRIDS`.

    Attributes
    ----------
    widths : training widths.
    rows : training row counts; `sm_multiples` adds one short of, at and past each multiple of the SM count. Of a family
        whose rows interleave images are counted, of each of `positions`.
    picks : training geometries for each width and dtype, besides the corners that span the domain.
    inventory : width strata of the validation; their counts add up to the geometries of one element stratum.
    row_strata : row strata of the validation, or of images, which share every element stratum that they meet.
    balanced : whether a geometry goes to the row stratum and dtype used least so far, and the share of an element
        stratum that not all width strata meet to the others; else strata take turns and what nothing meets is left out.
    spans : training widths at which every dtype is measured with the most rows that fit.
    anchors : training geometries that are not drawn: the ends of what recipes take, which few draws would meet.
    named : geometries of the inventory that are not drawn.
    peers : on how many drawn geometries of the inventory peers join; None is all.
    """

    family: str
    widths: tuple[int, ...]
    rows: tuple[int, ...]
    sm_multiples: tuple[int, ...]
    picks: int
    inventory: tuple[WidthStratum, ...]
    row_strata: tuple[RowStratum | ImageStratum, ...] = ROWS
    balanced: bool = False
    spans: tuple[int, ...] = ()
    anchors: tuple[Named, ...] = ()
    named: tuple[Named, ...] = ()
    peers: int | None = None
    positions: tuple[int, ...] = ()

    def training_places(self, sm_count: int) -> tuple[Place, ...]:
        """Return the training row counts on a GPU with this many SMs, ascending, and how many of them interleave."""
        if self.positions:
            return ImageStratum("training", self.rows, self.positions).places(sm_count)
        return RowStratum("training", self.rows, self.sm_multiples).places(sm_count)


GRIDS: dict[str, Grid] = {
    grid.family: grid
    for grid in (
        Grid(
            family="prefix.sum",
            # Multiples of the smallest documented chunk, 8 elements x 128 threads (the largest is 8192), and odd ones.
            widths=(
                *(1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192),
                *(11264, 12288, 16384, 24576, 32768, 65536, 131072),
                *(1501, 2051, 5001, 20001, 50001, 100001),
            ),
            rows=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536),
            sm_multiples=(1, 2, 4, 8, 16, 32),
            picks=4,
            inventory=(
                WidthStratum("round", 6, tuple(w for w in range(1024, 2**20 + 1, 1024) if w not in HIDDEN)),
                WidthStratum("model-shape", 6, HIDDEN + VOCABULARIES),
                WidthStratum("odd", 6, range(1, 2**20, 2)),
            ),
        ),
        Grid(
            family="reduce",
            # From one element to a row that many CTAs share, of whole vectors and not; every arrangement has some.
            widths=(
                *(1, 2, 5, 8, 16, 27, 32, 63, 64, 100, 127, 128, 256, 384, 512, 1000, 1024),
                *(1536, 2048, 3584, 4096, 8192, 12289, 16384, 32768, 50257, 65536, 131072, 262144, 1048576),
            ),
            rows=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536, 262144, 1048576),
            sm_multiples=(1, 2, 4, 8),
            picks=4,
            inventory=(
                WidthStratum("narrow", 4, range(1, 129)),
                WidthStratum("round", 6, tuple(w for w in range(256, 2**20 + 1, 256) if w not in HIDDEN)),
                WidthStratum("model-shape", 5, HIDDEN + VOCABULARIES),
                WidthStratum("odd", 3, range(129, 2**20, 2)),
            ),
        ),
    )
}
