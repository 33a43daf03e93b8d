"""Timing on the GPU: graphs of many launches, replayed between events, and read back to see what they hold."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

from attrs import frozen

from calibration.errors import CalibrationError

# A replay is this long or longer: events resolve about half a microsecond, so 1 % means something from 50 us on.
REPLAY_US = 200.0
MAX_LAUNCHES = 200
_ESTIMATE_LAUNCHES = 10


@frozen(eq=False)
class Graph:
    """A captured graph of `launches` equal launches. `replay` enqueues it on the session's stream."""

    launches: int
    replay: Callable[[], None]
    handle: Any


@frozen
class Node:
    """One kernel node of a captured graph, as the driver gives it back. `arguments` are the first two pointers."""

    function: int
    ctas: int
    threads: int
    arguments: tuple[int, int]


class Session:
    """One stream and its events. Everything of a sweep is enqueued here, so that nothing races with anything."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._start, self._stop = cupy.cuda.Event(), cupy.cuda.Event()

    @property
    def pointer(self) -> int:
        """The stream, as launches take it."""
        return int(self.stream.ptr)

    def synchronize(self) -> None:
        """Wait for everything enqueued, on this stream and on the library's own."""
        self.cupy.cuda.Device().synchronize()

    def capture(self, enqueue: Callable[[], None], launches: int) -> Graph:
        """Capture `launches` calls of `enqueue`, which must put its work on this session's stream."""
        self.stream.begin_capture(self.cupy.cuda.runtime.streamCaptureModeThreadLocal)
        try:
            for _ in range(launches):
                enqueue()
        finally:
            graph = self.stream.end_capture()
        return Graph(launches, lambda: graph.launch(self.stream), graph)

    def replay_ns(self, graph: Graph) -> int:
        """Return the time of one replay in whole nanoseconds, between events on the stream.

        An untimed replay goes first: while it runs, the host enqueues the rest, so that no host time lies between the
        events (some microseconds a launch, and not the same for every library).
        """
        graph.replay()
        self._start.record(self.stream)
        graph.replay()
        self._stop.record(self.stream)
        self._stop.synchronize()
        elapsed_ms: float = self.cupy.cuda.get_elapsed_time(self._start, self._stop)
        return round(elapsed_ms * 1e6)

    def launches_for(self, capture: Callable[[int], Graph]) -> int:
        """Return how many launches make a replay long enough, from a short graph replayed twice."""
        trial = capture(_ESTIMATE_LAUNCHES)
        self.replay_ns(trial)
        launch_us = max(self.replay_ns(trial) / 1000 / _ESTIMATE_LAUNCHES, 1e-3)
        return int(max(1, min(MAX_LAUNCHES, math.ceil(REPLAY_US / launch_us))))


def kernel_nodes(graph: Graph) -> tuple[Node, ...]:
    """Read a captured graph's kernel nodes back from the driver.

    Raises
    ------
    CalibrationError : the graph holds a node that is no kernel, or the driver refuses.
    """
    from cuda.bindings import driver

    handle = driver.CUgraph(int(graph.handle.graph))
    _, count = _call(driver.cuGraphGetNodes(handle, 0))
    nodes, _ = _call(driver.cuGraphGetNodes(handle, count))
    found = []
    for node in nodes:
        (kind,) = _call(driver.cuGraphNodeGetType(node))
        if kind != driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL:
            raise CalibrationError(f"the captured graph holds a {kind.name}; only kernels are timed")
        (params,) = _call(driver.cuGraphKernelNodeGetParams(node))
        slots = ctypes.cast(int(params.kernelParams), ctypes.POINTER(ctypes.c_void_p))
        arguments = [ctypes.c_void_p.from_address(slots[i] or 0).value or 0 for i in range(2)]
        found.append(Node(int(params.func), params.gridDimX, params.blockDimX, (arguments[0], arguments[1])))
    return tuple(found)


def _call(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    if int(answer[0]) != 0:
        raise CalibrationError(f"the driver answered {answer[0].name} when a graph was read back")
    return answer[1:]
