"""What a stored record still lacks, and how a later round of measurements joins it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from calibration.measurement import ordered
from calibration.planned import Planned
from calibration.records import (
    FLOOR,
    MEASURED,
    PEER,
    PLAIN,
    POLICY,
    RECIPE,
    Geometry,
    Joined,
    Measurement,
    is_ambiguous,
)
from calibration.stats import DRIFT
from features.proof import Proved, candidates
from kernels.recipes import original_of, recipes_of
from kernels.source import identity

_OF_PICK = (POLICY, PLAIN)


@frozen
class Want:
    """What to measure at a point. `recipes` is None for a whole round of everything that is proved there."""

    recipes: frozenset[str] | None = None
    pick: bool = True
    peers: bool = True

    @property
    def whole(self) -> bool:
        """Whether nothing that is stored holds any more."""
        return self.recipes is None


WHOLE = Want()


def sources(form: str, dtype: str) -> Mapping[str, str]:
    """Return the digest that every recipe's source has now."""
    return {row.id: identity(row, dtype).source for row in recipes_of(form) if dtype in row.dtypes}


def current(record: Geometry) -> Geometry | None:
    """Return a record without what was measured from another source than now, None where that voids the original's.

    A recipe that the catalogue no longer holds has no source, and one that is no longer proved here is left out too. A
    pick is void with the recipe that it ran.
    """
    legal = {recipe.id for recipe, proof in candidates(record.workload) if isinstance(proof, Proved)}
    now = {name: source for name, source in sources(record.form, record.dtype).items() if name in legal}
    original = record.by_name.get(original_of(record.form).id)
    if original is None or original.source != now.get(original.name):
        return None
    pick = record.by_name.get(POLICY)
    pick_holds = pick is not None and pick.source == now.get(pick.picked or "")

    def holds(m: Measurement) -> bool:
        return pick_holds if m.kind in _OF_PICK else m.kind != RECIPE or m.source == now.get(m.name)

    return _only(record, {m.name for m in record.measurements if holds(m)})


def wanted(
    planned: Planned, stored: Geometry | None, selection: str | None = None, with_peers: bool = False
) -> Want | None:
    """Return what is to be measured at a point beside its record, or None where that holds everything.

    Parameters
    ----------
    selection : the id of what the policy in force decides here; None where no pick is timed.
    with_peers : whether peers are to be timed here.
    """
    kept = None if stored is None else current(stored)
    if kept is None:
        return WHOLE
    proved = {recipe.id for recipe, proof in candidates(planned.workload) if isinstance(proof, Proved)}
    missing = frozenset(proved - kept.by_name.keys())
    pick = kept.by_name.get(POLICY)
    stale = selection is not None and (pick is None or pick.selection != selection)
    alone = with_peers and not any(m.kind in (PEER, FLOOR) for m in kept.measurements)
    if not (missing or stale or alone):
        return None
    # Pick and peers are compared with each other, so they are timed again together. What joins a record is compared
    # with its original; where that cannot be used, all is measured again.
    timed_again = stale or alone
    return WHOLE if kept.status != MEASURED else Want(missing, timed_again, timed_again and with_peers)


def join(stored: Geometry, later: Geometry) -> Geometry | None:
    """Return a record with a later round joined, None where its original is not as it was: then nothing is comparable.

    Parameters
    ----------
    later : the record of the round alone: the original, twice, and what the stored record lacks.
    """
    kept = current(stored)
    name = original_of(stored.form).id
    if kept is None or kept.timing(name) is None or later.status != MEASURED:
        return None
    before, after = kept.by_name[name].timing, later.by_name[name].timing
    moved = after.median_us / before.median_us - 1
    if not abs(moved) <= DRIFT:
        return None
    if POLICY in later.by_name:
        kept = _only(kept, {m.name for m in kept.measurements if m.kind not in _OF_PICK})
    number = 1 + max((part.number for part in kept.joined), default=1)
    again = tuple(m for m in later.measurements if m.name in kept.by_name)
    new = (evolve(m, round=number) for m in later.measurements if m.name not in kept.by_name)
    round_ = Joined(number, later.seed, later.attempt, moved, later.drift, later.baseline, again)
    measurements = ordered((*kept.measurements, *new), name)
    joined = (*kept.joined, round_)
    return evolve(kept, measurements=measurements, joined=joined, ambiguous=is_ambiguous(measurements))


def _only(record: Geometry, names: set[str]) -> Geometry:
    """Return a record with the named candidates alone, in its later rounds too."""
    measurements = tuple(m for m in record.measurements if m.name in names)
    if len(measurements) == len(record.measurements):
        return record
    joined = tuple(evolve(part, again=tuple(m for m in part.again if m.name in names)) for part in record.joined)
    return evolve(record, measurements=measurements, joined=joined, ambiguous=is_ambiguous(measurements))
