"""The page of a packet in `docs/`: where it was measured, how the schemas fared, the validation and every outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from calibration.packet import Packet
from calibration.report import show, table

_SPLITS = ("geometry", "width", "rows")
_OUTCOME = (
    ("picked", "picked"),
    ("reason", "reason"),
    ("automatic_us", "picked, us"),
    ("regret", "regret"),
    ("picked_over_original", "over original"),
    ("original_over_compile", "original over compile"),
    ("picked_over_compile", "over compile"),
    ("picked_over_copy", "over copy"),
)


def page(packet: Packet) -> str:
    """Return the page as Markdown; every figure is one that the packet holds."""
    contents = packet.contents
    assert contents.validation is not None
    assert contents.crossvalidation is not None
    origin = (
        f"Packet `{packet.digest}`. Made by `python -m calibration.bundle`; `rowsmith packet verify` does every figure "
        "again from the raw samples."
    )
    parts = (
        f"# Validation of the profile {packet.name}",
        origin,
        "## Where it was measured",
        _environment(contents.environment),
        "## Figures",
        table(contents.validation),
        "## Schemas on held-out training geometries",
        _schemas(contents.crossvalidation),
        "## Every outcome",
        _outcomes(contents.validation["outcomes"]),
    )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _environment(where: Mapping[str, Any]) -> str:
    target = where["target"]
    libraries = ", ".join(f"{name} {version}" for name, version in sorted(where.get("libraries", {}).items()))
    state = ", ".join(f"{name} {value}" for name, value in where.get("nvml", {}).items())
    begun = f"Begun {where.get('started', 'unknown')}, commit {where.get('commit', 'unknown')}."
    return (
        f"{target['label']}, cc {target['compute_capability']}, {target['sm_count']} SMs, NVRTC {target['nvrtc']}, "
        f"CCCL {target['cccl']}; {libraries}. At the start: {state}. {begun}"
    )


def _schemas(crossvalidation: Mapping[str, Any]) -> str:
    lines = [
        "| schema | dtypes | held out | regret, geometric mean | 95th percentile | worst | regressions |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for name, part in crossvalidation["schemas"].items():
        for split in _SPLITS:
            figures = part["splits"][split]
            values = (figures["regret_geomean"], figures["regret_p95"], figures["regret_worst"], figures["regressions"])
            cells = " | ".join(show(value) for value in values)
            lines.append(f"| {name} | {part['dtype_sharing']} | {split} | {cells} |")
    return "\n".join(lines)


def _outcomes(outcomes: Iterable[Mapping[str, Any]]) -> str:
    lines = [
        "| geometry | run | " + " | ".join(label for _, label in _OUTCOME) + " |",
        "|---|---|" + "---|" * len(_OUTCOME),
    ]
    for part in outcomes:
        cells = " | ".join(show(part[name]) for name, _ in _OUTCOME)
        lines.append(f"| {part['dtype']} {part['rows']} x {part['width']} | {part['run']} | {cells} |")
    return "\n".join(lines)
