"""Timing as the second report did: graphs replayed in random order, a few times between two events."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

WARM_UPS, CALLS_A_PAIR, ORDER_SEED = 8, 5, 913
Run = Callable[[], Any]


def captured(run: Run, calls: int) -> tuple[Any, Any] | str:
    """Return a graph of so many calls and what the last one returned, which lives as long; or how the capture failed.

    The context manager of torch would collect garbage and empty the allocator's cache for each of some 700 graphs.
    """
    import torch

    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    try:
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                run()
            stream.synchronize()
            graph.capture_begin()
            try:
                for _ in range(calls):
                    result = run()
            finally:
                graph.capture_end()
        graph.replay()
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 - a baseline may raise anything; its failure is kept beside the figures
        return f"{type(error).__name__}: {error}"[:500]
    return graph, result


def timed(graphs: Mapping[str, tuple[Any, Any]], rounds: int, calls: int) -> dict[str, tuple[float, ...]]:
    """Return the microseconds of a call, one sample a round; every candidate has one turn a round, in random order."""
    import torch

    samples: dict[str, list[float]] = {name: [] for name in graphs}
    rng, order = random.Random(ORDER_SEED), list(graphs)  # noqa: S311 - an order that anyone can draw again
    for _ in range(rounds):
        rng.shuffle(order)
        for name in order:
            torch.cuda.synchronize()
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(CALLS_A_PAIR):
                graphs[name][0].replay()
            stop.record()
            stop.synchronize()
            samples[name].append(start.elapsed_time(stop) * 1000 / CALLS_A_PAIR / calls)
    return {name: tuple(taken) for name, taken in samples.items()}
