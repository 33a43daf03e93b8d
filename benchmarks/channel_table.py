"""The second report's table, taken again: `python -m benchmarks.channel_table TABLE.tsv` on a machine with torch.

Its cases and its protocol: graph replay, 8 warm-ups, 35 rounds in random order at the main shape and 25 at those of
the transfer, 5 calls between two events. Beside torch's baselines run the original, a recipe that retains channels, one
that reads them again, what automatic selection takes, and the fastest of all recipes in a few rounds taken before.

A replay holds one call, as in the report, so that what takes less than some 5 us is the host's launch of a graph:
`--calls 20` captures as many and tells them apart. No figure of the report is a denominator here.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from attrs import frozen

from benchmarks.channel_baselines import BASELINES, COPY, FORMULAS, SOURCES, baselines
from benchmarks.channel_recipes import BEST, OURS, PICKED, RETAINED, Candidate, Recipes, ours
from benchmarks.replays import CALLS_A_PAIR, WARM_UPS, captured, timed
from calibration.peers import compile_static
from features.workload import workload
from kernels.channel_references import is_close


@frozen
class Case:
    """A shape of the report, what fills it, and how many rounds are taken."""

    part: str
    shape: tuple[int, ...]
    seed: int
    drawn: str
    rounds: int


CASES = (
    Case("main", (4, 64, 512, 512), 42, "uniform", 35),
    *(
        Case("transfer", shape, 881, "normal", 25)
        for shape in ((4, 32, 512, 1024), (4, 128, 256, 512), (2, 64, 64, 64), (4, 64, 512, 512))
    ),
)
DRAWN: dict[str, Callable[[Any, tuple[int, ...]], Any]] = {
    "uniform": lambda torch, shape: torch.rand(*shape, device="cuda").mul_(0.7),
    "normal": lambda torch, shape: torch.randn(*shape, device="cuda"),
}


@frozen
class Row:
    """One candidate's times in one case, in microseconds of a call; none where it was not timed."""

    case: Case
    op: str
    candidate: Candidate
    status: str
    samples_us: tuple[float, ...] = ()
    message: str = ""

    def quantile(self, part: int) -> float:
        """Return the sample at so many quarters of the sorted ones, as the report took quartiles."""
        ordered = sorted(self.samples_us)
        return ordered[min(len(ordered) * part // 4, len(ordered) - 1)]

    @property
    def median_us(self) -> float:
        return median(self.samples_us)


def measured(case: Case, op: str, recipes: Recipes, calls: int) -> Iterator[Row]:
    """Check every candidate on the very input by the evaluator's predicate, and time those that are right."""
    import torch

    torch.manual_seed(case.seed)
    x = DRAWN[case.drawn](torch, case.shape)
    reference = FORMULAS[op](x)
    of_torch = [Candidate(name, run) for name, run in baselines(op, x).items()]
    entries = {c.name: c for c in (*of_torch, *ours(recipes, workload(op, case.shape, "float32"), x, reference))}
    graphs: dict[str, Any] = {}
    ended: dict[str, Ended] = {}
    for name, candidate in entries.items():
        found = _ready(candidate, reference, calls)
        if isinstance(found, Ended):
            ended[name] = found
        else:
            graphs[name] = found
    samples = timed(graphs, case.rounds, calls)
    for name, candidate in entries.items():
        end = ended.get(name, Ended("measured", candidate.told))
        yield Row(case, op, candidate, end.status, samples.get(name, ()), end.message)


@frozen
class Ended:
    """How a candidate ended in a case, and why where it was not timed."""

    status: str
    message: str


def _ready(candidate: Candidate, reference: Any, calls: int) -> Any:
    """Return the graph of a candidate that is right, else how it ended."""
    import torch

    if isinstance(candidate.run, str):
        return Ended("absent", candidate.run)
    try:
        right = candidate.name == COPY or is_close(torch, reference, candidate.run())
    except Exception as error:  # noqa: BLE001 - a baseline may raise anything; its failure is kept beside the figures
        return Ended("failed", f"{type(error).__name__}: {error}"[:500])
    if not right:
        return Ended("wrong", "not within 1e-4 + 1e-4 |candidate| of the reference")
    found = captured(candidate.run, calls)
    return Ended("failed", found) if isinstance(found, str) else found


COLUMNS: dict[str, Callable[[Row], Any]] = {
    "part": lambda r: r.case.part,
    "shape": lambda r: "x".join(map(str, r.case.shape)),
    "program": lambda r: r.op,
    "candidate": lambda r: r.candidate.name,
    "recipe": lambda r: "" if r.candidate.recipe is None else r.candidate.recipe.id,
    "status": lambda r: r.status,
    "median_us": lambda r: f"{r.median_us:.3f}" if r.samples_us else "",
    "q25_us": lambda r: f"{r.quantile(1):.3f}" if r.samples_us else "",
    "q75_us": lambda r: f"{r.quantile(3):.3f}" if r.samples_us else "",
    "registers": lambda r: "" if r.candidate.receipt is None else r.candidate.receipt.registers,
    "local_bytes": lambda r: "" if r.candidate.receipt is None else r.candidate.receipt.local_bytes,
    "seed": lambda r: r.case.seed,
    "message": lambda r: " ".join(r.message.split()),
    "samples_us": lambda r: " ".join(f"{s:.3f}" for s in r.samples_us),
}


def tsv(rows: Sequence[Row], where: Mapping[str, str]) -> str:
    """Return every row with its samples, after lines that say where it was taken."""
    lines = [f"# {name}: {value}" for name, value in where.items()]
    lines.append("\t".join(COLUMNS))
    lines += ["\t".join(str(of(row)) for of in COLUMNS.values()) for row in rows]
    return "\n".join(lines) + "\n"


def table(rows: Sequence[Row]) -> str:
    """Return medians in microseconds as Markdown, and the fastest baseline over the recipes that matter."""
    names = (COPY, *BASELINES, *OURS)
    ratios = tuple(f"fastest baseline / {name}" for name in (RETAINED, PICKED, BEST))
    lines = [f"| part | shape | program | {' | '.join((*names, 'best is', *ratios))} |"]
    lines.append("|---|---|---|" + "---:|" * len(names) + "---|" + "---:|" * len(ratios))
    for case, op in dict.fromkeys((row.case, row.op) for row in rows):
        of = {row.candidate.name: row for row in rows if (row.case, row.op) == (case, op)}
        medians = {name: row.median_us for name, row in of.items() if row.samples_us}
        least = min((medians[name] for name in BASELINES if name in medians), default=None)
        cells = [f"{medians[name]:.2f}" if name in medians else of[name].status for name in names]
        best = of[BEST].candidate.recipe
        over = [
            f"{least / medians[name]:.2f}" if least and name in medians else "–" for name in (RETAINED, PICKED, BEST)
        ]
        shape = " x ".join(map(str, case.shape))
        lines.append(f"| {' | '.join((case.part, shape, op, *cells, '–' if best is None else best.id, *over))} |")
    return "\n".join(lines)


def warm(processes: int) -> None:
    """Compile for every shape into torch's cache, several at a time in processes, before anything is timed."""
    jobs = [(s, op, shape) for shape in dict.fromkeys(case.shape for case in CASES) for s in SOURCES for op in FORMULAS]
    command = [sys.executable, "-m", "benchmarks.channel_table", "--warm"]
    running = [
        subprocess.Popen([*command, json.dumps(jobs[n::processes])], stdout=subprocess.DEVNULL)
        for n in range(min(processes, len(jobs)))
    ]
    for process in running:
        process.wait()


def _warm_here(jobs: str) -> None:
    import torch

    torch.set_grad_enabled(False)
    for number, (source, op, shape) in enumerate(json.loads(jobs)):
        compile_static(SOURCES[source][op], number, (torch.zeros(*shape, device="cuda"),))


def _where(calls: int) -> dict[str, str]:
    import torch

    from calibration.environment import nvml_facts, source_commit

    protocol = f"{WARM_UPS} warm-ups, {CALLS_A_PAIR} replays a pair of events, {calls} calls a replay"
    return {
        "gpu": torch.cuda.get_device_name(),
        "torch": f"{torch.__version__}, CUDA {torch.version.cuda}",
        "driver": str(nvml_facts(torch.cuda.current_device()).get("driver", "unknown")),
        "commit": source_commit(),
        "taken": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "protocol": protocol,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Take the table, write it with every sample, and print its medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=Path("channel-table.tsv"), help="where the rows go")
    parser.add_argument("--calls", type=int, default=1, help="calls that a replayed graph holds; the report had one")
    parser.add_argument("--warm", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.warm:
        _warm_here(given.warm)
        return
    import torch

    torch.set_grad_enabled(False)
    started, recipes = time.monotonic(), Recipes()
    rows: list[Row] = []
    recipes.compile()
    warm(min(12, os.cpu_count() or 1))
    print(f"compiled in {time.monotonic() - started:.0f} s", flush=True)
    for case in CASES:
        for op in FORMULAS:
            rows += measured(case, op, recipes, given.calls)
            given.out.write_text(tsv(rows, _where(given.calls)), encoding="utf-8")
            gc.collect()
            torch.cuda.empty_cache()
        print(f"{case.part} {case.shape}: {time.monotonic() - started:.0f} s", flush=True)
    print(table(rows))
    untimed = [row for row in rows if not row.samples_us]
    print("\n".join(f"{r.case.shape} {r.op} {r.candidate.name}: {r.status}, {r.message}" for r in untimed))


if __name__ == "__main__":
    main()
