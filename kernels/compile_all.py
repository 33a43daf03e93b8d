"""Compiles every recipe for every architecture with the NVRTC at hand; needs no GPU: `python -m kernels.compile_all`.

Nothing is kept, unless `--cache` asks for the user's cubin cache to be filled.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from attrs import frozen

from kernels.compile import cache_folder, compile_source, cubin
from kernels.errors import KernelError, ToolchainError
from kernels.recipe import Recipe
from kernels.recipes import RECIPES, recipe
from kernels.source import entry
from kernels.toolchain import toolchain

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


@frozen
class Job:
    """One kernel to compile; `folder` is the cubin cache to go through, or None for no cache at all."""

    recipe: str
    dtype: str
    architecture: str
    folder: Path | None = None


@frozen
class Outcome:
    """How a compilation ended: the cubin's size, or the compiler's message."""

    job: Job
    cubin_bytes: int
    failure: str | None


def compile_all(
    architectures: Iterable[str] = ARCHITECTURES,
    recipes: Iterable[Recipe] = RECIPES,
    *,
    folder: Path | None = None,
    processes: int | None = None,
) -> tuple[Outcome, ...]:
    """Compile every recipe for each of its dtypes and every architecture that it runs on.

    NVRTC runs one compilation at a time in a process, so the work is spread over processes: as many as there are CPUs
    where `processes` is omitted. They are spawned: a CUDA context does not survive a fork.

    Raises
    ------
    ToolchainError : NVRTC or headers are missing, so nothing would compile.
    """
    toolchain()
    rows = tuple(recipes)
    pairs = [(row, arch) for arch in architectures for row in rows if row.runs_on(arch)]
    jobs = [Job(row.id, dtype, arch, folder) for row, arch in pairs for dtype in row.dtypes]
    workers = min(processes or os.cpu_count() or 1, len(jobs))
    if workers <= 1:
        return tuple(map(_compile, jobs))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        return tuple(pool.map(_compile, jobs))


def _compile(job: Job) -> Outcome:
    row = recipe(job.recipe)
    try:
        if job.folder is None:
            image = compile_source(row, job.dtype, job.architecture, toolchain())
        else:
            image = cubin(row, job.dtype, job.architecture, job.folder).image
    except KernelError as error:
        return Outcome(job, 0, str(error))
    if entry(row, job.dtype).encode() not in image:
        return Outcome(job, len(image), f"{job.recipe} {job.dtype}: the cubin holds no {entry(row, job.dtype)}")
    return Outcome(job, len(image), None)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return how many kernels of each recipe compiled for each architecture, as aligned lines."""
    architectures = tuple(dict.fromkeys(outcome.job.architecture for outcome in outcomes))
    names = tuple(dict.fromkeys(outcome.job.recipe for outcome in outcomes))
    width = max(map(len, ("recipe", *names)))
    lines = ["  ".join(("recipe".ljust(width), *(arch.rjust(7) for arch in architectures)))]
    for name in names:
        cells = []
        for arch in architectures:
            ended = [o for o in outcomes if (o.job.recipe, o.job.architecture) == (name, arch)]
            cells.append(f"{sum(o.failure is None for o in ended)}/{len(ended)}".rjust(7))
        lines.append("  ".join((name.ljust(width), *cells)))
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, print a table, every failure and a last line; return 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m kernels.compile_all", description=__doc__)
    parser.add_argument(
        "--arch", nargs="+", default=ARCHITECTURES, metavar="sm_XX", help="architectures to compile for"
    )
    parser.add_argument("--processes", type=int, metavar="N", help="compilations at a time; one a CPU when omitted")
    parser.add_argument("--cache", action="store_true", help="go through the user's cubin cache, and so fill it")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        tools = toolchain()
        folder = cache_folder() if given.cache else None
        outcomes = compile_all(given.arch, folder=folder, processes=given.processes)
    except ToolchainError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(table(outcomes))
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    for outcome in failed:
        print(f"failed: {outcome.failure}", file=sys.stderr)
    of = f"{len(failed)} of {len(outcomes)} kernels failed" if failed else f"{len(outcomes)} kernels compiled"
    spent_s = time.monotonic() - started
    print(f"{of}: {len(given.arch)} architectures, NVRTC {tools.nvrtc}, CCCL {tools.cccl}, {spent_s:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
