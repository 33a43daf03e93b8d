"""One judge of target facts, for requests, profiles and files alike: every member is there, known and of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import fields

from features.errors import show
from kernels.target import Target
from policy.errors import TargetError

_MAX_TEXT = 128
_MAX_NUMBER = 2**53  # what a double, and so JSON, holds exactly
_OPTIONAL = "label"
_KINDS: dict[str, type] = {f.name: str if f.type in (str, "str") else int for f in fields(Target)}


def target_from_facts(facts: Any) -> Target:
    """Return the target that a JSON value describes, or raise `TargetError` for the first thing wrong with it."""
    for wrong in _faults(facts):
        raise TargetError(wrong)
    return Target(**facts)


def _faults(facts: Any) -> Iterator[str]:
    if not isinstance(facts, dict):
        yield f"target {show(facts)} is not an object of target facts"
        return
    for name in facts:
        if name not in _KINDS:
            yield f"target member {show(name)} is not known; use {', '.join(_KINDS)}"
    if missing := [name for name in _KINDS if name not in facts and name != _OPTIONAL]:
        yield f"target members {', '.join(missing)} are missing"
    for name, kind in _KINDS.items():
        if name in facts and not (_is_text(facts[name]) if kind is str else _is_count(facts[name])):
            what = f"text of at most {_MAX_TEXT} characters" if kind is str else "a whole number from 1 to 2^53"
            yield f"target {name} {show(facts[name])} is not {what}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT and value.isprintable()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_NUMBER
