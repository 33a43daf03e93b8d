"""A question: the members of one request, judged one by one and turned into a frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from features.workload import DEFAULT_ALIGNMENT_BYTES, Workload, workload
from kernels.target import Target
from policy.judging import REGIMES
from policy.target_facts import target_from_facts
from server.errors import Problem
from server.strict_json import show

MAX_NAME = 128
REQUIRED = ("op", "shape", "dtype")
MEMBERS = (*REQUIRED, "strides", "alignment", "numerics", "target", "profile", "regime", "recipe")


@frozen
class Ask:
    """A workload, and what was said about the machine, the profile and the recipe."""

    workload: Workload
    target: Target | str | None
    profile: str | None
    regime: str | None
    recipe: str | None


def ask_of(value: Any) -> Ask:
    """Return the question that a JSON value asks.

    Raises
    ------
    Problem, FeatureError, TargetError : naming the member, its value and what would be accepted.
    """
    if not isinstance(value, dict):
        raise _wrong(None, f"the request is {_type(value)}, not an object with {', '.join(REQUIRED)}")
    for name in value:
        if name not in MEMBERS:
            raise _wrong(name, f"member {show(name)} is not known; use {', '.join(MEMBERS)}")
    for name in REQUIRED:
        if name not in value:
            raise _wrong(name, f"member {name} is missing; {', '.join(REQUIRED)} are needed")
    regime = _text(value, "regime") or None
    if regime is not None and regime not in REGIMES:
        raise _wrong("regime", f"regime {show(regime)} is not known; use {' or '.join(REGIMES)}")
    work = workload(
        _text(value, "op", needed=True),
        value["shape"],
        _text(value, "dtype", needed=True),
        strides=value.get("strides"),
        alignment_bytes=DEFAULT_ALIGNMENT_BYTES if value.get("alignment") is None else value["alignment"],
        numerics=_text(value, "numerics") or "any",
    )
    return Ask(work, _target(value.get("target")), _text(value, "profile"), regime, _text(value, "recipe"))


def _text(value: Mapping[str, Any], name: str, *, needed: bool = False) -> str:
    """Return a text member; "" where it is left out or null."""
    text = value.get(name)
    if text is None and not needed:
        return ""
    if not isinstance(text, str):
        raise _wrong(name, f"{name} {show(text)} is {_type(text)}, not text")
    if not text or len(text) > MAX_NAME or not text.isprintable():
        raise _wrong(name, f"{name} {show(text)} is not 1 to {MAX_NAME} printable characters")
    return text


def _target(value: Any) -> Target | str | None:
    if value is None:
        return None
    if isinstance(value, str):
        return _text({"target": value}, "target")
    return target_from_facts(value)


def _wrong(field: str | None, detail: str) -> Problem:
    return Problem("request_invalid", detail) if field is None else Problem("request_invalid", detail, field=field)


def _type(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list"}
    return names.get(type(value), "an object")
