"""What a user would run instead: torch, libraries that are there, CuPy, and a copy, in the same rounds."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

from calibration.buffers import Buffers, Call
from calibration.extents import shape_in_memory
from calibration.gpu import Graph, Session
from calibration.inputs import Guarded
from calibration.peers_cupy import cupy_peers
from calibration.peers_libraries import LibraryPeers, absent, library_peers
from calibration.plan import Planned
from calibration.records import COMPILED, COPY, EAGER
from features.usual import PARAMETERS, TORCH
from kernels.recipes import original_of

_WARM_CALLS = 3


def available() -> str | None:
    """Return why there are no peers here, or None where torch sees a GPU."""
    try:
        import torch
    except ImportError as error:
        return f"torch cannot be imported ({error})"
    return None if torch.cuda.is_available() else "torch sees no CUDA device"


class TorchPeers:
    """The peers of a session. What is compiled stays, so that both runs of a validation time the same code."""

    def __init__(self, libraries: LibraryPeers) -> None:
        self._libraries = libraries
        self._compiled: dict[tuple[str, str, *tuple[int, ...]], Callable[..., Any] | str] = {}

    def __call__(self, session: Session, planned: Planned, used: Buffers) -> Mapping[str, Callable[[int], Graph] | str]:
        """Return how to capture each peer on the very inputs, or why it cannot be run."""
        import torch

        calls = [_arguments(call) for call in used.calls]
        turns = cycle([(torch.empty_like(source), source) for source, *_ in calls])
        peers: dict[str, Callable[[int], Graph] | str] = {COPY: _capture(session, lambda: _copy(*next(turns)))}
        peers[EAGER] = _capture(session, rotating(_spread(TORCH[planned.form]), calls))
        further = self._libraries.calls(planned.form, planned.key, calls[0])
        for name, run in {COMPILED: self._compiled_for(planned, calls[0]), **further}.items():
            peers[name] = run if isinstance(run, str) else _capture(session, rotating(_spread(run), calls))
        return {**peers, **cupy_peers(session, planned, used)}

    def _compiled_for(self, planned: Planned, arguments: Sequence[Any]) -> Callable[..., Any] | str:
        if planned.key not in self._compiled:
            self._compiled[planned.key] = compile_static(TORCH[planned.form], len(self._compiled), arguments)
        return self._compiled[planned.key]


def _arguments(call: Call) -> tuple[Any, ...]:
    """Return what torch's function takes on the very inputs of a launch."""
    x, _, *given = call
    vectors = (tensor(vector).reshape(-1) for operands in given for vector in operands.weights)
    return (tensor(x), *vectors, *(number for operands in given for number in operands.parameters))


def _spread(function: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    return lambda arguments: function(*arguments)


def rotating(function: Callable[[Any], Any], sources: Sequence[Any]) -> Callable[[], Any]:
    """Return a call of `function` on the next source. With several, it holds as many results, its own included.

    An allocator gives the memory of a dropped result to the next one, which would find it in L2.
    """
    turns = cycle(sources)
    held: deque[Any] = deque(maxlen=len(sources) - 1)
    return lambda: held.append(function(next(turns)))


def _copy(target: Any, source: Any) -> None:
    target.copy_(source)


def compile_static(function: Callable[..., Any], number: int, arguments: Sequence[Any]) -> Callable[..., Any] | str:
    """Compile for one static shape, or tell why not. Each has its own code object: torch gives up after a few of one.

    The function holds nothing but its arguments: no default, no closure.
    """
    import torch

    name = f"{function.__name__}_{number}"
    fresh = types.FunctionType(function.__code__.replace(co_name=name), function.__globals__, name)
    compiled: Callable[..., Any] = torch.compile(fresh, dynamic=False)
    try:
        compiled(*arguments)
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 - a peer's compiler may raise anything; its failure is kept beside our figures
        return f"{type(error).__name__}: {error}"[:2000]
    return compiled


def _capture(session: Session, function: Callable[[], Any]) -> Callable[[int], Graph]:
    def capture(launches: int) -> Graph:
        import torch

        stream = torch.cuda.ExternalStream(session.pointer)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            for _ in range(_WARM_CALLS):
                function()
            stream.synchronize()
            graph.capture_begin()
            for _ in range(launches):
                function()
            graph.capture_end()

        def replay() -> None:
            with torch.cuda.stream(stream):
                graph.replay()

        return Graph(launches, replay, graph)

    return capture


def tensor(x: Guarded) -> Any:
    """Return the tensor's elements as a torch tensor on the same memory."""
    import cupy
    import torch

    kind = cupy.uint16 if x.dtype == "bfloat16" else x.dtype
    seen = torch.from_dlpack(x.body.view(kind).reshape(x.shape))
    return seen.view(torch.bfloat16) if x.dtype == "bfloat16" else seen


def warm(planned: Iterable[Planned], processes: int) -> None:
    """Compile every shape into the caches of torch and the libraries, several at a time, before any round starts."""
    shares: list[list[list[Any]]] = [[] for _ in range(max(1, processes))]
    for number, point in enumerate(planned):
        shape = shape_in_memory(point.rows, point.width, point.inner)
        shares[number % len(shares)].append([point.form, point.dtype, *shape])
    command = [sys.executable, "-m", "calibration.peers"]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for share in shares
        if share
    ]
    for process, share in zip(running, (share for share in shares if share), strict=True):
        assert process.stdin is not None
        process.stdin.write(json.dumps(share).encode())
        process.stdin.close()
    for process in running:
        process.wait()


def _warm_here() -> None:
    """Compile the shapes that standard input lists. A failure shows again, and is kept, when the sweep compiles it."""
    import torch

    libraries = library_peers(absent())
    for number, (form, dtype, *shape) in enumerate(json.load(sys.stdin)):
        row, like = original_of(form), {"dtype": getattr(torch, dtype), "device": "cuda"}
        source = torch.empty(shape, **like).uniform_()
        vectors = [torch.ones(shape[-1], **like) for _ in range(row.weights)]
        arguments = (source, *vectors, *(PARAMETERS[name] for name in row.parameters))
        compile_static(TORCH[form], number, arguments)
        libraries.calls(form, (number,), arguments)
        del source, arguments


if __name__ == "__main__":
    _warm_here()
