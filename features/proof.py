"""Proving: every recipe of a program is legal, with the facts found, or refused, with the fact that failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from attrs import field, frozen

from features.claim import Claim, Truth
from features.errors import ProgramError, Refused
from features.expression import CHANNELS, Combine, Expression, Load, Map, Parameter, Prefix, Reduce, Weight
from features.program import Program
from features.proofs import PROOFS, launchable
from features.workload import Workload
from features.workloads import Workloads
from kernels.recipe import Recipe
from kernels.recipes import recipes_of

__all__ = ["PROOFS", "Proved", "Refused", "candidates", "form_of", "legal", "prove", "recipes_for"]


@frozen
class Proved:
    """A recipe is legal; `facts` maps each proof to what it found."""

    facts: Mapping[str, Mapping[str, Any]] = field(factory=dict)


@cache
def form_of(program: Program) -> str:
    """Return the normal form that keys the recipe table: the operators without their casts, outermost first.

    Raises
    ------
    ProgramError : the expression is not well typed.
    """
    program.expression.type()
    return _form(program.expression.operand) or "copy"


def _form(node: Expression) -> str:
    """Return operators joined by dots; of a combination both sides.

    The loaded row is `x` there, a weight `w` and its place, a parameter its name. A load along channels is always `c`.
    """
    if isinstance(node, Combine):
        return f"{node.function}({_form(node.left) or 'x'},{_form(node.right) or 'x'})"
    if isinstance(node, Load):
        return "c" if node.along == CHANNELS else ""
    if isinstance(node, Weight):
        return f"w{node.place}"
    if isinstance(node, Parameter):
        return node.name
    name = ""
    if isinstance(node, Prefix):
        name = f"prefix.{node.algebra}"
    elif isinstance(node, Map):
        name = f"map.{node.function}"
    elif isinstance(node, Reduce):
        name = f"reduce.{node.algebra}" + ("" if node.nan == "propagate" else f".{node.nan}")
    return ".".join(part for part in (name, _form(node.operand)) if part)


def prove(workload: Workload, recipe: Recipe) -> Proved | Refused:
    """Return why the recipe is legal for the workload, or why it is not: the first condition that fails."""
    found: dict[str, Mapping[str, Any]] = {}
    for name, claim in _claims(workload, recipe):
        for code, holds, fact in claim.conditions:
            if not holds:
                return Refused(code, fact())
        if name is not None:
            found[name] = claim.facts()
    return Proved(found)


def legal(workloads: Workloads, recipe: Recipe) -> Truth:
    """Return for which of many workloads `prove` succeeds: one truth value each, or one for them all."""
    verdict: Truth = True
    for _, claim in _claims(workloads, recipe):
        for _code, holds, _fact in claim.conditions:
            verdict = verdict & holds
    return verdict


def _claims(work: Workload | Workloads, recipe: Recipe) -> Iterator[tuple[str | None, Claim]]:
    yield None, launchable(work, recipe)
    for name in recipe.proofs:
        yield name, PROOFS[name](work, recipe)


def recipes_for(program: Program) -> tuple[Recipe, ...]:
    """Return every recipe of a program's form, the original first, or raise `ProgramError` where there is none."""
    rows = recipes_of(form_of(program))
    if not rows:
        raise ProgramError(f"no kernel runs a program of form {form_of(program)!r}")
    return rows


def candidates(workload: Workload) -> tuple[tuple[Recipe, Proved | Refused], ...]:
    """Return every recipe of the workload's form with its proof or refusal, the original first.

    Raises
    ------
    ProgramError : no kernel runs this program, or not even the original is legal for it.
    """
    rows = recipes_for(workload.program)
    judged = tuple([(row, prove(workload, row)) for row in rows])
    original = judged[0][1]
    if isinstance(original, Refused):
        raise ProgramError(f"{rows[0].id} cannot run this program: {original.fact}")
    return judged
