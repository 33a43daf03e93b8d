"""Timing on the GPU: graphs of many launches, replayed between events, and read back to see what they hold."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable
from typing import Any

from attrs import frozen

from calibration.errors import CalibrationError
from calibration.rotation import whole_turns

# A replay is this long or longer: events resolve about half a microsecond, so 1 % means something from 50 us on.
REPLAY_US = 200.0
# The smallest kernels take 1.1 us inside a graph on an H200 (driver 580): 182 launches are 200 us. More than this many
# would be a kernel that takes less than a launch does.
MAX_LAUNCHES = 256
# Two graphs tell what one launch more costs; a single one counts its own fixed cost, some microseconds, as launches.
_TRIAL_LAUNCHES = (10, 40)
_LENGTHEN = 1.1
# Plain launches wait behind work that takes the GPU this many times as long as the host takes to enqueue them.
_LEAD = 1.5


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
        return self._elapsed_ns()

    def long_graph(self, capture: Callable[[int], Graph], pairs: int = 1) -> Graph:
        """Return a graph whose replay takes `REPLAY_US` or longer, or one of `MAX_LAUNCHES`.

        What a launch takes is estimated from two lengths; the graph is captured once more where its replay still is
        too short. Every graph uses each of `pairs` buffer pairs equally often.
        """
        graph = capture(_launches(REPLAY_US, self._launch_us(capture, pairs), pairs))
        taken_us = self._settled_us(graph)
        if taken_us < REPLAY_US and graph.launches < MAX_LAUNCHES:
            length = _launches(_LENGTHEN * REPLAY_US, taken_us / graph.launches, pairs)
            graph = graph if length == graph.launches else capture(length)
        return graph

    def lead_replays(self, enqueue: Callable[[], None], launches: int) -> int:
        """Return how many replays of 200 us keep the GPU busy while the host enqueues that many plain launches."""
        self.synchronize()
        begun_ns = time.perf_counter_ns()
        for _ in range(launches):
            enqueue()
        return math.ceil(_LEAD * (time.perf_counter_ns() - begun_ns) / 1000 / REPLAY_US)

    def plain_ns(self, enqueue: Callable[[], None], launches: int, lead: Graph, replays: int) -> int:
        """Return the time of `launches` plain launches in whole nanoseconds, between events on the stream.

        They are enqueued behind untimed replays of `lead`, so that here too no host time lies between the events.
        """
        for _ in range(replays):
            lead.replay()
        self._start.record(self.stream)
        for _ in range(launches):
            enqueue()
        self._stop.record(self.stream)
        return self._elapsed_ns()

    def _elapsed_ns(self) -> int:
        self._stop.synchronize()
        elapsed_ms: float = self.cupy.cuda.get_elapsed_time(self._start, self._stop)
        return round(elapsed_ms * 1e6)

    def _settled_us(self, graph: Graph) -> float:
        """Return the time of a graph's second timed replay: its first ones may upload it."""
        self.replay_ns(graph)
        return self.replay_ns(graph) / 1000

    def _launch_us(self, capture: Callable[[int], Graph], pairs: int) -> float:
        """Return what one launch more adds to a replay; of a short graph that is long enough, the whole share."""
        few, many = (whole_turns(launches, pairs) for launches in _TRIAL_LAUNCHES)
        many = max(many, few + pairs)
        short_us = self._settled_us(capture(few))
        if short_us >= REPLAY_US:
            return short_us / few
        return (self._settled_us(capture(many)) - short_us) / (many - few)


def _launches(work_us: float, launch_us: float, pairs: int) -> int:
    """Return how many launches make up the work, at most as many as a graph may hold; noise may be no time at all."""
    enough = MAX_LAUNCHES if launch_us * MAX_LAUNCHES <= work_us else math.ceil(work_us / launch_us)
    return min(whole_turns(enough, pairs), max(1, MAX_LAUNCHES // pairs) * pairs)


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
