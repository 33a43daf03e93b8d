"""Picks the GPU kernel recipe for a row collective from a frozen cost model, and can show why.

`select` needs no GPU. `scan`, `sum`, `max`, `min`, `mean`, `softmax`, `rmsnorm`, `layernorm` and the channel norms run
the pick on a CUDA array; `prepare` makes it ready before a graph capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowsmith.api import (
        channel_l2,
        channel_mean_abs,
        channel_rms,
        layernorm,
        prepare,
        rmsnorm,
        scan,
        select,
        softmax,
    )
    from rowsmith.api import row_max as max  # noqa: A004 - as array libraries name it
    from rowsmith.api import row_mean as mean
    from rowsmith.api import row_min as min  # noqa: A004 - as array libraries name it
    from rowsmith.api import row_sum as sum  # noqa: A004 - as array libraries name it

__all__ = [
    "channel_l2",
    "channel_mean_abs",
    "channel_rms",
    "layernorm",
    "max",
    "mean",
    "min",
    "prepare",
    "rmsnorm",
    "scan",
    "select",
    "softmax",
    "sum",
]
# What goes by another name in the API, where the built-in function is near.
_NAMES = {"max": "row_max", "mean": "row_mean", "min": "row_min", "sum": "row_sum"}
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the API when it is first asked for: importing the package costs nothing and needs nothing."""
    if name in __all__:
        from rowsmith import api

        return getattr(api, _NAMES.get(name, name))
    raise AttributeError(f"module 'rowsmith' has no attribute {name!r}")
