"""CuPy's own operation, and CUB's scan of as many elements, captured for the same rounds as everything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from attrs import evolve

from calibration.buffers import Buffers
from calibration.errors import CalibrationError
from calibration.gpu import Graph, Session
from calibration.plan import Planned
from calibration.records import CUB_SCAN, CUPY

_WARM_CALLS = 3
_PREFIX = "prefix.sum"
# CuPy's function for programs of a form; `axis=1` and `out` are those of each. Its `nanmax` and `nanmin` look at
# results on the host, so no graph can hold them.
_NAMES = {
    _PREFIX: "cumsum",
    "reduce.sum": "sum",
    "reduce.max": "amax",
    "reduce.min": "amin",
    "map.divide_by_count.reduce.sum": "mean",
    "reduce.sum.suppress": "nansum",
    "map.divide_by_count.reduce.sum.suppress": "nanmean",
}


def cupy_peers(session: Session, planned: Planned, used: Buffers) -> Mapping[str, Callable[[int], Graph] | str]:
    """Return how to capture CuPy's own operation on the very inputs, and CUB's scan; none of BF16, which CuPy lacks.

    CUB's device scan takes all elements as one row, in place and in a buffer of its own: few wide rows are held against
    it. What cannot be captured is told by its message.
    """
    if planned.dtype == "bfloat16" or planned.form not in _NAMES:
        return {}
    sources = [x.values() for x, _ in used.pairs]
    made = {CUPY: _own(session, planned.form, sources)}
    if planned.form == _PREFIX:
        made[CUB_SCAN] = _scan(session, sources)
    return {name: _tried(capture) for name, capture in made.items()}


def _own(session: Session, form: str, sources: Sequence[Any]) -> Callable[[int], Graph]:
    cupy = session.cupy
    function = getattr(cupy, _NAMES[form])

    def result(source: Any) -> Any:
        rows, width = source.shape
        return cupy.empty((rows, width) if form == _PREFIX else rows, source.dtype)

    turns = cycle([(source, result(source)) for source in sources])

    def call() -> None:
        source, target = next(turns)
        function(source, axis=1, out=target)

    return _capture(session, call)


def _scan(session: Session, sources: Sequence[Any]) -> Callable[[int], Graph]:
    from cupy.cuda import cub

    turns = cycle([session.cupy.zeros(source.size, source.dtype) for source in sources])

    def call() -> None:
        if cub.cub_scan(next(turns), cub.CUPY_CUB_CUMSUM) is None:
            raise CalibrationError("CUB has no scan of this array")

    return _capture(session, call)


def _capture(session: Session, call: Callable[[], Any]) -> Callable[[int], Graph]:
    """Return how to capture a call. What it allocates on the way is of a pool that lives as long as the graph."""

    def capture(launches: int) -> Graph:
        cupy = session.cupy
        pool = cupy.cuda.MemoryPool()
        with session.stream, cupy.cuda.using_allocator(pool.malloc):
            for _ in range(_WARM_CALLS):
                call()
            session.stream.synchronize()
            graph = session.capture(call, launches)
        return evolve(graph, handle=(graph.handle, pool))

    return capture


def _tried(capture: Callable[[int], Graph]) -> Callable[[int], Graph] | str:
    try:
        capture(1)
    except Exception as error:  # noqa: BLE001 - a peer may raise anything; its failure is kept beside our figures
        return f"{type(error).__name__}: {error}"[:2000]
    return capture
