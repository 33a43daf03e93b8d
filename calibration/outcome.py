"""One outcome of a validation: what was picked at one geometry in one run, and how it fared there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibration.errors import RecordError
from calibration.records import COMPILED, COPY, CUB_SCAN, MEASURED, PEER, POLICY, Geometry, Pair
from calibration.stats import Timing, improves, regresses, same
from calibration.traffic import footprint_bytes
from kernels.dtypes import storage
from kernels.recipe import ORIGINAL
from kernels.recipes import original_of

NOTHING = Pair(None, None)


def outcome(
    record: Geometry, selections: Mapping[str, Mapping[str, Any]], *, with_peers: bool = True
) -> dict[str, Any]:
    """Return one outcome; a ratio in it is of two medians of one round of this record, or `across_rounds` lists it.

    `automatic_us` is the pick through the real dispatch path, `forced_us` the same recipe measured by name; `agrees`
    tells whether the two overlap. A record that did not end as measured is listed and has no ratio. `with_peers` adds
    the best peer, the traffic and its rate over a copy's, which earlier documents do not hold. Where CUB's scan of as
    many elements was timed, the ratio to it is there too.

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
    pairs = _pairs(record, found.picked or "")
    across = sorted(name for name, pair in pairs.items() if pair.across)
    return {
        "geometry": record.digest,
        "run": record.run,
        "form": record.form,
        "dtype": record.dtype,
        "rows": record.rows,
        "width": record.width,
        **({} if record.inner == 1 else {"inner": record.inner}),
        "stratum": record.stratum,
        "status": record.status,
        "ambiguous": record.ambiguous,
        "drift": record.drift,
        "selection": found.selection,
        "picked": found.picked,
        "reason": decision["reason"],
        "proved": any(c["proved"] and c["role"] != ORIGINAL for c in facts["candidates"]),
        **_figures(record, found.picked or "", pairs),
        **(_beside_peers(record, pairs) if with_peers else {}),
        **({OVER_CUB_SCAN: pairs[OVER_CUB_SCAN].ratio} if OVER_CUB_SCAN in pairs else {}),
        **({"across_rounds": across} if across else {}),
    }


def _pairs(record: Geometry, picked: str) -> dict[str, Pair]:
    """Return what every ratio compares, by its name; nothing where the record is not fit for use."""
    original, fastest = original_of(record.form).id, _fastest(record)
    compared = {
        "agrees": (POLICY, picked),
        "picked_over_original": (POLICY, original),
        "original_over_compile": (original, COMPILED),
        "picked_over_compile": (POLICY, COMPILED),
        "picked_over_copy": (POLICY, COPY),
        "picked_over_best_peer": (POLICY, _best_peer(record) or ""),
        **({OVER_CUB_SCAN: (POLICY, CUB_SCAN)} if CUB_SCAN in record.by_name else {}),
    }
    if record.status != MEASURED:
        return dict.fromkeys((*compared, "regret"), NOTHING)
    pairs = {name: record.pair(*names) for name, names in compared.items()}
    return {**pairs, "regret": _regret(record, picked, fastest)}


def _regret(record: Geometry, picked: str, fastest: str | None) -> Pair:
    """Compare the pick's own measurement with the fastest one's, so that regret is 1 or more whatever joined later."""
    one, other = record.timing(picked), record.timing(fastest or "")
    if one is None or other is None:
        return Pair(one, other)
    across = record.by_name[picked].in_round != record.by_name[fastest or ""].in_round
    return Pair(one, other, across)


def _figures(record: Geometry, picked: str, pairs: Mapping[str, Pair]) -> dict[str, Any]:
    """Return times and ratios, null where a record or a measurement is not fit for use."""
    original_id = original_of(record.form).id
    fit_for_use = record.status == MEASURED
    to_original, forced = pairs["picked_over_original"], pairs["regret"].one
    another = picked != original_id and to_original.one is not None and to_original.other is not None
    return {
        "automatic_us": _us(record.timing(POLICY) if fit_for_use else None),
        "forced_us": _us(forced),
        "original_us": _us(record.timing(original_id) if fit_for_use else None),
        "fastest": _fastest(record) if fit_for_use else None,
        "fastest_us": _us(pairs["regret"].other),
        "agrees": _judged(pairs["agrees"], same),
        "top1": None if forced is None else picked == _fastest(record),
        "regret": pairs["regret"].ratio,
        **{name: pairs[name].ratio for name in _RATIOS},
        "regression": another and bool(_judged(to_original, regresses)),
        "improvement": another and bool(_judged(to_original, improves)),
    }


OVER_CUB_SCAN = "picked_over_cub_scan"
_RATIOS = ("picked_over_original", "original_over_compile", "picked_over_compile", "picked_over_copy")


def _beside_peers(record: Geometry, pairs: Mapping[str, Pair]) -> dict[str, Any]:
    """Return the best peer of the record, the least traffic of a launch, and the rate of that over a copy's."""
    moved = footprint_bytes(record.workload.program, record.rows, record.width)
    copied = 2 * storage(record.dtype).bytes * record.rows * record.width
    to_copy = pairs["picked_over_copy"].ratio
    return {
        "best_peer": _best_peer(record) if record.status == MEASURED else None,
        "picked_over_best_peer": pairs["picked_over_best_peer"].ratio,
        "traffic_bytes": moved,
        "rate_over_copy": None if to_copy is None else moved / copied / to_copy,
    }


def _fastest(record: Geometry) -> str | None:
    recipes = {m.name: m.timing.median_us for m in record.recipes()}
    return min(recipes, key=lambda name: (recipes[name], name), default=None)


def _best_peer(record: Geometry) -> str | None:
    """Return the peer that the pick takes longest beside; each is of the pick's own round where that holds both."""
    peers = {m.name: record.pair(POLICY, m.name).ratio for m in record.measurements if m.kind == PEER}
    known = {name: ratio for name, ratio in peers.items() if ratio is not None}
    return max(known, key=lambda name: (known[name], name), default=None)


def _judged(pair: Pair, judge: Any) -> bool | None:
    return None if pair.one is None or pair.other is None else judge(pair.one, pair.other)


def _us(timing: Timing | None) -> float | None:
    return None if timing is None else timing.median_us
