"""Verifying does the arithmetic again: one changed sample, coefficient or fact is named, whatever the manifest says."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from calibration.freeze import freeze, in_force
from calibration.packet import pack, read
from calibration.records import Geometry
from calibration.verify import notes, verify, verify_fit
from kernels.identity import digest
from tests.calibration.forged import CONTENTS, found, named
from tests.calibration.planted import with_record
from tests.made import H200


def test_a_packet_that_nobody_touched_is_verified() -> None:
    packet = read(pack("planted", CONTENTS))
    assert verify(packet) == ()
    assert notes(packet) == ()


def resampled(record: Geometry, name: str, change: Callable[[int], int]) -> Geometry:
    measurements = tuple(
        evolve(m, samples_ns=(change(m.samples_ns[0]), *m.samples_ns[1:])) if m.name == name else m
        for m in record.measurements
    )
    return evolve(record, measurements=measurements)


@pytest.mark.parametrize("place", [0, 57, -1])
@pytest.mark.parametrize("change", [lambda ns: ns + 1, lambda ns: ns * 3], ids=["by a nanosecond", "threefold"])
def test_one_changed_training_sample_names_its_geometry(place: int, change: Callable[[int], int]) -> None:
    record = CONTENTS.cohort[place]
    forged = resampled(record, "scan.original", change)
    finding = named(
        with_record(CONTENTS, "cohort", place, forged), "cohort.jsonl", record.label, "digest of the record"
    )
    assert (finding.expected, finding.found) == (record.digest, forged.digest)


@pytest.mark.parametrize("name", ["scan.original", "policy", "copy"])
def test_one_changed_validation_sample_names_its_outcome(name: str) -> None:
    record = CONTENTS.validation_records[5]
    forged = resampled(record, name, lambda ns: ns + 1)
    finding = named(with_record(CONTENTS, "validation_records", 5, forged), "validation.json", "outcomes[5].geometry")
    assert (finding.expected, finding.found) == (forged.digest, record.digest)


def changed_fit(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    fit = copy.deepcopy(dict(CONTENTS.fits[0]))
    change(fit)
    return fit


@pytest.mark.parametrize("column", [0, 1, 2])
@pytest.mark.parametrize("block", [0, 1])
def test_one_changed_coefficient_of_a_fit_is_named(block: int, column: int) -> None:
    def change(fit: dict[str, Any]) -> None:
        fit["blocks"][block]["coefficients"][column] *= 1.0005

    forged = changed_fit(change)
    part = forged["blocks"][block]
    label = f"block {part['role']} {part['dtype']} coefficients[{column}]"
    finding = named(evolve(CONTENTS, fits=(forged,)), "fits.jsonl", label)
    assert finding.found == part["coefficients"][column]
    assert finding.expected == pytest.approx(CONTENTS.fits[0]["blocks"][block]["coefficients"][column], rel=1e-9)


def test_a_coefficient_forged_through_the_profile_is_still_found() -> None:
    """The profile is frozen again from the forged fit: the solve alone tells."""

    def change(fit: dict[str, Any]) -> None:
        fit["blocks"][1]["coefficients"][0] *= 0.9

    forged = changed_fit(change)
    profile = freeze("planted", "hot", H200, (forged,), CONTENTS.receipts)
    named(evolve(CONTENTS, fits=(forged,), profile=profile), "fits.jsonl", "coefficients[0]")


def test_one_changed_coefficient_of_the_profile_is_named() -> None:
    profile = copy.deepcopy(dict(CONTENTS.profile or {}))
    profile["fits"][0]["blocks"][0]["coefficients"][1] += 1e-9
    finding = named(evolve(CONTENTS, profile=profile), "profile.json", "fits[0].blocks[0].coefficients[1]")
    assert finding.expected == in_force(CONTENTS.fits)[0]["blocks"][0]["coefficients"][1]


FIT_ITEMS: dict[str, Callable[[dict[str, Any]], None]] = {
    "design[3][1]": lambda fit: fit["blocks"][0]["design"][3].__setitem__(1, 1.5),
    "target_us[2]": lambda fit: fit["blocks"][0]["target_us"].__setitem__(2, 1.5),
    "weights[2]": lambda fit: fit["blocks"][0]["weights"].__setitem__(2, 1.5),
    "scales[0]": lambda fit: fit["blocks"][0]["scales"].__setitem__(0, 1.5),
    "ranges[1][1]": lambda fit: fit["blocks"][0]["ranges"][1].__setitem__(1, 1e9),
    "active[0]": lambda fit: fit["blocks"][0]["active"].__setitem__(0, False),
    "objective": lambda fit: fit["blocks"][0].__setitem__("objective", 0.0),
    "kkt.gradient": lambda fit: fit["blocks"][0]["kkt"].__setitem__("gradient", 0.1),
    "condition": lambda fit: fit["blocks"][0].__setitem__("condition", 1.0),
    "points": lambda fit: fit["blocks"][0]["points"].reverse(),
    "dtype_sharing_table[0].regret_worst": lambda fit: fit["dtype_sharing_table"][0].__setitem__("regret_worst", 1.0),
    "feature_schema_digest": lambda fit: fit.__setitem__("feature_schema_digest", "0" * 64),
    "cohort": lambda fit: fit.__setitem__("cohort", "0" * 64),
}


@pytest.mark.parametrize("item", FIT_ITEMS)
def test_one_changed_item_of_a_fit_is_named(item: str) -> None:
    assert named(evolve(CONTENTS, fits=(changed_fit(FIT_ITEMS[item]),)), "fits.jsonl", item)


def test_verifying_one_fit_needs_only_its_records_and_receipts() -> None:
    """What a service does when it is asked to solve a stored fit again."""
    fit = CONTENTS.fits[0]
    assert verify_fit(fit, CONTENTS.cohort, CONTENTS.receipts, H200) == ()
    assert verify_fit(fit, CONTENTS.cohort[::-1], CONTENTS.receipts[::-1], H200) == ()
    assert verify_fit(fit, CONTENTS.cohort[1:], CONTENTS.receipts, H200)
    assert verify_fit({"form": fit["form"]}, CONTENTS.cohort, CONTENTS.receipts, H200)
    (finding,) = verify_fit(fit, CONTENTS.cohort, (), H200)
    assert "there is no receipt" in finding.found


@pytest.mark.parametrize(
    ("fact", "value"), [("registers", 33), ("resident_ctas_per_sm", 4), ("local_bytes", 8), ("cubin", "1" * 64)]
)
def test_one_changed_receipt_fact_is_named(fact: str, value: Any) -> None:
    place = next(i for i, r in enumerate(CONTENTS.receipts) if (r.recipe, r.dtype) == ("scan.cub128", "float16"))
    receipts = list(CONTENTS.receipts)
    receipts[place] = evolve(receipts[place], **{fact: value})
    finding = named(evolve(CONTENTS, receipts=tuple(receipts)), "receipts.jsonl", f"scan.cub128 float16.{fact}")
    assert (finding.expected, finding.found) == (getattr(CONTENTS.receipts[place], fact), value)


def test_a_receipt_forged_through_the_profile_is_still_found() -> None:
    """Capacity enters the features: the stored design no longer follows from the receipts."""
    receipts = tuple(evolve(r, resident_ctas_per_sm=1) if r.recipe == "scan.cub128" else r for r in CONTENTS.receipts)
    profile = freeze("planted", "hot", H200, CONTENTS.fits, receipts)
    forged = evolve(CONTENTS, receipts=receipts, profile=profile)
    named(forged, "fits.jsonl", "design[")
    named(forged, "fits.jsonl", "cohort")


def test_a_changed_source_names_each_receipt_made_from_it() -> None:
    sources = {**CONTENTS.sources, "scan_cub.cu": CONTENTS.sources["scan_cub.cu"] + b"\n"}
    finding = named(evolve(CONTENTS, sources=sources), "receipts.jsonl", "scan.cub128 float16 source")
    assert finding.found == next(
        r.source for r in CONTENTS.receipts if (r.recipe, r.dtype) == ("scan.cub128", "float16")
    )
    assert not any(
        "original" in finding.item for finding in found(evolve(CONTENTS, sources=sources)) if "source" in finding.item
    )


def test_a_changed_option_or_environment_is_named() -> None:
    named(evolve(CONTENTS, options=(*CONTENTS.options, "--use_fast_math")), "receipts.jsonl", "options")
    named(evolve(CONTENTS, environment={**CONTENTS.environment, "driver": "x"}), "fits.jsonl", "cohort")


def test_a_changed_selection_names_the_fact() -> None:
    """Its digest changes, so the record no longer finds it; forging the record too leaves the decision to tell."""
    place = next(i for i, facts in enumerate(CONTENTS.selections) if facts["decision"]["reason"] == "admitted")
    facts = copy.deepcopy(dict(CONTENTS.selections[place]))
    old = digest(facts)
    facts["decision"]["score_us"] += 1e-9
    selections = (*CONTENTS.selections[:place], facts, *CONTENTS.selections[place + 1 :])
    named(evolve(CONTENTS, selections=selections), "selections.jsonl", "selection of")
    records = tuple(
        evolve(
            record,
            measurements=tuple(
                evolve(m, selection=digest(facts)) if m.selection == old else m for m in record.measurements
            ),
        )
        for record in CONTENTS.validation_records
    )
    forged = evolve(CONTENTS, selections=selections, validation_records=records)
    finding = named(forged, "selections.jsonl", "decision.score_us")
    assert finding.found == facts["decision"]["score_us"]


def test_another_catalogue_is_a_note_and_its_arithmetic_is_still_checked() -> None:
    """A later release lists other kernels: the stored facts are checked and the change is reported apart."""
    forged = [copy.deepcopy(dict(facts)) for facts in CONTENTS.selections]
    for facts in forged:
        facts["provenance"] = {**facts["provenance"], "catalogue": "0" * 64}
    renamed = {digest(old): digest(new) for old, new in zip(CONTENTS.selections, forged, strict=True)}
    records = tuple(
        evolve(
            record,
            measurements=tuple(
                evolve(m, selection=renamed[m.selection]) if m.selection else m for m in record.measurements
            ),
        )
        for record in CONTENTS.validation_records
    )
    other = evolve(CONTENTS, selections=tuple(forged), validation_records=records, validation=None, residuals=())
    packet = read(pack("older", other))
    assert verify(packet) == ()
    _, note = notes(packet)
    assert "catalogue 000000000000" in note
    scored = next(f for f in forged if f["decision"]["reason"] == "admitted")
    scored["candidates"][1]["score_us"] *= 2
    named(evolve(other, selections=tuple(forged)), "selections.jsonl")


@pytest.mark.parametrize(
    "item", ["figures.runs.both.regret_worst", "figures.runs.1.admitted_share", "standing", "host_search.median_us"]
)
def test_one_changed_figure_of_the_validation_is_named(item: str) -> None:
    validation = copy.deepcopy(dict(CONTENTS.validation or {}))
    *path, last = item.split(".")
    node = validation
    for key in path:
        node = node[key]
    node[last] = "forged"
    assert named(evolve(CONTENTS, validation=validation), "validation.json", item).found == "forged"


def test_one_changed_residual_or_held_out_figure_is_named() -> None:
    lines = [dict(line) for line in CONTENTS.residuals]
    lines[4]["predicted_us"] *= 1.01
    named(evolve(CONTENTS, residuals=tuple(lines)), "residuals.jsonl", lines[4]["geometry"], "predicted_us")
    named(evolve(CONTENTS, residuals=CONTENTS.residuals[1:]), "residuals.jsonl", CONTENTS.residuals[0]["geometry"])
    document = copy.deepcopy(dict(CONTENTS.crossvalidation or {}))
    schema = CONTENTS.fits[0]["feature_schema"]
    document["schemas"][schema]["splits"]["width"]["regret_p95"] = 1.0
    named(evolve(CONTENTS, crossvalidation=document), "crossvalidation.json", "splits.width.regret_p95")


def test_a_record_out_of_its_plan_place_or_order_is_named() -> None:
    stray = evolve(CONTENTS.cohort[0], rows=3)
    named(with_record(CONTENTS, "cohort", 0, stray), "cohort.jsonl", stray.label)
    named(evolve(CONTENTS, cohort=CONTENTS.cohort[::-1]), "cohort.jsonl", "order")
    named(evolve(CONTENTS, cohort=CONTENTS.cohort[1:]), "fits.jsonl", "cohort")
    moved = evolve(CONTENTS.cohort[0], drift=0.01)
    named(with_record(CONTENTS, "cohort", 0, moved), "cohort.jsonl", moved.label, "drift")


def test_kernels_with_macros_of_another_release_are_tied_to_their_sources_by_the_packet_itself() -> None:
    """The environment holds the catalogue it was swept with; what it says must give the receipts' digests."""
    environment = copy.deepcopy(dict(CONTENTS.environment))
    environment["catalogue"]["recipes"][1]["macros"]["float16"].append("-DOTHER=1")
    finding = named(evolve(CONTENTS, environment=environment), "receipts.jsonl", "scan.cub128 float16 source")
    assert finding.found != finding.expected
    environment = copy.deepcopy(dict(CONTENTS.environment))
    del environment["catalogue"]["recipes"][1]
    assert "no kernel scan.cub128" in named(evolve(CONTENTS, environment=environment), "receipts.jsonl").found


