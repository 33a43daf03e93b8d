"""What torch runs for a norm over channels: its formula as it is written, and the specialised built-in beside it.

Each is taken eagerly, traced and frozen by TorchScript, and compiled for its shape. What adapts a layout is timed, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from benchmarks.replays import Run
from calibration.peers import compile_static

EPS = 1e-5
# Names of compiled functions, each another one.
_NUMBERS = count()


def _rms(x: Any) -> Any:
    return x / ((x * x).mean(1, keepdim=True) + EPS).sqrt()


def _mean_abs(x: Any) -> Any:
    return x / x.abs().mean(1, keepdim=True)


def _l2(x: Any) -> Any:
    return x / x.norm(2, 1, keepdim=True)


def _rms_builtin(x: Any) -> Any:
    import torch

    last = torch.nn.functional.rms_norm(x.movedim(1, -1), (x.shape[1],), None, EPS)
    return last.movedim(-1, 1).contiguous()


def _mean_abs_builtin(x: Any) -> Any:
    import torch

    return x / (torch.linalg.vector_norm(x, 1, 1, keepdim=True) / x.shape[1])


def _l2_builtin(x: Any) -> Any:
    import torch

    return torch.nn.functional.normalize(x, 2.0, 1, 0.0)


# By op: as the formula is written, and as the built-in that was made for it.
FORMULAS: dict[str, Callable[[Any], Any]] = {"channel_rms": _rms, "channel_mean_abs": _mean_abs, "channel_l2": _l2}
BUILT_IN: dict[str, Callable[[Any], Any]] = {
    "channel_rms": _rms_builtin,
    "channel_mean_abs": _mean_abs_builtin,
    "channel_l2": _l2_builtin,
}
SOURCES: dict[str, Mapping[str, Callable[[Any], Any]]] = {"": FORMULAS, "builtin": BUILT_IN}
COPY = "copy"
# Those that a pick is held against; a copy does another thing, and is a floor.
BASELINES = ("eager", "torchscript", "compile", "builtin", "builtin_torchscript", "builtin_compile")


def baselines(op: str, x: Any) -> dict[str, Run | str]:
    """Return what each baseline runs on x, and the copy; a message where TorchScript or the compiler cannot."""
    import torch

    target = torch.empty_like(x)
    found: dict[str, Run | str] = {COPY: lambda: target.copy_(x)}
    for source, functions in SOURCES.items():
        function = functions[op]
        ways = {
            "": function,
            "torchscript": traced(function, x),
            "compile": compile_static(function, next(_NUMBERS), (x,)),
        }
        for way, taken in ways.items():
            name = "_".join(filter(None, (source, way))) or "eager"
            found[name] = taken if isinstance(taken, str) else _on(taken, x)
    return {name: found[name] for name in (*BASELINES, COPY)}


def traced(function: Callable[[Any], Any], x: Any) -> Callable[[Any], Any] | str:
    """Return a function traced on x and frozen, or why it cannot be."""
    import torch

    class Module(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    try:
        frozen: Callable[[Any], Any] = torch.jit.freeze(torch.jit.trace(Module().eval(), x))
    except Exception as error:  # noqa: BLE001 - a baseline may raise anything; its failure is kept beside the figures
        return f"{type(error).__name__}: {error}"[:500]
    return frozen


def _on(function: Callable[[Any], Any], x: Any) -> Run:
    return lambda: function(x)
