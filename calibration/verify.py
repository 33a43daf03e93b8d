"""Verifying a packet offline: every figure in it is done again from the samples, receipts and sources it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from calibration.cohort import canonical, canonical_receipts, cohort_document
from calibration.compare import EXACT, RESOLVED, Finding, differences
from calibration.crossval import crossvalidation_document
from calibration.errors import CalibrationError
from calibration.extents import shape_text
from calibration.fit import designs_of
from calibration.freeze import freeze
from calibration.judge import judge
from calibration.packet import Contents, Packet, empty_members
from calibration.plan import Planned, draw_plan
from calibration.records import POLICY, RUNS, TRAINING, VALIDATION, Geometry, inconsistencies
from calibration.replay import catalogue_notes, replay
from calibration.residuals import residuals
from calibration.sources import Identities, catalogue_facts, identities
from calibration.verifyfit import verify_fit
from features.errors import FeatureError
from kernels.errors import KernelError
from kernels.identity import digest
from kernels.target import Target
from policy.errors import PolicyError
from policy.profile import profile_from_document

__all__ = ["Finding", "notes", "verify", "verify_fit"]

_FAILURES = (
    CalibrationError,
    FeatureError,
    KernelError,
    PolicyError,
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    StopIteration,
)


def verify(packet: Packet) -> tuple[Finding, ...]:
    """Return every difference between what a packet says and what its own samples give; empty means verified.

    Digests, picks and decisions are compared exactly, sums within 10^-12 and what a solve enters within 10^-6, all
    relative. What the packet does not hold, and that this release has other kernels or strata, is no difference:
    `notes` says so.
    """
    found: list[Finding] = []
    for part, check in _CHECKS:
        try:
            found += check(packet.contents)
        except _FAILURES as error:
            found.append(Finding(part, "the whole part", "something to check", f"{type(error).__name__} {error}"))
    return tuple(dict.fromkeys(found)) if _hashable(found) else tuple(found)


def notes(packet: Packet) -> tuple[str, ...]:
    """Return what a reader should know that is no difference: what is not there to be verified, and what is older."""
    contents = packet.contents
    made_with = contents.environment.get("catalogue", {}).get("digest")
    return (*_missing(contents), *_other_plan(contents), *catalogue_notes(contents.selections, made_with))


def _missing(contents: Contents) -> Iterator[str]:
    if empty := empty_members(contents):
        yield f"holds nothing in {', '.join(empty)}: a packet may end early, and what is not there was not verified"


def _other_plan(contents: Contents) -> Iterator[str]:
    """The inventory is drawn from committed tables: a plan that nobody draws again may have been chosen by hand."""
    plan = contents.plan
    try:
        again = draw_plan(
            plan.ops,
            plan.seed,
            target_of(contents),
            plan.memory_bytes,
            dtypes=plan.dtypes,
            regime=plan.regime,
            max_elements=plan.max_elements,
            inventory_name=plan.inventory,
            inventory_seed=plan.inventory_seed,
            learnt_seeds=plan.learnt_seeds,
        )
    except _FAILURES as error:
        yield f"this release cannot draw the plan of seed {plan.seed} again ({error}): its points were taken as given"
        return
    if again.digest != plan.digest:
        yield (
            f"this release's strata draw plan {again.digest[:12]} from seed {plan.seed}, and the packet holds "
            f"{plan.digest[:12]}: its points were taken as given"
        )


def target_of(contents: Contents) -> Target:
    """Return the target that a packet was measured on: the profile's, or the environment's before there is one."""
    facts = contents.profile["target"] if contents.profile is not None else contents.environment["target"]
    return Target(**facts)


def _check_records(contents: Contents) -> Iterator[Finding]:
    """Each record says what its samples say, is of its own part, and is there once in canonical order."""
    parts = (
        ("cohort.jsonl", TRAINING, contents.cohort),
        ("validation.jsonl", VALIDATION, contents.validation_records),
    )
    for part, purpose, records in parts:
        for record in records:
            if record.purpose != purpose:
                yield Finding(part, f"{record.label} purpose", purpose, record.purpose)
            for what, expected, found in inconsistencies(record):
                yield Finding(part, f"{record.label} {what}", expected, found)
        if list(records) != list(canonical(records)):
            yield Finding(part, "order of records", "canonical", "another")


def _check_plan(contents: Contents) -> Iterator[Finding]:
    """Each planned point has one record a run, and no record lies outside its own part of the plan.

    A part that the packet ends before has none; once anything follows from it, or is in it, all of it has to be there.
    """
    plan, judged = contents.plan, bool(contents.validation_records or contents.validation)
    trained = judged or bool(contents.cohort or contents.fits or contents.profile)
    if trained:
        yield from _planned("cohort.jsonl", plan.training, contents.cohort, TRAINING)
    if judged:
        yield from _planned("validation.jsonl", plan.validation, contents.validation_records, VALIDATION)


def _planned(part: str, planned: Iterable[Planned], records: Iterable[Geometry], purpose: str) -> Iterator[Finding]:
    expected = {(p.form, p.dtype, *p.extents, run): p for p in planned for run in RUNS[purpose]}
    found: dict[tuple[str, str, *tuple[int, ...]], int] = {}
    for record in records:
        key = (*record.key, record.run)
        found[key] = found.get(key, 0) + 1
        if key not in expected:
            yield Finding(part, record.label, "a geometry of this part of the plan", "one that is not planned")
        elif found[key] == 2:
            yield Finding(part, record.label, "one record", "more than one")
    for missing in sorted(expected.keys() - found.keys()):
        p, run = expected[missing], missing[-1]
        where = f"{p.form} {p.dtype} {shape_text(p.rows, p.width, p.inner)}" + (f" run {run}" if run else "")
        yield Finding(part, where, "a record", "none, and the point is planned")


def _identities(contents: Contents) -> Identities:
    catalogue = contents.environment.get("catalogue") or catalogue_facts()
    return identities(catalogue, contents.sources, contents.options, contents.receipts)


def _check_sources(contents: Contents) -> Iterator[Finding]:
    """Each receipt is of the sources and options in the packet, and so is each measured kernel."""
    made_from = _identities(contents)
    for receipt in contents.receipts:
        where = f"{receipt.recipe} {receipt.dtype}"
        identity = made_from[receipt.recipe, receipt.dtype]
        yield from differences("receipts.jsonl", f"{where} source", identity.source, receipt.source)
        yield from differences("receipts.jsonl", f"{where} options", identity.options, receipt.options)
    for part, records in (("cohort.jsonl", contents.cohort), ("validation.jsonl", contents.validation_records)):
        for record in records:
            again = (m for later in record.joined for m in later.again)
            for m in (*record.recipes(), *again):
                known = made_from.get((m.name, record.dtype))
                if m.source is not None and known is not None and m.source != known.source:
                    yield Finding(part, f"{record.label} {m.name} source", known.source, m.source)


def _check_cohort(contents: Contents) -> Iterator[Finding]:
    """Each fit names the cohort that the records, receipts and environment in the packet make."""
    again = digest(cohort_document(contents.cohort, contents.receipts, digest(contents.environment)))
    for fit in contents.fits:
        yield from differences("fits.jsonl", f"{fit['feature_schema']} cohort", again, fit["cohort"])


def _check_fits(contents: Contents) -> Iterator[Finding]:
    target = target_of(contents)
    for fit in contents.fits:
        yield from verify_fit(fit, contents.cohort, contents.receipts, target)


def _check_crossvalidation(contents: Contents) -> Iterator[Finding]:
    if contents.crossvalidation is None:
        return
    designs = designs_of(contents.cohort, contents.receipts, target_of(contents))
    again = crossvalidation_document(designs, contents.fits)
    part = "crossvalidation.json"
    yield from differences(part, "crossvalidation", again, contents.crossvalidation, RESOLVED)


def _check_profile(contents: Contents) -> Iterator[Finding]:
    """The profile is what freezing the fits and receipts gives, to the last bit."""
    if contents.profile is None:
        return
    stored = contents.profile
    known = {(r["recipe"], r["dtype"]): r for r in stored["receipts"]}
    for receipt in canonical_receipts(contents.receipts):
        theirs = known.get((receipt.recipe, receipt.dtype))
        where = f"{receipt.recipe} {receipt.dtype}"
        if theirs is not None:
            yield from differences("receipts.jsonl", where, theirs, receipt.facts(), 0.0)
    regime = contents.plan.regime
    again = freeze(stored["name"], regime, target_of(contents), contents.fits, contents.receipts, stored["earned"])
    yield from differences("profile.json", "profile", again, stored, 0.0)


def _check_selections(contents: Contents) -> Iterator[Finding]:
    """Every automatic pick of the validation has one selection, which the policy makes again."""
    if contents.profile is None:
        return
    profile = profile_from_document(contents.profile)
    made_from = _identities(contents)
    by_id = {digest(facts): facts for facts in contents.selections}
    named: dict[str, Geometry] = {}
    for record in contents.validation_records:
        if (picked := record.by_name.get(POLICY)) is not None and picked.selection is not None:
            named.setdefault(picked.selection, record)
    for name, record in named.items():
        if name in by_id:
            yield from replay(by_id[name], record, profile, made_from)
        else:
            yield Finding("selections.jsonl", f"selection of {record.label}", name, "no selection with this digest")
    for name in by_id:
        if name not in named:
            yield Finding("selections.jsonl", f"selection {name}", "one that a record names", "one that none names")


def _check_validation(contents: Contents) -> Iterator[Finding]:
    stored = contents.validation
    if stored is None:
        return
    assert contents.profile is not None, "a validation without the profile it judges"
    host = stored["host_search"]["samples_ns"]
    records, selections = contents.validation_records, contents.selections
    again = judge(digest(contents.profile), records, selections, host, stored["schema"])
    yield from differences("validation.json", "validation", again, stored, EXACT)


def _check_residuals(contents: Contents) -> Iterator[Finding]:
    """One line for every measured candidate; held-out predictions come from solves, others from stored coefficients."""
    if not contents.residuals:
        return
    records = (*contents.cohort, *contents.validation_records)
    again = residuals(records, contents.receipts, target_of(contents), contents.fits)
    ours, theirs = _lines(again), _lines(contents.residuals)
    for key in sorted(ours.keys() | theirs.keys()):
        name = " ".join(key)
        if key not in theirs or key not in ours:
            yield Finding(
                "residuals.jsonl", name, "a line" if key in ours else "no line", "none" if key in ours else "a line"
            )
            continue
        tolerance = RESOLVED if key[0] == "crossvalidation" else EXACT
        for column in ("predicted_us", "measured_us"):
            yield from differences(
                "residuals.jsonl", f"{name} {column}", ours[key][column], theirs[key][column], tolerance
            )
        line = theirs[key]
        if line["residual_us"] != line["predicted_us"] - line["measured_us"]:
            expected = line["predicted_us"] - line["measured_us"]
            yield Finding("residuals.jsonl", f"{name} residual_us", expected, line["residual_us"])


def _lines(lines: Any) -> Mapping[tuple[str, str, str, str], Mapping[str, Any]]:
    return {(line["set"], line["geometry"], line["recipe"], line["fit"]): line for line in lines}


def _hashable(findings: list[Finding]) -> bool:
    try:
        {hash(finding) for finding in findings}
    except TypeError:
        return False
    return True


# In the order in which a reader should look: what was measured, what it was made from, what follows from it.
_CHECKS: tuple[tuple[str, Callable[[Contents], Iterator[Finding]]], ...] = (
    ("cohort.jsonl", _check_records),
    ("plan.json", _check_plan),
    ("receipts.jsonl", _check_sources),
    ("fits.jsonl", _check_cohort),
    ("fits.jsonl", _check_fits),
    ("crossvalidation.json", _check_crossvalidation),
    ("profile.json", _check_profile),
    ("selections.jsonl", _check_selections),
    ("validation.json", _check_validation),
    ("residuals.jsonl", _check_residuals),
)
