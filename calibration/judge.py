"""The validation document: every outcome of both runs, the figures together, and the standing they give a profile."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibration.agreement import agreement, holds_plain
from calibration.breakdown import by_program
from calibration.cohort import canonical
from calibration.errors import RecordError
from calibration.outcome import outcome
from calibration.records import MEASURED, VALIDATION, Geometry
from calibration.stats import geomean, judge_samples, quantile, spread
from kernels.identity import digest

# Documents of the first schema hold no figures by program; they are judged again as they were.
FIRST_SCHEMA, VALIDATION_SCHEMA = "rowsmith.validation/1", "rowsmith.validation/2"
STANDARD, EXPERIMENTAL = "standard", "experimental"
NOTE = (
    "Regret is of the picked recipe measured by name over the fastest recipe of the same round; every other ratio has "
    "the automatic pick or the original above. Each ratio is of one round; only their means join rounds."
)
ACROSS_NOTE = (
    "Recipes that came later were timed in rounds of their own, beside an original within 2 % of its first median; the "
    "ratios that join two rounds are listed as across_rounds in their outcome."
)
# Reasons under which the policy's pick is not an abstention.
_ACTED = ("admitted", "forced")
_RATIOS = ("picked_over_original", "original_over_compile", "picked_over_compile", "picked_over_copy")


def judge(
    profile: str,
    records: Iterable[Geometry],
    selections: Iterable[Mapping[str, Any]],
    host_search_ns: Sequence[int] = (),
    schema: str = VALIDATION_SCHEMA,
) -> dict[str, Any]:
    """Return the validation of a profile; `figures.regressions` lists those that both runs repeat.

    Parameters
    ----------
    profile : digest of the profile document that was judged.
    records : geometry records; those of purpose `validation` are judged, drifted and failed ones without figures.
    selections : the facts of every selection that the records name.
    host_search_ns : what each search of a live process took on the host, the original's compile excluded.
    schema : that of a stored document to judge again.

    Raises
    ------
    RecordError : an unknown schema, no validation record, a selection missing or of another profile, or a host time
        that is none.
    """
    if schema not in (FIRST_SCHEMA, VALIDATION_SCHEMA):
        raise RecordError(f"validation schema {schema!r} is not {VALIDATION_SCHEMA}; use a matching release")
    latest = schema == VALIDATION_SCHEMA
    by_id = {digest(facts): facts for facts in selections}
    for name, facts in by_id.items():
        if (found := facts["provenance"]["profile"]) != profile:
            raise RecordError(f"selection {name[:12]} is of profile {found[:12]}, not of {profile[:12]} that is judged")
    judged = canonical(record for record in records if record.purpose == VALIDATION)
    if not judged:
        raise RecordError("no validation record to judge; measure the inventory first")
    outcomes = [outcome(record, by_id, with_peers=latest) for record in judged]
    repeated = repeated_regressions(outcomes)
    return {
        "schema": schema,
        "profile": profile,
        "regime": judged[0].regime,
        "note": f"{NOTE} {ACROSS_NOTE}" if any(record.joined for record in judged) else NOTE,
        "figures": {
            "runs": {
                "1": figures([o for o in outcomes if o["run"] == 1]),
                "2": figures([o for o in outcomes if o["run"] == 2]),
                "both": figures(outcomes),
            },
            "regressions": repeated,
            **({"by_program": by_program(outcomes, repeated)} if latest else {}),
        },
        "regressions": [_brief(o) for o in outcomes if o["regression"]],
        "improvements": [_brief(o) for o in outcomes if o["improvement"]],
        # Only with plain launches, which earlier sweeps have none of: their documents stay as they were judged.
        **({"agreement": agreement(judged)} if holds_plain(judged) else {}),
        "disagreements": [_brief(o) for o in outcomes if o["agrees"] is False],
        "host_search": host_search(host_search_ns),
        "standing": standing(repeated),
        "outcomes": outcomes,
    }


def figures(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures that are always reported together; shares are of all outcomes, means of those with a ratio."""
    count = len(outcomes)
    reasons = Counter(o["reason"] for o in outcomes)
    agreement = [o["agrees"] for o in outcomes if o["agrees"] is not None]
    top1 = [o["top1"] for o in outcomes if o["top1"] is not None]
    return {
        "outcomes": count,
        "statuses": dict(sorted(Counter(o["status"] for o in outcomes).items())),
        "measured": sum(o["status"] == MEASURED for o in outcomes),
        "ambiguous": sum(bool(o["ambiguous"]) for o in outcomes),
        **{f"regret_{name}": value for name, value in spread(_present(outcomes, "regret")).items()},
        "top1_share": _share(sum(top1), len(top1)),
        "regressions": sum(bool(o["regression"]) for o in outcomes),
        "improvements": sum(bool(o["improvement"]) for o in outcomes),
        "proved_share": _share(sum(bool(o["proved"]) for o in outcomes), count),
        "admitted_share": _share(reasons["admitted"], count),
        "abstentions": {reason: reasons[reason] for reason in sorted(reasons) if reason not in _ACTED},
        **{f"{name}_geomean": geomean(_present(outcomes, name)) for name in _RATIOS},
        **{f"{name}_count": len(_present(outcomes, name)) for name in _RATIOS},
        "automatic_agrees_with_forced_share": _share(sum(agreement), len(agreement)),
    }


def repeated_regressions(outcomes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the geometries whose pick regressed in both runs, with the ratio of each run."""
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for o in outcomes:
        if o["regression"]:
            found[o["form"], o["dtype"], o["rows"], o["width"], *([o["inner"]] if "inner" in o else [])].append(o)
    return [
        {
            **dict(zip(("form", "dtype", "rows", "width", "inner"), key, strict=False)),
            "picked": [o["picked"] for o in seen],
            "picked_over_original": [o["picked_over_original"] for o in seen],
        }
        for key, seen in found.items()
        if {o["run"] for o in seen} == {1, 2}
    ]


def standing(repeated: Sequence[Mapping[str, Any]]) -> str:
    """Return `experimental` for a profile whose validation repeats a regression, else `standard`."""
    return EXPERIMENTAL if repeated else STANDARD


def host_search(samples_ns: Sequence[int]) -> dict[str, Any]:
    """Return host search times with their figures in microseconds, null where no search was timed."""
    if samples_ns:
        judge_samples(samples_ns, 1, "host search")
    ordered = sorted(samples_ns)
    figure = {name: quantile(ordered, share) / 1000 if ordered else None for name, share in _HOST.items()}
    return {"samples_ns": list(samples_ns), **figure}


_HOST = {"median_us": 0.5, "p95_us": 0.95, "worst_us": 1.0}


def _brief(o: Mapping[str, Any]) -> dict[str, Any]:
    names = ("geometry", "run", "form", "dtype", "rows", "width", "inner", "picked", "picked_over_original", "regret")
    return {name: o[name] for name in names if name in o}


def _present(outcomes: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    return [o[name] for o in outcomes if o[name] is not None]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
