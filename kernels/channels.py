"""Channel norms as a table: formulas, and the ways through the channels of images x channels x positions."""

from __future__ import annotations

from attrs import frozen

from kernels.dtypes import STORAGE
from kernels.recipe import Recipe

FAMILY = "channelnorm"


@frozen
class ChannelNorm:
    """What a form's programs divide a row by. `op` names it for people, `norm` is what templates are compiled with."""

    op: str
    form: str
    norm: str
    parameters: tuple[str, ...] = ()

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """What templates are compiled with."""
        return (("NORM", self.norm), ("PARAMETERS", str(len(self.parameters))))


CHANNEL_NORMS: dict[str, ChannelNorm] = {
    norm.form: norm
    for norm in (
        ChannelNorm(
            "channel_rms", "divide(c,map.sqrt.add(map.divide_by_count.reduce.sum.map.square.c,eps))", "rms", ("eps",)
        ),
        ChannelNorm("channel_mean_abs", "divide(c,map.divide_by_count.reduce.sum.map.abs.c)", "mean_abs"),
        ChannelNorm("channel_l2", "divide(c,map.sqrt.reduce.sum.map.square.c)", "l2"),
    )
}
TEMPLATES = tuple(f"channel_{way}.cu" for way in ("original", "vector", "retained", "reread", "tile", "steps"))
# The form that the family is fitted on. The others cost what it costs, but for a root or a division a position.
FITTED = next(iter(CHANNEL_NORMS))

RETAINED, WIDE, REREAD, VECTOR, STEPS = "retained", "wide", "reread", "vector", "steps"
_VECTOR_BYTES = 16


@frozen
class Way:
    """One way through channels; `<op>.<name>` is its recipe.

    Attributes
    ----------
    role : the column set of the schema that prices it.
    lanes : threads beside each other along positions; the other threads of a CTA take other channels of the same.
    channels : those that a thread asks for at once; where it holds a row or a part of it, all that it takes.
    positions : adjacent ones that a thread takes, in one access.
    """

    name: str
    role: str
    template: str
    threads: int
    lanes: int
    channels: int
    positions: int
    proofs: tuple[str, ...]

    @property
    def rows_per_cta(self) -> int:
        """Positions of a CTA."""
        return self.lanes * self.positions

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Those of which a thread's positions are one access, and its channels are registers enough."""
        held = self.channels if self.template == "channel_retained.cu" else 1
        most = _MOST_HELD_BYTES // held
        return tuple(s.name for s in STORAGE.values() if self.positions * s.bytes <= min(_VECTOR_BYTES, most))

    @property
    def reorders(self) -> bool:
        """Whether additions are not in the order of the channels."""
        return self.lanes < self.threads

    @property
    def alignment(self) -> tuple[str, str]:
        """What a launch demands of x and y."""
        return ("span", "span") if self.positions > 1 else ("any", "any")

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """What the template is compiled with, besides the formula."""
        grouped = self.template in ("channel_tile.cu", "channel_steps.cu")
        return (("POSITIONS", str(self.positions)), *([("LANES", str(self.lanes))] if grouped else []))


# Of a thread's registers. 128 of 255 hold channels; of 256 there would be none left.
_MOST_HELD_BYTES = 512


def _retained(channels: int, positions: int) -> Way:
    name = f"retained{channels}" + (f"x{positions}" if positions > 1 else "")
    role = WIDE if positions > 1 else RETAINED
    # 64 threads a CTA: 138.3 us of 4 x 64 x 512 x 512 in FP32 where 128 and 256 took 139.4 (H200, 2026-12-01), and
    # twice as many CTAs of few positions.
    threads = 64 if positions == 1 else 128
    proofs = ("channel_count", "whole_positions")
    return Way(name, role, "channel_retained.cu", threads, threads, channels, positions, proofs)


def _reread(channels: int) -> Way:
    return Way(f"reread{channels}", REREAD, "channel_reread.cu", 128, 128, channels, 1, ("channel_count",))


def _vector(positions: int) -> Way:
    return Way(f"vector{positions}", VECTOR, "channel_vector.cu", 128, 128, 8, positions, ("whole_positions",))


def _tile(lanes: int, groups: int, channels: int, positions: int) -> Way:
    name = f"tile{lanes}x{groups}x{channels}" + (f"v{positions}" if positions > 1 else "")
    proofs = ("channels_in_groups", "whole_positions")
    return Way(name, name, "channel_tile.cu", lanes * groups, lanes, channels, positions, proofs)


def _steps(lanes: int, groups: int, channels: int, positions: int) -> Way:
    name = f"steps{lanes}x{groups}x{channels}" + (f"v{positions}" if positions > 1 else "")
    proofs = ("channels_in_steps", "whole_positions")
    role = name if lanes == 1 else STEPS
    return Way(name, role, "channel_steps.cu", lanes * groups, lanes, channels, positions, proofs)


# Channels compiled in, and positions a thread.
_RETAINED = ((32, 1), (64, 1), (128, 1), (32, 2), (64, 2), (128, 2), (32, 4), (64, 4))
# Lanes along positions, groups of them, channels a thread holds, and positions a thread. A thread alone (one group)
# keeps the original's order. 32 lanes of 16 bytes read 512 adjacent bytes of a channel; 8 lanes make more CTAs of few
# positions, and one lane reads the channels of arrays without positions as adjacent elements.
_TILES = (
    *((128, 1, 16, 1), (32, 8, 8, 1), (32, 16, 16, 1), (32, 16, 32, 1), (16, 64, 32, 1), (1, 128, 8, 1)),
    *((128, 1, 16, 4), (32, 4, 8, 4), (32, 8, 8, 4), (64, 8, 8, 4), (16, 16, 8, 4), (32, 16, 8, 4), (16, 32, 8, 4)),
    *((8, 64, 8, 4), (8, 16, 4, 4), (8, 32, 4, 4), (32, 4, 8, 8), (32, 8, 8, 8), (16, 16, 8, 8)),
)
_STEPS = ((32, 8, 8, 1), (32, 8, 4, 4), (1, 256, 4, 1))

WAYS: tuple[Way, ...] = (
    *(_retained(*held) for held in _RETAINED),
    *map(_reread, (32, 64, 128)),
    *map(_vector, (4, 8)),
    *(_tile(*held) for held in _TILES),
    *(_steps(*taken) for taken in _STEPS),
)


def rereads(recipe: Recipe) -> bool:
    """Tell whether a recipe reads x twice."""
    return recipe.template not in ("channel_retained.cu", "channel_tile.cu")


def held_channels(recipe: Recipe) -> int:
    """Return the channels that the threads of a CTA take of a position at once: those of a thread, times its groups."""
    return recipe.phases * recipe.lanes


# Roundings of a result besides additions, in units of 2^-24 of it: a count past 2^24, the division by it, and a product
# with a reciprocal. A square and eps are two more, of what a root halves.
_FORMULA = 4


def chain(recipe: Recipe, width: int) -> int:
    """1 a channel of a thread, 1 a halving of the groups of a warp, 1 a part that meets in shared memory."""
    in_warp = min(recipe.lanes, max(1, 32 // (recipe.threads // recipe.lanes)))
    return -(-width // recipe.lanes) + (in_warp - 1).bit_length() + recipe.lanes // in_warp + _FORMULA
