"""Replaying a stored decision: its arithmetic from its own facts, and what has changed around it since, apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from features.errors import FeatureError
from features.expression import Store, expression_from_tree
from features.program import Program
from features.schema import point
from features.schemas import SCHEMAS
from features.workload import Workload
from kernels.errors import KernelError
from kernels.identity import canonical_json, digest
from kernels.receipt import Receipt
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import recipe
from kernels.target import Target
from policy.errors import PolicyError
from policy.profile import Fit, Profile
from policy.select import ADMISSION, score, select, shipped_catalogue

VERIFIED = "verified"
DIFFERS = "differs"


@frozen
class Difference:
    """A stored fact that its own inputs do not give: an error of arithmetic, storage or honesty."""

    check: str
    where: str
    expected: Any
    found: Any


@frozen
class Change:
    """Something the decision rested on that is another one now. The stored decision may still be right."""

    what: str
    stored: Any
    now: Any


@frozen
class Replay:
    """What the replay found. `checked` names the checks that could be made, in order."""

    selection: str
    checked: tuple[str, ...]
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]

    @property
    def verdict(self) -> str:
        """`verified`, or `differs` where any arithmetic does."""
        return DIFFERS if self.differences else VERIFIED

    def report(self) -> dict[str, Any]:
        """Return the replay as JSON-ready facts."""
        return {
            "selection": self.selection,
            "verdict": self.verdict,
            "checked": list(self.checked),
            "differences": [
                {"check": d.check, "where": d.where, "expected": d.expected, "found": d.found} for d in self.differences
            ],
            "changes": [{"what": c.what, "stored": c.stored, "now": c.now} for c in self.changes],
        }


@frozen(eq=False)
class _Facts:
    """A stored selection read back into values."""

    document: Mapping[str, Any]
    workload: Workload
    target: Target
    profile: Profile | None
    fit: Fit | None = field(init=False)

    @fit.default
    def _fit(self) -> Fit | None:
        wanted = self.document["provenance"]["fit"]
        fits = () if self.profile is None else self.profile.fits
        return next((fit for fit in fits if fit.digest == wanted), None)


def replay(selection_id: str, facts: Mapping[str, Any], profile: Profile | None) -> Replay:
    """Recompute a stored selection.

    Parameters
    ----------
    facts : the stored body, without id, observation and links.
    profile : the stored profile that its provenance names; None where the store does not hold it.
    """
    expected = digest(facts)
    differences = [] if expected == selection_id else [Difference("id", "id", expected, selection_id)]
    changes = list(_changes(facts, profile))
    try:
        read = _Facts(facts, _workload(facts["workload"]), _target(facts["target"]), profile)
    except (KeyError, TypeError, ValueError, IndexError, FeatureError, KernelError) as error:
        reason = f"{type(error).__name__} {error}"
        differences.append(Difference("facts", "workload or target", "readable facts", reason))
        return Replay(selection_id, ("id",), tuple(differences), tuple(changes))
    checked = ["id"]
    for name, (applies, check) in _CHECKS.items():
        if applies(read):
            checked.append(name)
            differences += check(read)
    return Replay(selection_id, tuple(checked), tuple(differences), tuple(changes))


def _changes(facts: Mapping[str, Any], profile: Profile | None) -> Iterator[Change]:
    provenance = facts["provenance"]
    if (now := shipped_catalogue().digest) != provenance["catalogue"]:
        yield Change("catalogue", provenance["catalogue"], now)
    if profile is None or profile.digest != provenance["profile"]:
        yield Change("profile", provenance["profile"], None if profile is None else profile.digest)
    if provenance["admission"] != ADMISSION:
        yield Change("admission", provenance["admission"], ADMISSION)
    if (schema_id := provenance["feature_schema"]) is not None:
        known = SCHEMAS.get(schema_id)
        if known is None or known.digest != provenance["feature_schema_digest"]:
            yield Change("feature schema", provenance["feature_schema_digest"], None if known is None else known.digest)
    yield from _source_changes(facts)


def _source_changes(facts: Mapping[str, Any]) -> Iterator[Change]:
    """Name each recipe whose source or options are not those of the stored receipt any more."""
    catalogue, dtype = shipped_catalogue(), facts["workload"]["dtype"]
    for candidate in facts["candidates"]:
        row, receipt = _recipe(candidate["recipe"]), candidate["receipt"]
        if row is None:
            yield Change(f"recipe {candidate['recipe']}", candidate["recipe"], None)
        elif receipt is not None:
            now = catalogue.identity(row, dtype)
            for name in ("source", "options"):
                if receipt[name] != getattr(now, name):
                    yield Change(f"{name} of {row.id}", receipt[name], getattr(now, name))


def _features(read: _Facts) -> Iterator[Difference]:
    """Features from the stored workload, target and receipts, by the schema that the decision names."""
    schema = SCHEMAS[read.document["provenance"]["feature_schema"]]
    for candidate in read.document["candidates"]:
        row = _recipe(candidate["recipe"])
        if row is None or not candidate["features"]:
            continue
        capacity = None if candidate["receipt"] is None else Receipt(**candidate["receipt"]).capacity
        values = schema.vector(candidate["role"], point(read.workload, row, capacity, read.target))
        names = [f.name for f in schema.roles[candidate["role"]]]
        expected = dict(zip(names, values, strict=True))
        found = {f["name"]: f["value"] for f in candidate["features"]}
        if expected != found:
            yield Difference("features", row.id, expected, found)


def _scores(read: _Facts) -> Iterator[Difference]:
    """Scores from the stored features and the stored profile's coefficients, bit for bit."""
    assert read.fit is not None
    for candidate in read.document["candidates"]:
        if (found := candidate["score_us"]) is None:
            continue
        block = read.fit.block(candidate["role"], read.workload.dtype)
        values = tuple(f["value"] for f in candidate["features"])
        expected = None if block is None else score(values, block.coefficients)
        if expected != found:
            yield Difference("scores", candidate["recipe"], expected, found)


