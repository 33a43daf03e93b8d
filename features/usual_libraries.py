"""What Liger and Quack run for programs of a form: their forward kernels, which allocate results as a user gets them.

Read from liger-kernel 0.8.5 and quack-kernels 0.6.5. Autograd is left out: it adds host work, which no graph holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from attrs import frozen

from kernels.norms import NORMS

# How Liger's RMSNorm rounds by default: the reciprocal root in FP32, its product with x in the storage dtype.
_CASTING = "llama"


def _liger_softmax(x: Any) -> Any:
    from liger_kernel.ops.softmax import _softmax_forward

    return _softmax_forward(x)[0]


def _liger_rms(x: Any, eps: float) -> Any:
    from liger_kernel.ops.rms_norm import rms_norm_forward

    return rms_norm_forward(x, None, eps, 0.0, _CASTING, None)[0]


def _liger_rms_gamma(x: Any, gamma: Any, eps: float) -> Any:
    from liger_kernel.ops.rms_norm import rms_norm_forward

    return rms_norm_forward(x, gamma, eps, 0.0, _CASTING, None)[0]


def _liger_layer(x: Any, eps: float) -> Any:
    return _liger_layer_gamma_beta(x, _vector(x.dtype, x.device, x.shape[-1], 1.0), _zeros(x), eps)


def _liger_layer_gamma(x: Any, gamma: Any, eps: float) -> Any:
    return _liger_layer_gamma_beta(x, gamma, _zeros(x), eps)


def _liger_layer_gamma_beta(x: Any, gamma: Any, beta: Any, eps: float) -> Any:
    from liger_kernel.ops.layer_norm import layer_norm_forward

    return layer_norm_forward(x, gamma, beta, eps)[0]


def _zeros(x: Any) -> Any:
    return _vector(x.dtype, x.device, x.shape[-1], 0.0)


@lru_cache(maxsize=64)
def _vector(dtype: Any, device: Any, width: int, value: float) -> Any:
    """Liger's LayerNorm always takes gamma and beta: its module keeps such vectors, and graphs hold their addresses."""
    import torch

    return torch.full((width,), value, dtype=dtype, device=device)


def _quack_softmax(x: Any) -> Any:
    from quack.softmax import softmax_fwd

    return softmax_fwd(x)


def _quack_rms(x: Any, eps: float) -> Any:
    from quack.rmsnorm import rmsnorm_fwd

    return rmsnorm_fwd(x, eps=eps)[0]


def _quack_rms_gamma(x: Any, gamma: Any, eps: float) -> Any:
    from quack.rmsnorm import rmsnorm_fwd

    return rmsnorm_fwd(x, gamma, eps=eps)[0]


def _quack_layer(x: Any, eps: float) -> Any:
    return _quack_layer_gamma_beta(x, None, None, eps)


def _quack_layer_gamma(x: Any, gamma: Any, eps: float) -> Any:
    return _quack_layer_gamma_beta(x, gamma, None, eps)


def _quack_layer_gamma_beta(x: Any, gamma: Any, beta: Any, eps: float) -> Any:
    """Call what `layernorm_fwd` calls: that takes FP32 weights alone, which would halve the vectors of 16-bit rows."""
    import torch
    from quack.rmsnorm import _rmsnorm_fwd

    y = torch.empty_like(x)
    _rmsnorm_fwd(x, gamma, y, beta, None, None, None, None, eps, True)
    return y


_Calls = dict[tuple[str, int], Callable[..., Any]]
# By algebra and weights.
_LIGER: _Calls = {
    ("softmax", 0): _liger_softmax,
    ("rms", 0): _liger_rms,
    ("rms", 1): _liger_rms_gamma,
    ("layer", 0): _liger_layer,
    ("layer", 1): _liger_layer_gamma,
    ("layer", 2): _liger_layer_gamma_beta,
}
_QUACK: _Calls = {
    ("softmax", 0): _quack_softmax,
    ("rms", 0): _quack_rms,
    ("rms", 1): _quack_rms_gamma,
    ("layer", 0): _quack_layer,
    ("layer", 1): _quack_layer_gamma,
    ("layer", 2): _quack_layer_gamma_beta,
}


@frozen(eq=False)
class Library:
    """A library that may be there: what must be importable, its names in a registry, and what it runs by form.

    Each function takes what that of `features.usual.TORCH` takes: x, weights, parameters.
    """

    modules: tuple[str, ...]
    distributions: tuple[str, ...]
    calls: Mapping[str, Callable[..., Any]]


def _by_form(calls: _Calls) -> dict[str, Callable[..., Any]]:
    return {form: calls[norm.algebra, norm.weights] for form, norm in NORMS.items()}


# By the name of the peer. PyPI has another `quack`, hence the modules.
LIBRARIES = {
    "liger": Library(
        ("liger_kernel.ops.softmax", "liger_kernel.ops.rms_norm", "liger_kernel.ops.layer_norm"),
        ("liger-kernel",),
        _by_form(_LIGER),
    ),
    "quack": Library(
        ("quack.softmax", "quack.rmsnorm"),
        ("quack-kernels", "nvidia-cutlass-dsl", "apache-tvm-ffi"),
        _by_form(_QUACK),
    ),
}
