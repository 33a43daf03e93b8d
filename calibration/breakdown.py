"""The figures of a validation by program and dtype: regret, abstentions, picks beside peers and beside a copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from calibration.records import MEASURED
from calibration.stats import geomean, spread

Outcome = Mapping[str, Any]
ALL = "*"
# Reasons that say the profile had nothing to offer; that a recipe is illegal or not worth it is a decision.
UNDECIDED = ("outside_calibrated_domain", "no_fit", "no_eligible_recipe")
# A pick is behind the best peer where it takes more than 5 % longer.
BEHIND_PEER = 1.05
# From here on a launch's time is that of its traffic.
LARGE_BYTES = 64 * 2**20


def by_program(outcomes: Iterable[Outcome], repeated: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures of both runs together for each form, all dtypes (`*`) first and then one by one."""
    outcomes, repeated = tuple(outcomes), tuple(repeated)
    found = []
    for form in sorted({o["form"] for o in outcomes}):
        for dtype in (ALL, *sorted({o["dtype"] for o in outcomes if o["form"] == form})):
            chosen = [o for o in outcomes if o["form"] == form and dtype in (ALL, o["dtype"])]
            again = sum(r["form"] == form and dtype in (ALL, r["dtype"]) for r in repeated)
            found.append({"form": form, "dtype": dtype, **_figures(chosen), "regressions_repeated": again})
    return found


def _figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    count = len(outcomes)
    reasons = Counter(o["reason"] for o in outcomes if o["reason"] not in ("admitted", "forced"))
    return {
        "outcomes": count,
        "measured": sum(o["status"] == MEASURED for o in outcomes),
        **{f"regret_{name}": value for name, value in spread(_present(outcomes, "regret")).items()},
        "regressions": sum(bool(o["regression"]) for o in outcomes),
        "admitted_share": sum(o["reason"] == "admitted" for o in outcomes) / count,
        "abstentions": {
            reason: {"count": number, "share": number / count} for reason, number in sorted(reasons.items())
        },
        "undecided_share": sum(reasons[reason] for reason in UNDECIDED) / count,
        "picked_over_original_geomean": geomean(_present(outcomes, "picked_over_original")),
        "picked_over_compile_geomean": geomean(_present(outcomes, "picked_over_compile")),
        "peers": _peers(outcomes),
        "large": _large(outcomes),
        "across_rounds": sum("across_rounds" in o for o in outcomes),
    }


def _peers(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the picks beside the best peer of their round, and a list of those that are behind it."""
    ratios = _present(outcomes, "picked_over_best_peer")
    behind = [o for o in outcomes if (o["picked_over_best_peer"] or 0) > BEHIND_PEER]
    named = ("geometry", "run", "dtype", "rows", "width", "inner", "picked", "best_peer", "picked_over_best_peer")
    return {
        "count": len(ratios),
        **spread(ratios),
        "behind_share": len(behind) / len(ratios) if ratios else None,
        "behind": [{name: o[name] for name in named if name in o} for o in behind],
    }


def _large(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return picks that move 64 MiB and more beside a copy of the same tensor, in time and in bytes a second."""
    chosen = [o for o in outcomes if o["traffic_bytes"] >= LARGE_BYTES and o["picked_over_copy"] is not None]
    rates = _present(chosen, "rate_over_copy")
    ratio = spread(_present(chosen, "picked_over_copy"))
    return {
        "count": len(chosen),
        "picked_over_copy_geomean": ratio["geomean"],
        "picked_over_copy_worst": ratio["worst"],
        "rate_over_copy_geomean": geomean(rates),
        "rate_over_copy_least": min(rates, default=None),
    }


def _present(outcomes: Iterable[Outcome], name: str) -> list[float]:
    return [o[name] for o in outcomes if o[name] is not None]
