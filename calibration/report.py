"""A validation document as Markdown, for docs and for reading on a terminal: it formats and computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibration.extents import shape_of

_ROWS = (
    ("outcomes", "Outcomes"),
    ("measured", "Fit for use"),
    ("regret_geomean", "Regret, geometric mean"),
    ("regret_p95", "Regret, 95th percentile"),
    ("regret_worst", "Regret, worst"),
    ("top1_share", "Fastest recipe picked"),
    ("regressions", "Regressions"),
    ("improvements", "Improvements"),
    ("proved_share", "A recipe besides the original is proved"),
    ("admitted_share", "A recipe is admitted"),
    ("picked_over_original_geomean", "Picked over original, geometric mean"),
    ("original_over_compile_geomean", "Original over torch.compile, geometric mean"),
    ("picked_over_compile_geomean", "Picked over torch.compile, geometric mean"),
    ("picked_over_copy_geomean", "Picked over copy, geometric mean"),
    ("automatic_agrees_with_forced_share", "Automatic pick and the same recipe forced: intervals overlap"),
    ("ambiguous", "Ambiguous: fastest recipes not separated"),
)


def table(validation: Mapping[str, Any]) -> str:
    """Return the figures of both runs side by side, then abstentions, host search time and every regression."""
    figures = validation["figures"]["runs"]
    runs = list(figures)
    lines = [f"Profile `{validation['profile'][:12]}`, {validation['regime']}, {validation['standing']}.", ""]
    lines += [
        "| | " + " | ".join(f"run {run}" if run.isdigit() else run for run in runs) + " |",
        "|---" * (len(runs) + 1) + "|",
    ]
    lines += [f"| {label} | " + " | ".join(show(figures[run][name]) for run in runs) + " |" for name, label in _ROWS]
    for reason in sorted({reason for run in runs for reason in figures[run]["abstentions"]}):
        counts = " | ".join(str(figures[run]["abstentions"].get(reason, 0)) for run in runs)
        lines.append(f"| Abstained: `{reason}` | {counts} |")
    search = validation["host_search"]
    if search["samples_ns"]:
        lines += [
            "",
            f"Host search time: median {show(search['median_us'])} us, worst {show(search['worst_us'])} us.",
        ]
    lines += ["", f"Regressions repeated in both runs: {len(validation['figures']['regressions'])}.", ""]
    lines += [_regression(part) for part in validation["regressions"]]
    return "\n".join([*lines, "", validation["note"], ""])


def _regression(part: Mapping[str, Any]) -> str:
    where = f"{part['form']} {part['dtype']} {shape_of(part)}"
    return f"- {where}, run {part['run']}: {part['picked']} took {show(part['picked_over_original'])} of the original."


def show(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
