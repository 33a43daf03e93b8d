"""Peers that are there where their library is: tried once a geometry, compared with torch, kept with their failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from attrs import field, frozen

from features.usual import TORCH
from features.usual_libraries import LIBRARIES, Library

# The most that results may differ from torch's, of the largest of these: of wrong rows one is caught, no rounding.
CLOSE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 1e-3}
_ROWS = 4
Call = Callable[..., Any]


def absent(libraries: Mapping[str, Library] = LIBRARIES) -> dict[str, str]:
    """Return why a library does not join, by its name, for those that cannot be imported."""
    found = {name: _missing(library) for name, library in libraries.items()}
    return {name: reason for name, reason in found.items() if reason is not None}


def _missing(library: Library) -> str | None:
    for module in library.modules:
        try:
            import_module(module)
        except Exception as error:  # noqa: BLE001 - a library that is there may fail in its own way; it is told as absent
            return f"{module} cannot be imported ({type(error).__name__}: {error})"[:2000]
    return None


@frozen(eq=False)
class LibraryPeers:
    """The libraries that join. What was tried stays, so that both runs of a validation time the same code."""

    here: Mapping[str, Library]
    _tried: dict[tuple[Any, ...], Mapping[str, Call | str]] = field(factory=dict)

    def calls(self, form: str, key: tuple[Any, ...], arguments: Sequence[Any]) -> Mapping[str, Call | str]:
        """Return what each library runs for a form on such arguments, or why it cannot; `key` names the geometry."""
        if key not in self._tried:
            joining = {name: library.calls[form] for name, library in self.here.items() if form in library.calls}
            self._tried[key] = {name: tried(call, TORCH[form], arguments) for name, call in joining.items()}
        return self._tried[key]


def library_peers(missing: Iterable[str]) -> LibraryPeers:
    """Return the peers of all libraries but the missing ones."""
    left_out = set(missing)
    return LibraryPeers({name: library for name, library in LIBRARIES.items() if name not in left_out})


def tried(call: Call, usual: Call, arguments: Sequence[Any]) -> Call | str:
    """Return a call that compiled, was captured and is close to torch's own on the first and last rows; or its failure.

    The capture is of a graph that is dropped: what fails here would leave the stream of the rounds in capture.
    """
    import torch

    try:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(stream):
            found = call(*arguments)
            apart = _apart(found, usual, arguments)
        torch.cuda.synchronize()
        del found
        with torch.no_grad(), torch.cuda.graph(torch.cuda.CUDAGraph(), stream=stream):
            call(*arguments)
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 - a peer may raise anything; its failure is kept beside our figures
        return f"{type(error).__name__}: {error}"[:2000]
    most = CLOSE[str(arguments[0].dtype).rpartition(".")[2]]
    return call if apart <= most else f"wrong: results are {apart:.3g} of the largest from torch's; {most} is allowed"


def _apart(found: Any, usual: Call, arguments: Sequence[Any]) -> float:
    """Return the largest difference over the largest result, NaN where there is any, of the first and the last rows."""
    x, *others = arguments
    worst = []
    for rows in (slice(0, _ROWS), slice(-_ROWS, None)):
        expected = usual(x[rows], *others).float()
        worst.append(((found[rows].float() - expected).abs().max() / expected.abs().max()).item())
    return float("nan") if any(value != value for value in worst) else max(worst)
