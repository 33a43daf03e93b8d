"""Picks the GPU kernel recipe for a row collective from a frozen cost model, and can show why.

`select` needs no GPU. `scan` runs the pick on a CUDA array; `prepare` makes it ready before a graph capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowsmith.api import prepare, scan, select

__all__ = ["prepare", "scan", "select"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the API when it is first asked for: importing the package costs nothing and needs nothing."""
    if name in __all__:
        from rowsmith import api

        return getattr(api, name)
    raise AttributeError(f"module 'rowsmith' has no attribute {name!r}")
