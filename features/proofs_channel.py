"""The proofs of channel norms: that the expression is the formula, and that threads find channels and positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from features.claim import Claim, Condition
from features.program import channel_normalization
from features.workload import Workload
from features.workloads import Workloads
from kernels.channels import CHANNEL_NORMS, held_channels, rereads
from kernels.dtypes import storage
from kernels.guard import VECTOR_BYTES
from kernels.recipe import Recipe

MOST_CHANNELS = 2**31 - 1
# A recipe is legal where its groups have channels for more than this share of what they take at once.
LEAST_SHARE = 8
# Neighbouring threads may take neighbouring channels where these lie near: 8 positions of 4 bytes are a sector.
MOST_POSITIONS = 8

_FORMULAS = {"rms": "sqrt(mean(x^2) + eps)", "mean_abs": "mean(|x|)", "l2": "sqrt(sum(x^2))"}


def channels_closed(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """Channels over the recipe's divisor, unordered, in FP32, stored in the dtype that is loaded; no gaps in memory."""
    norm = CHANNEL_NORMS[recipe.form].norm
    same = work.program == channel_normalization(work.program.dtype, norm)
    return Claim(
        (
            (
                "not_channel_norm",
                same,
                lambda: f"the stored value is not x / {_FORMULAS[norm]} along channels in float32, in its own dtype",
            ),
            (
                "rows_not_contiguous",
                work.row_pitch == work.width,
                lambda: f"row pitch {work.row_pitch} is not the width {work.width}, so images are not whole",
            ),
        ),
        lambda: _facts(work, recipe),
    )


def _facts(work: Workload | Workloads, recipe: Recipe) -> Mapping[str, Any]:
    size = storage(work.dtype).bytes
    span = work.rows * work.width * size
    return {
        "state": "sum of magnitudes" if CHANNEL_NORMS[recipe.form].norm == "mean_abs" else "sum of squares",
        "state_bytes": 4,
        "arithmetic": "float32",
        "images": work.rows // work.inner,
        "channel_stride_elements": work.inner,
        "loads_per_element": 2 if rereads(recipe) else 1,
        "stores_per_element": 1,
        "reread_bytes": span if rereads(recipe) else 0,
        "span_bytes": span,
    }


def channel_count(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """There are as many channels as are compiled in."""
    channels = recipe.phases
    return Claim(
        (
            (
                "channels_differ",
                work.width == channels,
                lambda: f"{work.width} channels are not the {channels} that are compiled in",
            ),
        ),
        lambda: {"channels": channels},
    )


def channels_in_groups(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The groups of a CTA hold all channels at once and are not nearly idle."""
    most = held_channels(recipe)
    return Claim(
        (
            (
                "width_too_large",
                work.width <= most,
                lambda: f"{work.width} channels are more than the {most} that {recipe.lanes} groups hold",
            ),
            *_have_work(work, recipe),
        ),
        lambda: {"groups": recipe.lanes, "most_channels": most},
    )


def channels_in_steps(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The groups of a CTA have channels for more than an eighth of a step, and count them in 32 bits."""
    return Claim(
        (
            (
                "index_overflow",
                work.width <= MOST_CHANNELS,
                lambda: f"{work.width} channels are more than {MOST_CHANNELS}",
            ),
            *_have_work(work, recipe),
        ),
        lambda: {"groups": recipe.lanes, "step_channels": held_channels(recipe)},
    )


def _have_work(work: Workload | Workloads, recipe: Recipe) -> tuple[Condition, ...]:
    at_once = held_channels(recipe)
    enough = LEAST_SHARE * work.width > at_once
    across = recipe.rows_per_cta == recipe.rows_each  # one lane a group: neighbours take channels, not positions
    return (
        (
            "width_too_small",
            enough,
            lambda: f"{work.width} channels are at most an eighth of the {at_once} that {recipe.lanes} groups take",
        ),
        (
            "too_many_positions",
            (work.inner <= MOST_POSITIONS) | (not across),
            lambda: f"neighbouring threads take channels, {work.inner} elements apart; at most {MOST_POSITIONS} pay",
        ),
    )


def whole_positions(work: Workload | Workloads, recipe: Recipe) -> Claim:
    """The positions of an image are whole vectors on boundaries, so that no vector crosses into the next image."""
    each = recipe.rows_each
    return Claim(
        (
            (
                "positions_not_divisible",
                work.inner % each == 0,
                lambda: f"{work.inner} positions of an image are not a multiple of the {each} that a thread takes",
            ),
            (
                "misaligned",
                (each == 1) | (work.alignment_bytes % VECTOR_BYTES == 0),
                lambda: f"bases are {work.alignment_bytes}-byte aligned and {VECTOR_BYTES} are asked for",
            ),
        ),
        lambda: {"positions_per_thread": each, "access_bytes": each * storage(work.dtype).bytes},
    )


CHANNEL_PROOFS: dict[str, Callable[[Workload | Workloads, Recipe], Claim]] = {
    "channels_closed": channels_closed,
    "channel_count": channel_count,
    "channels_in_groups": channels_in_groups,
    "channels_in_steps": channels_in_steps,
    "whole_positions": whole_positions,
}
