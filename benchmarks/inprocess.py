"""Without HTTP or database: geometries scored and admitted in a batch, and full selection records."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.figure import Figure
from benchmarks.subject import profile
from features.program import program_of
from features.workload import workload
from features.workloads import Workloads
from policy.batch import select_batch
from policy.select import recorded, select

GEOMETRIES = 100_000
RECORDS = 4_000
ROUNDS = 5


def figures() -> Iterator[Figure]:
    """Yield the median of a few rounds of each."""
    asked = profile()
    receipts = recorded(asked)
    rng = np.random.default_rng(1)
    rows = rng.integers(1, 65_536, GEOMETRIES)
    width = 1024 * rng.integers(1, 65, GEOMETRIES)
    works = Workloads(program_of("scan", "float16"), rows, width, width)

    def batch() -> None:
        select_batch(works, asked.target, asked, receipts)

    yield Figure("geometries scored and admitted in a batch", GEOMETRIES / _median_s(batch), "a second", 100_000)

    def records() -> None:
        for number in range(RECORDS):
            work = workload("scan", [number + 1, 8192], "float16")
            assert select(work, asked.target, asked, receipts).id

    yield Figure("full selection records", RECORDS / _median_s(records), "a second", 5_000)


def _median_s(work: Callable[[], None]) -> float:
    work()
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)
