"""A plan is data: what is measured to fit on, and the inventory that judges the fit, drawn before there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import evolve, fields, frozen

from calibration.drawing import TRAINED, Limits, Share, inventory, training
from calibration.errors import PlanError
from calibration.planned import Planned
from calibration.rotation import judge_regime
from calibration.strata import GRIDS, Grid
from calibration.wide import wide
from features.program import program_of
from features.proof import form_of
from kernels.dtypes import STORAGE
from kernels.identity import digest
from kernels.recipes import family_of, is_fitted_on
from kernels.target import Target

__all__ = ["INVENTORY", "Plan", "Planned", "draw_plan", "plan_from_json"]

PLAN_SCHEMA = "rowsmith.plan/1"
# 2^28 elements of FP32 are 2 GiB of traffic, about half a millisecond on an H200: a sweep of 200 points stays short.
MAX_ELEMENTS = 2**28
# The tables that a plan is drawn from, by name: `documented` is where the documented recipes are legal, `wide` is what
# people run. A plan that names none is of the first.
DOCUMENTED, WIDE = "documented", "wide"
INVENTORIES = (DOCUMENTED, WIDE)
# What a calibration draws from unless it is told otherwise.
INVENTORY = WIDE


@frozen(slots=False)
class Plan:
    """What a sweep measures. `training` is for fitting, `validation` is never looked at by a fit.

    `inventory` names the tables it was drawn from. `inventory_seed` is that of the validation where it is not `seed`: a
    changed fit may be judged on geometries that no earlier one was. Inventories of `learnt_seeds` have judged earlier
    fits and are trained on.
    """

    ops: tuple[str, ...]
    dtypes: tuple[str, ...]
    seed: int
    regime: str
    sm_count: int
    memory_bytes: int
    max_elements: int
    training: tuple[Planned, ...]
    validation: tuple[Planned, ...]
    inventory: str = DOCUMENTED
    inventory_seed: int | None = None
    learnt_seeds: tuple[int, ...] = ()

    @property
    def points(self) -> tuple[Planned, ...]:
        """Every geometry, those to fit on first."""
        return (*self.training, *self.validation)

    @property
    def forms(self) -> frozenset[str]:
        """The forms of the programs that are measured, whether they are fitted on or judged alone."""
        return frozenset(planned.form for planned in self.points)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as it is stored; inventory and its seeds only where they are not the usual ones."""
        document = {part.name: getattr(self, part.name) for part in fields(Plan)}
        usual = {name for name, value in _USUAL.items() if document[name] == value}
        kept = {k: list(v) if isinstance(v, tuple) else v for k, v in document.items() if k not in usual}
        points = {part: [planned.to_json() for planned in document[part]] for part in _PARTS}
        return {"schema": PLAN_SCHEMA, **kept, **points}

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the stored document."""
        return digest(self.to_json())


_PARTS = ("training", "validation")
_USUAL = {"inventory": DOCUMENTED, "inventory_seed": None, "learnt_seeds": ()}
_LISTS = ("ops", "dtypes", "learnt_seeds")


def plan_from_json(document: Mapping[str, Any]) -> Plan:
    """Read a plan, or raise `PlanError`."""
    try:
        if document["schema"] != PLAN_SCHEMA:
            raise PlanError(f"plan schema {document['schema']!r} is not {PLAN_SCHEMA}; use a matching release")
        facts: dict[str, Any] = {k: tuple(v) if k in _LISTS else v for k, v in document.items() if k != "schema"}
        for part in _PARTS:
            facts[part] = tuple(Planned(**planned) for planned in facts[part])
        return Plan(**facts)
    except (KeyError, TypeError, AttributeError) as error:
        raise PlanError(f"plan is malformed: {type(error).__name__} {error}") from error


def draw_plan(
    ops: Sequence[str],
    seed: int,
    target: Target,
    memory_bytes: int,
    *,
    dtypes: Sequence[str] = tuple(STORAGE),
    regime: str = "hot",
    max_elements: int = MAX_ELEMENTS,
    inventory_name: str = INVENTORY,
    inventory_seed: int | None = None,
    learnt_seeds: Sequence[int] = (),
) -> Plan:
    """Draw the plan of a sweep; the same arguments give the same plan on every machine.

    Parameters
    ----------
    memory_bytes : what the buffers of one geometry may take together.
    max_elements : the largest training geometry. The inventory stays below half of it, so that every feature of it lies
        inside the ranges that training spans.
    inventory_name : the tables to draw from, one of `INVENTORIES`.
    inventory_seed : draws another inventory over the same training set.
    learnt_seeds : seeds of inventories that judged earlier fits, in that order; what was drawn of each for the programs
        that are fitted joins the training set.

    Raises
    ------
    PlanError : no such regime or tables, a seed named twice, no grid for an op's family, or nothing fits the limits.
    """
    judge_regime(regime)
    judged_by = seed if inventory_seed is None else inventory_seed
    if judged_by in learnt_seeds or len(set(learnt_seeds)) < len(learnt_seeds):
        told = ", ".join(map(str, learnt_seeds))
        raise PlanError(f"learning from {told} and judging on {judged_by} repeats a seed; name each inventory once")
    limits = Limits(target.sm_count, target.l2_bytes, memory_bytes, max_elements, regime)
    families = {op: family_of(form_of(program_of(op, dtypes[0]))) for op in ops}
    grids = {family: _grid(family, inventory_name) for family in families.values()}
    fitted: dict[str, list[Planned]] = {family: [] for family in grids}
    for family, grid in grids.items():
        together = _fitted([op for op in ops if families[op] == family], dtypes[0])
        for place, op in enumerate(together):
            of_op = training(op, dtypes, grid, seed, limits, Share(place, len(together)))
            if not of_op:
                raise PlanError(f"no geometry of {op} fits {memory_bytes} bytes and {max_elements} elements ({regime})")
            fitted[family] += of_op
        for learnt in learnt_seeds:
            fitted[family] += _learnt(together, dtypes, grid, learnt, limits, fitted[family])
    judged: list[Planned] = []
    for op, family in families.items():
        judged += inventory(op, dtypes, grids[family], judged_by, limits, fitted[family])
    return Plan(
        ops=tuple(ops),
        dtypes=tuple(dtypes),
        seed=seed,
        regime=regime,
        sm_count=target.sm_count,
        memory_bytes=memory_bytes,
        max_elements=max_elements,
        training=tuple(planned for family in fitted.values() for planned in family),
        validation=tuple(judged),
        inventory=inventory_name,
        inventory_seed=inventory_seed,
        learnt_seeds=tuple(learnt_seeds),
    )


def _learnt(
    ops: Sequence[str], dtypes: Sequence[str], grid: Grid, seed: int, limits: Limits, trained: Sequence[Planned]
) -> list[Planned]:
    """Return an earlier inventory as training geometries, but for those that every inventory has."""
    drawn = [planned for op in ops for planned in inventory(op, dtypes, grid, seed, limits, trained)]
    kept = {(name.rows, name.width, name.inner) for name in grid.named}
    return [
        evolve(planned, stratum=TRAINED, peers=True)
        for planned in drawn
        if (planned.rows, planned.width, planned.inner) not in kept
    ]


def _fitted(ops: Sequence[str], dtype: str) -> list[str]:
    """Return the programs of a family that it is fitted on: those that tell of all its recipes, or all if none does.

    What a kernel costs hardly depends on what it combines by, and a program with few recipes tells little of others.
    """
    return [op for op in ops if is_fitted_on(form_of(program_of(op, dtype)))] or list(ops)


def _grid(family: str, inventory_name: str) -> Grid:
    """Return where a family's programs are measured: a row of the documented tables, or the wide grid of any family."""
    if inventory_name not in INVENTORIES:
        raise PlanError(f"inventory {inventory_name!r} is not known; use {' or '.join(INVENTORIES)}")
    if inventory_name == WIDE:
        return wide(family)
    if family not in GRIDS:
        raise PlanError(f"no grid says where {family} is measured; there are {', '.join(GRIDS)}")
    return GRIDS[family]
