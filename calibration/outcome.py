"""One outcome of a validation: what was picked at one geometry in one run, and how it fared there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibration.errors import RecordError
from calibration.records import COMPILED, COPY, MEASURED, POLICY, Geometry
from calibration.stats import Timing, improves, regresses, same
from kernels.recipes import ORIGINAL, original_of


def outcome(record: Geometry, selections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return one outcome; every ratio in it is of two medians of this record, so of one round.

    `automatic_us` is the pick through the real dispatch path, `forced_us` the same recipe measured by name; `agrees`
    tells whether the two overlap. A record that did not end as measured is listed and has no ratio.

    Raises
    ------
    RecordError : no automatic pick, a selection that is not there, or one that picked another recipe.
    """
    found = record.by_name.get(POLICY)
    facts = None if found is None else selections.get(found.selection or "")
    if found is None or facts is None:
        what = "no measurement named policy" if found is None else f"no selection {found.selection}"
        raise RecordError(f"{record.label}: there is {what}")
    decision = facts["decision"]
    if decision["recipe"] != found.picked:
        raise RecordError(f"{record.label}: {found.picked} was run and the selection says {decision['recipe']}")
    return {
        "geometry": record.digest,
        "run": record.run,
        "form": record.form,
        "dtype": record.dtype,
        "rows": record.rows,
        "width": record.width,
        "stratum": record.stratum,
        "status": record.status,
        "ambiguous": record.ambiguous,
        "drift": record.drift,
        "selection": found.selection,
        "picked": found.picked,
        "reason": decision["reason"],
        "proved": any(c["proved"] and c["role"] != ORIGINAL for c in facts["candidates"]),
        **_figures(record, found.picked or ""),
    }


def _figures(record: Geometry, picked: str) -> dict[str, Any]:
    """Return times and ratios, null where a record or a measurement is not fit for use."""
    fit_for_use = record.status == MEASURED
    original_id = original_of(record.form).id
    names = {"automatic": POLICY, "forced": picked, "original": original_id, "compile": COMPILED, "copy": COPY}
    times = {key: record.timing(name) if fit_for_use else None for key, name in names.items()}
    automatic, forced, original = times["automatic"], times["forced"], times["original"]
    recipes = {m.name: m.timing for m in record.recipes()} if fit_for_use else {}
    fastest = min(recipes, key=lambda name: (recipes[name].median_us, name), default=None)
    best = recipes[fastest] if fastest is not None else None
    worse = automatic is not None and original is not None and picked != original_id and regresses(automatic, original)
    better = automatic is not None and original is not None and picked != original_id and improves(automatic, original)
    return {
        "automatic_us": _us(automatic),
        "forced_us": _us(forced),
        "original_us": _us(original),
        "fastest": fastest,
        "fastest_us": _us(best),
        "agrees": None if automatic is None or forced is None else same(automatic, forced),
        "top1": None if forced is None else picked == fastest,
        "regret": _ratio(forced, best),
        "picked_over_original": _ratio(automatic, original),
        "original_over_compile": _ratio(original, times["compile"]),
        "picked_over_compile": _ratio(automatic, times["compile"]),
        "picked_over_copy": _ratio(automatic, times["copy"]),
        "regression": worse,
        "improvement": better,
    }


def _us(timing: Timing | None) -> float | None:
    return None if timing is None else timing.median_us


def _ratio(numerator: Timing | None, denominator: Timing | None) -> float | None:
    return None if numerator is None or denominator is None else numerator.median_us / denominator.median_us
