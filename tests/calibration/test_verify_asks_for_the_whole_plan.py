"""A packet is verified as a whole: what it does not hold is said, and what was left out is named."""

import copy

import pytest
from attrs import evolve

from calibration.assemble import contents as assembled
from calibration.packet import Contents, pack, read
from calibration.verify import notes
from kernels.identity import digest
from tests.calibration.forged import CONTENTS, found, named
from tests.calibration.planted import planted_contents
from tests.made import H200


def test_a_packet_that_ends_after_the_sweep_or_the_fit_is_verified() -> None:
    sweep = Contents(
        CONTENTS.plan, CONTENTS.environment, CONTENTS.sources, CONTENTS.options, CONTENTS.receipts, CONTENTS.cohort
    )
    assert found(sweep) == ()
    assert found(evolve(sweep, fits=CONTENTS.fits, profile=CONTENTS.profile)) == ()


def test_a_packet_that_ends_early_says_what_it_does_not_hold() -> None:
    (note,) = notes(read(pack("early", evolve(CONTENTS, validation=None, residuals=()))))
    assert "holds nothing in validation.json, residuals.jsonl:" in note
    begun = evolve(CONTENTS, cohort=(), fits=(), crossvalidation=None, profile=None, validation_records=())
    begun = evolve(begun, validation=None, selections=(), residuals=())
    assert found(begun) == ()
    (note,) = notes(read(pack("begun", begun)))
    assert "cohort.jsonl, fits.jsonl, crossvalidation.json, profile.json, validation.jsonl" in note


@pytest.mark.parametrize("runs", [(1,), (2,), (1, 2)])
def test_a_geometry_left_out_of_the_validation_is_named_though_all_is_judged_again(runs: tuple[int, ...]) -> None:
    """Dropping what fared badly and judging the rest leaves figures that follow from what is there."""
    key = CONTENTS.validation_records[8].key
    kept = tuple(r for r in CONTENTS.validation_records if r.key != key or r.run not in runs)
    named_by = {r.by_name["policy"].selection for r in kept}
    selections = tuple(facts for facts in CONTENTS.selections if digest(facts) in named_by)
    again = assembled(
        CONTENTS.plan,
        CONTENTS.environment,
        H200,
        CONTENTS.receipts,
        CONTENTS.cohort,
        CONTENTS.fits,
        CONTENTS.profile or {},
        kept,
        selections,
        (150_000, 180_000, 160_000),
    )
    findings = found(again)
    assert [finding.part for finding in findings] == ["validation.jsonl"] * len(runs)
    form, dtype, rows, width = key
    for run, finding in zip(runs, findings, strict=True):
        assert finding.item == f"{form} {dtype} {rows} x {width} run {run}"
        assert (finding.expected, finding.found) == ("a record", "none, and the point is planned")


def test_a_geometry_left_out_of_the_cohort_or_measured_twice_is_named() -> None:
    record = CONTENTS.cohort[3]
    rest = (*CONTENTS.cohort[:3], *CONTENTS.cohort[4:])
    assert "none" in named(evolve(CONTENTS, cohort=rest), "cohort.jsonl", record.label).found
    sweep = evolve(CONTENTS, cohort=rest, fits=(), crossvalidation=None, profile=None, validation_records=())
    sweep = evolve(sweep, validation=None, selections=(), residuals=())
    assert [finding.item for finding in found(sweep)] == [record.label]
    twice = tuple(sorted((*CONTENTS.cohort, evolve(record, attempt=2)), key=lambda r: (*r.key, r.digest)))
    assert named(evolve(sweep, cohort=twice), "cohort.jsonl", record.label).found == "more than one"
    assert named(evolve(CONTENTS, cohort=()), "cohort.jsonl", record.label).expected == "a record"


def test_a_plan_that_this_release_would_not_draw_is_a_note() -> None:
    """Other strata are another release; a point taken out of plan and records alike shows here and in the digest."""
    key = CONTENTS.validation_records[0].key
    plan = evolve(
        CONTENTS.plan,
        validation=tuple(p for p in CONTENTS.plan.validation if (p.form, p.dtype, p.rows, p.width) != key),
    )
    (note,) = notes(read(pack("chosen", evolve(CONTENTS, plan=plan))))
    assert f"the packet holds {plan.digest[:12]}" in note
    (note,) = notes(read(pack("unknown", evolve(CONTENTS, plan=evolve(CONTENTS.plan, memory_bytes=1)))))
    assert "cannot draw the plan" in note
    (note,) = notes(read(pack("nowhere", evolve(CONTENTS, profile=None, environment={"schema": "x"}))))[1:]
    assert "cannot draw the plan" in note


def test_plain_launches_are_judged_beside_graphs_and_change_no_other_figure() -> None:
    plain = planted_contents(plain=True)
    assert found(plain) == ()
    assert plain.validation is not None
    assert CONTENTS.validation is not None
    assert plain.validation["figures"] == CONTENTS.validation["figures"]
    assert "agreement" not in CONTENTS.validation
    assert plain.fits == CONTENTS.fits
    forged = copy.deepcopy(dict(plain.validation))
    forged["agreement"]["plain"]["maximum"] = 1.0
    named(evolve(plain, validation=forged), "validation.json", "agreement.plain.maximum")
    named(evolve(plain, validation=CONTENTS.validation), "validation.json", "agreement")
