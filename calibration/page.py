"""The page of a packet in `docs/`: where it was measured, how the schemas fared, the validation and every outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import frozen

from calibration.agreement import agreement
from calibration.contest import contest, experimental
from calibration.extents import shape_of
from calibration.freeze import in_force
from calibration.gpu import REPLAY_US
from calibration.judge import judge
from calibration.maps import KINDS, file_name
from calibration.packet import Contents, Packet
from calibration.records import MEASURED, PLAIN, POLICY, Geometry
from calibration.report import show, table
from calibration.stats import NOISE, quantile
from calibration.tables import by_program, cub_scans, recipes, schemas

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


@frozen
class Goal:
    """What a validation is to reach: the figure of a run, and the most that it may be."""

    label: str
    most: float
    figure: Callable[[Mapping[str, Any], str], Any]


def _of_run(name: str) -> Callable[[Mapping[str, Any], str], Any]:
    return lambda figures, run: figures["runs"][run][name]


GOALS = (
    Goal("Regret, geometric mean", 1.02, _of_run("regret_geomean")),
    Goal("Regret, 95th percentile", 1.08, _of_run("regret_p95")),
    Goal("Regret, worst", 1.25, _of_run("regret_worst")),
    Goal("Regressions that both runs repeat", 0, lambda figures, _run: len(figures["regressions"])),
    Goal("Picked over torch.compile, geometric mean", 0.75, _of_run("picked_over_compile_geomean")),
)


def page(packet: Packet) -> str:
    """Return the page as Markdown; every figure is one that the packet holds."""
    contents = packet.contents
    assert contents.validation is not None
    assert contents.crossvalidation is not None
    records = (*contents.cohort, *contents.validation_records)
    origin = (
        f"Packet `{packet.digest}`. Made by `python -m calibration.bundle`; `rowsmith packet verify` does every figure "
        "again from the raw samples."
    )
    parts = (
        f"# Validation of the profile {packet.name}",
        origin,
        "## Where it was measured",
        _environment(contents.environment),
        "## Goals",
        _goals(contents.validation),
        "## Figures",
        table(contents.validation),
        "## By program and dtype",
        by_program(_by_program(contents)),
        *_beside_cub(contents.validation["outcomes"]),
        "## Maps",
        _maps(packet),
        "## Recipes",
        recipes(contest(records, contents.validation["outcomes"]), experimental()),
        "## Rounds",
        _rounds(contents),
        "## Automatic over forced",
        _agreement(contents.validation_records),
        "## Length of replays",
        _replays(records),
        "## Schemas on held-out training geometries",
        schemas(contents.crossvalidation, contents.fits, in_force(contents.fits)),
        "## Every outcome",
        _outcomes(contents.validation["outcomes"]),
    )
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _beside_cub(outcomes: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    told = cub_scans(outcomes)
    return ("## Beside CUB's device scan of as many elements", told) if told else ()


def _environment(where: Mapping[str, Any]) -> str:
    target = where["target"]
    libraries = ", ".join(f"{name} {version}" for name, version in sorted(where.get("libraries", {}).items()))
    state = ", ".join(f"{name} {value}" for name, value in where.get("nvml", {}).items())
    begun = f"Begun {where.get('started', 'unknown')}, commit {where.get('commit', 'unknown')}."
    return (
        f"{target['label']}, cc {target['compute_capability']}, {target['sm_count']} SMs, NVRTC {target['nvrtc']}, "
        f"CCCL {target['cccl']}; {libraries}. At the start: {state}. {begun}"
    )


def _goals(validation: Mapping[str, Any]) -> str:
    """A goal is reached where both runs reach it."""
    lines = ["| goal | at most | run 1 | run 2 | |", "|---|---:|---:|---:|---|"]
    for goal in GOALS:
        found = [goal.figure(validation["figures"], run) for run in ("1", "2")]
        known = [value for value in found if value is not None]
        verdict = "reached" if len(known) == 2 and max(known) <= goal.most else "missed" if known else "not measured"
        lines.append(f"| {goal.label} | {show(goal.most)} | {show(found[0])} | {show(found[1])} | {verdict} |")
    return "\n".join(lines)


def _agreement(records: Iterable[Geometry]) -> str:
    note = (
        "The automatic pick through the real dispatch path over the same recipe by name, medians of one record. They "
        f"are one kernel on the same buffers; noise is within {NOISE:.0%}, as the original may drift from itself."
    )
    lines = [
        "| launched | pairs | lowest | highest | geometric mean | within noise | intervals overlap |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for way, found in agreement(records).items():
        names = ("count", "minimum", "maximum", "geomean", "within_noise_share", "overlap_share")
        lines.append(f"| {way} | " + " | ".join(show(found[name]) for name in names) + " |")
    return "\n".join((note, "", *lines))


def _replays(records: Iterable[Geometry]) -> str:
    """How many medians were taken of replays shorter than a replay is meant to be."""
    replays = [
        (quantile(sorted(m.samples_ns), 0.5) / 1000, m.name, record.label)
        for record in records
        for m in record.measurements
        if m.status == MEASURED and m.kind != PLAIN
    ]
    short = sum(replay_us < REPLAY_US for replay_us, _, _ in replays)
    shortest_us, name, label = min(replays)
    return (
        f"Of {len(replays)} medians {short} ({short / len(replays):.1%}) are of replays below {REPLAY_US:.0f} us; the "
        f"shortest is {shortest_us:.1f} us, {name} at {label}."
    )


def _by_program(contents: Contents) -> list[Mapping[str, Any]]:
    """Return the figures by program; of a document that holds none they are computed from its records."""
    validation = contents.validation
    assert validation is not None
    if "by_program" not in validation["figures"]:
        validation = judge(validation["profile"], contents.validation_records, contents.selections)
    found: list[Mapping[str, Any]] = validation["figures"]["by_program"]
    return found


def _maps(packet: Packet) -> str:
    forms = sorted(packet.contents.plan.forms)
    images = [f"![{form}, {kind}]({file_name(packet.name, form, kind)})" for form in forms for kind in KINDS]
    return "\n\n".join(("Drawn by `rowsmith map`: what the profile picks, and the regret that was measured.", *images))


def _rounds(contents: Contents) -> str:
    """How many records hold rounds that joined later, and what that means for the figures."""
    trained = sum(bool(record.joined) for record in contents.cohort)
    judged = sum(bool(record.joined) for record in contents.validation_records)
    if not trained + judged:
        return "All candidates of a geometry took turns in the same rounds."
    moved = [abs(later.moved) for record in (*contents.cohort, *contents.validation_records) for later in record.joined]
    older = sum(
        any(m.in_round < record.by_name[POLICY].in_round for m in record.recipes())
        for record in contents.validation_records
    )
    return (
        f"{trained} of {len(contents.cohort)} training geometries and {judged} of {len(contents.validation_records)} "
        "validation records hold recipes of a later round, which were timed beside the original alone; its median was "
        f"within {max(moved):.2%} of its first. In {older} validation records some recipes were timed before this "
        "profile was frozen. A ratio marked * joins two rounds."
    )


def _outcomes(outcomes: Iterable[Mapping[str, Any]]) -> str:
    lines = [
        "| geometry | run | " + " | ".join(label for _, label in _OUTCOME) + " |",
        "|---|---|" + "---|" * len(_OUTCOME),
    ]
    for part in outcomes:
        across = part.get("across_rounds", ())
        cells = " | ".join(show(part[name]) + " *" * (name in across) for name, _ in _OUTCOME)
        lines.append(f"| {part['dtype']} {shape_of(part)} | {part['run']} | {cells} |")
    return "\n".join(lines)
