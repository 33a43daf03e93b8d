"""What people run, by program and family: torch's own function, shapes that goals name, and values of parameters.

Calibration measures beside these and draws from these; a new family adds rows here and no code there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from kernels.channels import CHANNEL_NORMS
from kernels.dtypes import STORAGE
from kernels.norms import NORMS

# What torch takes for them where a caller says nothing: `layer_norm`'s, which models take for RMSNorm as often as 1e-6.
PARAMETERS = {"eps": 1e-5}


def _prefix_sum(x: Any) -> Any:
    return x.cumsum(-1)


def _sum(x: Any) -> Any:
    return x.sum(-1)


def _max(x: Any) -> Any:
    return x.amax(-1)


def _min(x: Any) -> Any:
    return x.amin(-1)


def _mean(x: Any) -> Any:
    return x.mean(-1)


def _nansum(x: Any) -> Any:
    return x.nansum(-1)


def _nanmean(x: Any) -> Any:
    return x.nanmean(-1)


def _nanmax(x: Any) -> Any:
    return x.nan_to_num(nan=float("-inf"), posinf=float("inf"), neginf=float("-inf")).amax(-1)


def _nanmin(x: Any) -> Any:
    return x.nan_to_num(nan=float("inf"), posinf=float("inf"), neginf=float("-inf")).amin(-1)


def _softmax(x: Any) -> Any:
    return x.softmax(-1)


def _rms_norm(x: Any, eps: float) -> Any:
    import torch

    return torch.nn.functional.rms_norm(x, x.shape[-1:], None, eps)


def _rms_norm_gamma(x: Any, gamma: Any, eps: float) -> Any:
    import torch

    return torch.nn.functional.rms_norm(x, x.shape[-1:], gamma, eps)


def _layer_norm(x: Any, eps: float) -> Any:
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:], None, None, eps)


def _layer_norm_gamma(x: Any, gamma: Any, eps: float) -> Any:
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:], gamma, None, eps)


def _layer_norm_gamma_beta(x: Any, gamma: Any, beta: Any, eps: float) -> Any:
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:], gamma, beta, eps)


def _channel_rms(x: Any, eps: float) -> Any:
    return x / ((x * x).mean(1, keepdim=True) + eps).sqrt()


def _channel_mean_abs(x: Any) -> Any:
    return x / (x.norm(1, 1, keepdim=True) / x.shape[1])


def _channel_l2(x: Any) -> Any:
    return x / x.norm(2, 1, keepdim=True)


_CHANNEL_NORMS: dict[str, Callable[..., Any]] = {
    "rms": _channel_rms,
    "mean_abs": _channel_mean_abs,
    "l2": _channel_l2,
}
_NORMS: dict[tuple[str, int], Callable[..., Any]] = {
    ("softmax", 0): _softmax,
    ("rms", 0): _rms_norm,
    ("rms", 1): _rms_norm_gamma,
    ("layer", 0): _layer_norm,
    ("layer", 1): _layer_norm_gamma,
    ("layer", 2): _layer_norm_gamma_beta,
}
# What torch runs for programs of a form, on x, its weights and its parameters; for extremes without NaN it has no
# function of its own. Each is compiled by torch from its own code, so it holds nothing but arguments.
TORCH: dict[str, Callable[..., Any]] = {
    "prefix.sum": _prefix_sum,
    "reduce.sum": _sum,
    "reduce.max": _max,
    "reduce.min": _min,
    "map.divide_by_count.reduce.sum": _mean,
    "reduce.sum.suppress": _nansum,
    "reduce.max.suppress": _nanmax,
    "reduce.min.suppress": _nanmin,
    "map.divide_by_count.reduce.sum.suppress": _nanmean,
    **{form: _NORMS[norm.algebra, norm.weights] for form, norm in NORMS.items()},
    **{form: _CHANNEL_NORMS[norm.norm] for form, norm in CHANNEL_NORMS.items()},
}


@frozen
class Named:
    """A geometry that is in a wide plan whatever the seed."""

    rows: int
    width: int
    dtypes: tuple[str, ...] = tuple(STORAGE)
    inner: int = 1


def _images(images: int, channels: int, positions: int, dtypes: tuple[str, ...] = tuple(STORAGE)) -> Named:
    return Named(images * positions, channels, dtypes, positions)


# Geometries that the goals name: few wide rows for all, those on which a policy of the first research report regressed,
# those that normalizations are compared with peers on, and images of the second report, the small ones of which were
# slower there than what torch ran.
_FEW_WIDE = (Named(1, 2**20), Named(4, 2**18))
_REGRESSED = (Named(65, 2048, ("float16",)), Named(1024, 512, ("float16",)), Named(257, 128, ("bfloat16",)))
_OF_NORMS = (Named(128, 8192), Named(1024, 512), Named(1024, 65_536))
_OF_CHANNELS = (
    *(_images(4, 64, 512 * 512), _images(4, 32, 512 * 1024), _images(4, 128, 256 * 512), _images(2, 64, 64 * 64)),
    *(_images(2, 64, 128 * 128), _images(32, 512, 49)),
)
# By the first operator of a family.
NAMED: dict[str, tuple[Named, ...]] = {
    "prefix": _FEW_WIDE,
    "reduce": (*_FEW_WIDE, *_REGRESSED),
    "rownorm": (*_FEW_WIDE, *_OF_NORMS),
    "channelnorm": _OF_CHANNELS,
}


def named(family: str) -> tuple[Named, ...]:
    """Return the geometries that every inventory of a family has, and no training set."""
    return NAMED.get(family.partition(".")[0], ())


# Where draws seldom reach: the most rows and CTAs of a split; rows of the documented recipes and the most steps of
# paired chunks just before traffic leaves L2 (45 of 60 MB); a ragged row past 2^20; the fewest rows of which lanes take
# several.
_HALVES = ("float16", "bfloat16")
_SPLITS = (Named(48, 2**20), Named(31, 2**20), Named(31, 2**19), Named(1, 2**21 - 1))
_NEAR = tuple(
    Named(rows // elements, width, dtypes)
    for elements, dtypes in ((1, _HALVES), (2, ("float32",)))
    for rows, width in ((10_560, 1024), (5280, 2048), (2640, 4096), (1320, 8192), (330, 32_767))
)
_SEVERAL = (
    *(Named(2048, 8, _HALVES), Named(1024, 16, _HALVES)),
    *(Named(2048, 4, ("float32",)), Named(1024, 8, ("float32",))),
)
ANCHORS: dict[str, tuple[Named, ...]] = {"prefix": (*_SPLITS, *_NEAR), "reduce": (Named(1, 2**21 - 1), *_SEVERAL)}


def anchors(family: str) -> tuple[Named, ...]:
    """Return the geometries that every training set of a family has."""
    return ANCHORS.get(family.partition(".")[0], ())
