"""Where programs along channels are measured: images of positions people run, and from 1 to 2048 channels."""

from __future__ import annotations

from calibration.strata import Grid, ImageStratum, WidthStratum
from features.usual import named
from kernels.channels import FAMILY

# Channels of models that people run: images, and what convolutional networks and latent diffusion make of them.
_MODEL = (3, 4, 48, 80, 96, 160, 192, 224, 320, 384, 640, 768, 1280)
_ROUND = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_ODD = (5, 7, 13, 17, 31, 33, 47, 63, 65, 99, 127, 129, 201, 257, 385, 511, 513, 1001)
# Positions of an image: squares of feature maps, some that are no whole vectors, one alone, and large images.
_FEW = (1, 4, 8, 49, 64, 144, 196)
_SOME = (256, 323, 784, 900, 1024, 3136, 4096)
_MANY = (12_544, 16_384, 50_176, 65_536, 90_000, 262_144, 524_288)
_IMAGES = (1, 2, 3, 4, 8, 16, 31, 32, 64, 128, 256, 1024)

IMAGES = Grid(
    family=FAMILY,
    # Fewer than a thread holds, those compiled in, on either side of what groups hold, and the widest of a CTA.
    widths=(1, 2, 3, 4, 8, 12, 16, 24, 32, 40, 64, 96, 100, 128, 192, 256, 300, 512, 768, 1024, 2048, 4096),
    rows=(*_IMAGES, 2048, 4096, 2**14, 2**16, 2**18, 2**20),
    sm_multiples=(),
    picks=8,
    inventory=(
        WidthStratum("round", 7, _ROUND),
        WidthStratum("model-shape", 7, _MODEL),
        WidthStratum("odd", 7, _ODD),
    ),
    row_strata=(
        ImageStratum("few positions", (*_IMAGES, 4096, 2**16), _FEW),
        ImageStratum("some positions", _IMAGES, _SOME),
        ImageStratum("many positions", _IMAGES, _MANY),
    ),
    balanced=True,
    spans=(1, 2, 3, 4, 8, 12, 16, 24, 32, 40, 64, 96, 100, 128, 192, 256, 300, 512, 768, 1024, 2048, 4096),
    named=named(FAMILY),
    peers=40,
    positions=(1, 2, 4, 7, 16, 48, 49, 64, 121, 256, 289, 784, 1024, 3136, 4096, 16_384, 50_176, 2**16, 2**18, 2**20),
)
