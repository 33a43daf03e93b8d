"""The tables of a packet's page that go by program, recipe or schema, as Markdown: they format and compute nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from calibration.breakdown import ALL, BEHIND_PEER, LARGE_BYTES, UNDECIDED
from calibration.contest import Fared
from calibration.extents import shape_of
from calibration.outcome import OVER_CUB_SCAN
from calibration.report import show
from calibration.stats import REGRESSION

Figures = Mapping[str, Any]


@frozen
class Column:
    """One figure of a program and dtype: where it is, what it is called, and the most it is meant to be."""

    label: str
    path: tuple[str, ...]
    most: float | None = None

    def of(self, figures: Figures) -> Any:
        """Return the figure, None where there is none."""
        found: Any = figures
        for name in self.path:
            found = found[name]
        return found

    def cell(self, figures: Figures) -> str:
        """Return the figure as text, in bold where it is beyond its goal."""
        value = self.of(figures)
        beyond = self.most is not None and value is not None and value > self.most
        return f"**{show(value)}**" if beyond else show(value)


# Goals are those of every program and dtype over both runs.
BY_PROGRAM = (
    Column("outcomes", ("outcomes",)),
    Column("fit for use", ("measured",)),
    Column("regret, geometric mean", ("regret_geomean",), 1.02),
    Column("95th percentile", ("regret_p95",), 1.08),
    Column("worst", ("regret_worst",), 1.25),
    Column("regressions", ("regressions",)),
    Column("repeated", ("regressions_repeated",), 0),
    Column("admitted", ("admitted_share",)),
    Column("undecided", ("undecided_share",), 0.02),
    Column("over original", ("picked_over_original_geomean",)),
    Column("over torch.compile", ("picked_over_compile_geomean",), 0.75),
)
PEERS = (
    Column("outcomes with peers", ("peers", "count")),
    Column("over the best peer, geometric mean", ("peers", "geomean")),
    Column("95th percentile", ("peers", "p95")),
    Column("worst", ("peers", "worst"), BEHIND_PEER),
    Column(f"share above {BEHIND_PEER}", ("peers", "behind_share"), 0),
)
LARGE = (
    Column("outcomes", ("large", "count")),
    Column("time over copy, geometric mean", ("large", "picked_over_copy_geomean")),
    Column("worst", ("large", "picked_over_copy_worst")),
    Column("bytes a second over copy, geometric mean", ("large", "rate_over_copy_geomean")),
    Column("least", ("large", "rate_over_copy_least")),
)


def by_program(figures: Sequence[Figures]) -> str:
    """Return the figures of every program and dtype, its abstentions, and the picks behind the best peer."""
    undecided = ", ".join(f"`{reason}`" for reason in UNDECIDED)
    note = (
        f"Both runs together. Undecided is the share of {undecided}. Bold is beyond the goal, which the last row says."
    )
    return "\n\n".join(
        (
            note,
            _grid(figures, BY_PROGRAM),
            _abstentions(figures),
            "Beside peers, of the pick's own round:",
            _grid(figures, PEERS),
            _behind(figures),
            f"Launches that move {LARGE_BYTES // 2**20} MiB and more beside a copy of the same tensor:",
            _grid(figures, LARGE),
        )
    )


def recipes(fared: Iterable[Fared], experimental: frozenset[str]) -> str:
    """Return the table of all recipes of all forms: who won, who lost, and what was not timed."""
    note = (
        "Over the training and validation records, each run counted. To beat or lose is to differ by more than "
        f"{REGRESSION - 1:.0%} with separated intervals. The fastest of a record is what perfect foresight picks."
    )
    labels = (
        *(
            "recipe",
            "timed",
            "fastest",
            "beats the original",
            "loses to it",
            "over original: least",
            "median",
            "largest",
        ),
        *("over the fastest, median", "picked in the validation", "not fit for use"),
    )
    lines = [note, "", "| " + " | ".join(labels) + " |", "|---" + "|---:" * (len(labels) - 2) + "|---|"]
    for row in fared:
        name = f"{row.recipe} (experimental)" if row.recipe in experimental else row.recipe
        ratios = row.over_original or (None, None, None)
        counts = (row.timed, row.fastest, row.beats, row.loses, *ratios, row.over_fastest, row.picked)
        rest = ", ".join(f"{status} {count}" for status, count in row.untimed.items()) or "–"
        lines.append(f"| {name} | " + " | ".join(show(value) for value in counts) + f" | {rest} |")
    return "\n".join(lines)


def schemas(crossvalidation: Figures, fits: Sequence[Figures], in_force: Iterable[Figures]) -> str:
    """Return every candidate schema of every form by its held-out regret, those that lost included."""
    chosen = {fit["feature_schema"] for fit in in_force}
    ways = [
        "| form | schema | dtypes | regret, geometric mean | 95th percentile | worst | regressions | |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    for fit in fits:
        for row in fit["dtype_sharing_table"]:
            used = row["sharing"] == fit["dtype_sharing"]
            verdict = "in force" if used and fit["feature_schema"] in chosen else "fitted" if used else ""
            cells = " | ".join(show(row[name]) for name in _HELD_OUT)
            ways.append(f"| {fit['form']} | {fit['feature_schema']} | {row['sharing']} | {cells} | {verdict} |")
    splits = [
        "| schema | dtypes | held out | regret, geometric mean | 95th percentile | worst | regressions |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for name, part in crossvalidation["schemas"].items():
        for split, figures in part["splits"].items():
            cells = " | ".join(show(figures[value]) for value in _HELD_OUT)
            splits.append(f"| {name} | {part['dtype_sharing']} | {split} | {cells} |")
    told = "Held out by geometry, five folds, for each way in which dtypes can share coefficients:"
    further = "As fitted, with geometries, whole widths and whole row counts held out:"
    return "\n\n".join((told, "\n".join(ways), further, "\n".join(splits)))


_HELD_OUT = ("regret_geomean", "regret_p95", "regret_worst", "regressions")


def _grid(figures: Iterable[Figures], columns: Sequence[Column]) -> str:
    lines = ["| program | dtype | " + " | ".join(column.label for column in columns) + " |"]
    lines.append("|---|---|" + "---:|" * len(columns))
    lines += [f"| {_where(part)} | " + " | ".join(column.cell(part) for column in columns) + " |" for part in figures]
    if any(column.most is not None for column in columns):
        lines.append("| at most | | " + " | ".join("" if c.most is None else show(c.most) for c in columns) + " |")
    return "\n".join(lines)


def _abstentions(figures: Iterable[Figures]) -> str:
    lines = ["| program | dtype | the original was kept because | outcomes | share |", "|---|---|---|---:|---:|"]
    for part in figures:
        for reason, found in part["abstentions"].items():
            lines.append(f"| {_where(part)} | `{reason}` | {found['count']} | {show(found['share'])} |")
    return "\n".join(lines)


def _behind(figures: Iterable[Figures]) -> str:
    """List the picks that are behind a peer, once for all dtypes of a form."""
    listed = [
        f"- {part['form']} {o['dtype']} {shape_of(o)}, run {o['run']}: {o['picked']} took "
        f"{show(o['picked_over_best_peer'])} of {o['best_peer']}"
        for part in figures
        if part["dtype"] == ALL
        for o in sorted(part["peers"]["behind"], key=lambda o: -o["picked_over_best_peer"])
    ]
    return "\n".join(listed) or f"No pick is above {BEHIND_PEER} of the best peer."


def cub_scans(outcomes: Iterable[Figures]) -> str:
    """Return how long picks took beside CUB's device scan of as many elements, few rows first; nothing without any."""
    timed = [o for o in outcomes if o.get(OVER_CUB_SCAN) is not None]
    if not timed:
        return ""
    lines = ["| dtype | shape | run | picked | over CUB's device scan |", "|---|---|---|---|---:|"]
    lines += [
        f"| {o['dtype']} | {shape_of(o)} | {o['run']} | {o['picked']} | {show(o[OVER_CUB_SCAN])} |"
        for o in sorted(timed, key=lambda o: (o["rows"], -o["width"], o["dtype"], o["run"]))
    ]
    return "\n".join(lines)


def _where(part: Figures) -> str:
    return f"{part['form']} | {'all' if part['dtype'] == ALL else part['dtype']}"