@pytest.mark.parametrize(
    "said",
    [
        {"right": False},
        {"right": None},
        {"guards_and_input_intact": False},
        {"bad_finite": 1},
        {"bad_special": 1},
        {"worst_share": 1.5},
    ],
    ids=str,
)
@pytest.mark.parametrize("status", ["measured", "unstable"])
def test_a_recipe_that_failed_its_check_may_not_have_been_timed(said: dict[str, Any], status: str) -> None:
    record = CONTENTS.cohort[0]
    wrong = evolve(record.measurements[1], status=status, check={**(record.measurements[1].check or {}), **said})
    forged = evolve(record, measurements=(record.measurements[0], wrong, *record.measurements[2:]))
    finding = named(with_record(CONTENTS, "cohort", 0, forged), "cohort.jsonl", record.label, f"{wrong.name} check")
    assert finding.found == wrong.check


def test_a_recipe_may_not_be_put_aside_as_wrong_with_a_check_that_passed() -> None:
    record = CONTENTS.cohort[0]
    aside = evolve(record.measurements[1], status="wrong", samples_ns=())
    forged = evolve(record, measurements=(record.measurements[0], aside, *record.measurements[2:]))
    finding = named(with_record(CONTENTS, "cohort", 0, forged), "cohort.jsonl", f"{aside.name} check")
    assert finding.expected == "one that failed"