def _decision(read: _Facts) -> Iterator[Difference]:
    """The admission from the stored scores, with the stored threshold."""
    decision, seen = read.document["decision"], read.document["candidates"]
    original = next(c for c in seen if c["role"] == ORIGINAL)
    eligible = (c for c in seen if c["role"] != ORIGINAL and c["eligible"])
    ranked = sorted(eligible, key=lambda c: (c["score_us"], c["recipe"]))
    admitted = decision["policy_reason"] == "admitted"
    pick = original["recipe"]
    if ranked and decision["policy_reason"] in ("admitted", "not_below_threshold"):
        limit = read.document["provenance"]["admission"] * original["score_us"]
        pick = ranked[0]["recipe"] if ranked[0]["score_us"] < limit else pick
    if pick != decision["policy_recipe"] or admitted != (pick != original["recipe"]):
        yield Difference("decision", "policy_recipe", pick, decision["policy_recipe"])
    if decision["reason"] != "forced" and decision["recipe"] != decision["policy_recipe"]:
        yield Difference("decision", "recipe", decision["policy_recipe"], decision["recipe"])


def _whole(read: _Facts) -> Iterator[Difference]:
    """The decision taken again by the policy, from the stored workload, target, receipts and profile."""
    assert read.profile is not None
    receipts = {
        candidate["recipe"]: None if candidate["receipt"] is None else Receipt(**candidate["receipt"])
        for candidate in read.document["candidates"]
    }
    decision = read.document["decision"]
    forced = decision["recipe"] if decision["reason"] == "forced" else None
    try:
        again = select(read.workload, read.target, read.profile, lambda row, _: receipts.get(row.id), forced=forced)
    except (PolicyError, FeatureError) as error:
        yield Difference("policy", "select", "a decision", str(error))
        return
    if canonical_json(again.facts) != canonical_json(read.document):
        yield Difference("policy", *_first_difference(dict(again.facts), read.document))


def _first_difference(expected: Any, found: Any, where: str = "") -> tuple[str, Any, Any]:
    """Return the path and both values of the first place where two JSON values differ."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        pairs = [(f".{name}", expected.get(name), found.get(name)) for name in sorted({*expected, *found})]
    elif isinstance(expected, list | tuple) and isinstance(found, list | tuple) and len(expected) == len(found):
        pairs = [(f"[{index}]", *pair) for index, pair in enumerate(zip(expected, found, strict=True))]
    else:
        return where.lstrip("."), expected, found
    for step, ours, theirs in pairs:
        if canonical_json(ours) != canonical_json(theirs):
            return _first_difference(ours, theirs, where + step)
    return where.lstrip("."), expected, found


def _has_schema(read: _Facts) -> bool:
    provenance = read.document["provenance"]
    known = SCHEMAS.get(provenance["feature_schema"])
    return known is not None and known.digest == provenance["feature_schema_digest"]


def _unchanged(read: _Facts) -> bool:
    return read.profile is not None and not list(_changes(read.document, read.profile))


# name: (whether what it needs is there, the check). Arithmetic first, then the whole policy where nothing changed.
_Check = tuple[Callable[[_Facts], bool], Callable[[_Facts], Iterator[Difference]]]
_CHECKS: dict[str, _Check] = {
    "features": (_has_schema, _features),
    "scores": (lambda read: read.fit is not None, _scores),
    "decision": (lambda read: True, _decision),
    "policy": (_unchanged, _whole),
}


def _recipe(recipe_id: str) -> Recipe | None:
    try:
        return recipe(recipe_id)
    except KernelError:
        return None


def _workload(facts: Mapping[str, Any]) -> Workload:
    program = Program(_store(facts["program"]))
    if program.digest() != facts["program_digest"]:
        raise ValueError(f"program digest {facts['program_digest']} is not that of the stored program")
    names = ("rows", "width", "row_pitch", "alignment_bytes", "numerics")
    return Workload(program, **{name: facts[name] for name in names}, inner=facts.get("inner", 1))


def _target(facts: Mapping[str, Any]) -> Target:
    target = Target(**{name: value for name, value in facts.items() if name != "digest"})
    if target.digest() != facts["digest"]:
        raise ValueError(f"target digest {facts['digest']} is not that of the stored target")
    return target


def _store(tree: Any) -> Store:
    node = expression_from_tree(tree)
    if not isinstance(node, Store):
        raise ValueError(f"a program ends in a store, not in {tree[0]}")
    return node
