"""Images that channel norms are tried on. Nothing here needs a GPU: every recipe is asked for elsewhere."""

from __future__ import annotations

from features.proof import Proved, prove
from features.workload import workload
from kernels.channels import CHANNEL_NORMS
from kernels.recipe import Recipe
from kernels.recipes import recipes_of

EVERY = tuple(row for form in CHANNEL_NORMS for row in recipes_of(form))
# Of every recipe some: first and last CTAs, last ones short of positions, and images that end within a CTA.
SMALL = (
    *(
        (1, 1, 7),
        (3, 3, 40),
        (2, 16, 49),
        (3, 32, 40),
        (2, 32, 17),
        (2, 64, 24),
        (1, 64, 33),
        (2, 100, 8),
        (2, 128, 40),
    ),
    *((1, 200, 16), (1, 300, 24), (2, 512, 8), (1, 512, 49), (2, 1000, 5), (3, 130, 1), (5, 300, 1)),
)
# What people run, and the ends of it: one channel, three, one image, large images, and those of the report.
LARGER = (
    *((2, 1, 512 * 512), (8, 3, 224 * 224), (1, 3, 512 * 512), (1, 64, 512 * 512), (4, 64, 128 * 128), (16, 256, 784)),
    *(
        (2, 64, 64 * 64),
        (2, 32, 17 * 19),
        (2, 128, 17 * 19),
        (32, 512, 49),
        (8, 2048, 49),
        (4, 1000, 196),
        (70_000, 96, 1),
    ),
)


def legal(recipe: Recipe, dtype: str, images: int, channels: int, positions: int, alignment: int = 16) -> bool:
    """Tell whether a recipe is proved for images on bases of an alignment."""
    shape = (images, channels, positions)
    work = workload(CHANNEL_NORMS[recipe.form].op, shape, dtype, alignment_bytes=alignment)
    return isinstance(prove(work, recipe), Proved)
