"""What the rules of decision 13 leave out of the training journal: `python -m benchmarks.scan_rules [journal]`.

Each rule is counted on what the rules above it leave. A way wins where every other recipe of the record takes at least
3 % longer, and loses where it takes more than 1.03 of the original.
"""

from __future__ import annotations

import json
import lzma
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from kernels.recipe import SPLIT, Recipe
from kernels.recipes import recipes_of

JOURNAL = Path("docs/records/h200-training.jsonl.xz")
FORM, TEMPLATE = "prefix.sum", "scan_any.cu"
CLOSE = 1.03
Times = dict[str, float]


def step(row: Recipe) -> int:
    """Return the elements of a row that its lanes take at a step."""
    return row.lanes * row.items * row.phases


# What each rule leaves out, by recipe, rows and width.
RULES: dict[str, Callable[[Recipe, int, int], bool]] = {
    "more than eight steps, fewer than sixteen paired warps": lambda row, rows, width: (
        row.template == TEMPLATE and step(row) < 8192 and width > 8 * step(row)
    ),
    "eight and sixteen unpaired warps, more than 64 rows": lambda row, rows, width: (
        row.template == TEMPLATE and row.lanes >= 256 and row.phases == 1 and rows > 64
    ),
    "splits of more than 48 rows": lambda row, rows, width: row.role == SPLIT and rows > 48,
    "splits of rows up to 8192": lambda row, rows, width: row.role == SPLIT and width <= 8192,
}


def records(journal: Path) -> Iterator[tuple[int, int, Times]]:
    """Yield rows, width and the median microseconds of each recipe of the catalogue, of every measured geometry."""
    known = {row.id for row in recipes_of(FORM)}
    for line in lzma.decompress(journal.read_bytes()).decode().splitlines()[1:]:
        found = json.loads(line.partition(" ")[2])
        if found["form"] == FORM and found["status"] == "measured":
            timed = [m for m in found["measurements"] if m["name"] in known and m.get("samples_ns")]
            yield (
                found["rows"],
                found["width"],
                {m["name"]: median(m["samples_ns"]) / m["launches"] / 1e3 for m in timed},
            )


def main(journal: Path) -> None:
    """Print a line for each rule: how often it applies, wins it gives up, the most of them, and losses it spares."""
    by_name = {row.id: row for row in recipes_of(FORM)}
    counts = {rule: [0, 0, 1.0, 0] for rule in RULES}
    for rows, width, times in records(journal):
        for name, taken in times.items():
            rule = next((rule for rule, leaves in RULES.items() if leaves(by_name[name], rows, width)), None)
            if rule is None:
                continue
            margin = min(other for least, other in times.items() if least != name) / taken
            count = counts[rule]
            count[0] += 1
            count[1] += margin > CLOSE
            count[2] = max(count[2], margin if margin > CLOSE else 1.0)
            count[3] += taken > CLOSE * times["scan.original"]
    print("| rule | times it leaves out | wins | most | slower than the original |\n|---|---:|---:|---:|---:|")
    for rule, (times_out, wins, most, losses) in counts.items():
        print(f"| {rule} | {times_out} | {wins} | {most:.3f} | {losses} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else JOURNAL)
