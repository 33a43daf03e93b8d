"""Experiments are compared with what differs in one thing; the page tells every loss and every missing pair."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from calibration import bundle as bundling
from calibration import experiments
from calibration.isolated import ROW_SPANS, WIDTH_SPANS, Isolated, isolated, measured, standings
from calibration.packet import Packet, pack, read
from calibration.planned import Planned
from calibration.records import Geometry
from kernels.experiments import CHANGES, Pair, apart, pairs
from kernels.recipe import Recipe
from kernels.recipes import RECIPES, original_of
from kernels.recipes import recipe as row_of
from kernels.source import sources
from tests.calibration.planted import planted_contents
from tests.calibration.tried import tried
from tests.made import made_receipt

PAIRS = pairs(RECIPES)
ORIGINAL_OF_SUM = original_of("reduce.sum")
EXPERIMENTAL = {row.id for row in RECIPES if row.experimental}
GEOMETRIES = tuple(
    (dtype, rows, width)
    for dtype in ("bfloat16", "float32")
    for rows, width in ((3, 16384), (40, 1000), (64, 512), (300, 1001), (300, 2048), (5000, 96))
)


def planted_us(row: Recipe, planned: Planned) -> float:
    """Aligned loads take half as long again, unrolling saves a fifth, one more element a lane a hundredth."""
    us = 10.0 if row.template == ORIGINAL_OF_SUM.template else 12.0
    us *= 1.5 if ("ALIGNED", "1") in row.constants else 1.0
    if row.experimental:
        us *= (0.8 if row.phases > 1 else 1.0) * 0.99 ** (row.items - 1)
    return us


RECORDS = tried(GEOMETRIES, planted_us)


def found(records: tuple[Geometry, ...] = RECORDS) -> dict[tuple[str, str, str], Isolated]:
    return {(one.pair.change.name, one.pair.of, one.pair.against): one for one in isolated(records)}


def test_an_isolated_change_is_one_difference_alone() -> None:
    for pair in PAIRS:
        one, other = row_of(pair.of), row_of(pair.against)
        assert one.form == other.form == pair.form
        assert not pair.change.isolated or len(apart(one, other)) == 1, pair
        assert {one.id, other.id} & EXPERIMENTAL or apart(one, other) == {"ALIGNED": ("1", "0")}


def test_every_experiment_takes_part_and_stands_beside_its_original() -> None:
    assert {pair.of for pair in PAIRS} >= EXPERIMENTAL
    for name in EXPERIMENTAL:
        against = {pair.against for pair in PAIRS if pair.of == name}
        assert original_of(row_of(name).form).id in against
    changed = {pair.change.name for pair in PAIRS}
    assert changed == {change.name for change in CHANGES}


def test_each_comparison_says_what_was_planted() -> None:
    held = found()
    assert set(held) == {(pair.change.name, pair.of, pair.against) for pair in PAIRS if pair.form == "reduce.sum"}
    for one in held.values():
        of, against = row_of(one.pair.of), row_of(one.pair.against)
        at = Planned("sum", "float32", 1, 1, {})
        planted = planted_us(of, at) / planted_us(against, at)
        for stratum in (*one.by_dtype, *one.by_stratum):
            tally = stratum.tally
            assert tally.ratio_geomean == pytest.approx(planted, rel=1e-3)
            verdicts = {planted < 1: tally.wins, planted > 1: tally.loses, planted == 1: tally.same}
            assert verdicts[True] == tally.geometries == tally.wins + tally.loses + tally.same
            assert tally.across == 0


def test_strata_part_what_a_dtype_holds() -> None:
    for one in found().values():
        for whole in one.by_dtype:
            parts = [s for s in one.by_stratum if s.dtype == whole.dtype]
            assert sum(s.tally.geometries for s in parts) == whole.tally.geometries
            for s in parts:
                assert s.rows is not None
                assert s.rows.holds(s.tally.best.record.rows)
    for spans in (ROW_SPANS, WIDTH_SPANS):
        assert all(sum(span.holds(extent) for span in spans) == 1 for extent in (0, 1, 64, 65, 128, 129, 2048, 2**20))


def test_intervals_that_overlap_are_neither_won_nor_lost() -> None:
    records = tried(GEOMETRIES[:1], lambda row, planned: 10.0 * (1.002 if row.experimental else 1.0))
    for one in isolated(records):
        for stratum in one.by_dtype:
            assert (stratum.tally.wins, stratum.tally.loses) == (0, 0)
            assert stratum.tally.same == stratum.tally.geometries


def test_both_runs_of_a_validation_are_one_geometry() -> None:
    runs = [tried(GEOMETRIES[:1], planted_us, run=run) for run in (1, 2)]
    one = next(one for one in isolated((*runs[0], *runs[1])) if one.by_dtype)
    tally = one.by_dtype[0].tally
    assert (tally.geometries, tally.wins + tally.loses + tally.same) == (1, 2)


def test_the_fastest_of_a_record_is_told_and_whether_it_is_alone() -> None:
    best = min(EXPERIMENTAL)

    def us(row: Recipe, planned: Planned) -> float:
        return {best: 8.0 if planned.rows == 3 else 9.999}.get(row.id, 10.0)

    taken = tried((("float32", 3, 16384), ("float32", 64, 512)), us)
    (held,) = standings(taken, (best,))
    assert (held.timed, held.fastest, held.alone) == (2, 2, 1)
    assert held.nearest is not None
    assert held.nearest[0] == pytest.approx(0.8, rel=1e-3)
    assert held.nearest[1].rows == 3


@pytest.fixture(scope="module")
def packet() -> Packet:
    """The planted packet of scans, with the records of the experiments beside its own."""
    contents = planted_contents()
    names = sorted({name for record in RECORDS for name in record.by_name})
    receipts = tuple(
        made_receipt(row_of(name), dtype, registers=40 + place)
        for place, name in enumerate(names)
        for dtype in ("bfloat16", "float32")
    )
    cohort, held = (*contents.cohort, *RECORDS), (*contents.receipts, *receipts)
    texts = {file: text for name in names for file, text in sources(row_of(name).template).items()}
    changed = evolve(contents, cohort=cohort, receipts=held, sources={**contents.sources, **texts})
    return read(pack("tried", changed))


def section(text: str, title: str) -> str:
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_the_page_tells_each_change_with_the_reports_findings(packet: Packet) -> None:
    text = experiments.page(packet)
    assert max(map(len, text.splitlines())) < 2000
    for change in CHANGES:
        part = section(text, change.name[0].upper() + change.name[1:])
        assert ("Nothing else differs." in part) == change.isolated
        for report in change.report.values():
            assert f"The report: {report}" in part
    for name in EXPERIMENTAL:
        assert f"| {name} (experimental) |" in section(text, "Whether one was ever the fastest")
        assert f"| {name} | float32 |" in section(text, "Resources")
    loads = section(text, "Aligned loads")
    row = next(line for line in loads.splitlines() if line.startswith("| sum.aligned | sum.original | float32 |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[3:8] == ["5", "0", "5", "0", "1.5"]
    assert "15.03 / 10.02 us" in cells[8]
    registers = {receipt.recipe: receipt.registers for receipt in packet.contents.receipts}
    assert cells[10] == f"{registers['sum.aligned']} / {registers['sum.original']}"


def test_a_pair_without_a_common_geometry_is_told(packet: Packet) -> None:
    def missing(pair: Pair, records: tuple[Geometry, ...]) -> bool:
        return not any({pair.of, pair.against} <= record.by_name.keys() for record in records)

    wide = tried((("float32", 3, 16384),), planted_us)
    text = experiments.page(Packet(packet.digest, "x", {}, {}, evolve(packet.contents, cohort=wide)))
    lost = [pair for pair in PAIRS if pair.form == "reduce.sum" and missing(pair, wide)]
    assert lost
    for pair in lost:
        assert f"- No record holds {pair.of} and {pair.against} both fit for use:" in text
    assert text.count("No record holds") == len(lost)


def test_a_packet_without_experiments_has_no_page(tmp_path: Path, packet: Packet) -> None:
    scans = planted_contents()
    assert not measured(scans.cohort)
    file = tmp_path / "scans.zip"
    file.write_bytes(pack("scans", scans))
    assert experiments.pages(read(file)) == {}
    with pytest.raises(SystemExit, match="no measurement of an experimental recipe"):
        experiments.main([str(file)], tmp_path)


def test_the_command_and_the_bundle_write_the_same_page(
    tmp_path: Path, packet: Packet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tried.zip"
    file.write_bytes(pack("tried", packet.contents))
    experiments.main([str(file)], tmp_path)
    assert capsys.readouterr().out.strip() == str(tmp_path / "experiments.md")
    monkeypatch.setattr(bundling, "verify", lambda packet: ())
    written = bundling.bundle(file, tmp_path / "root")
    page = tmp_path / "root" / "docs" / "experiments.md"
    assert page in written
    assert page.read_bytes() == (tmp_path / "experiments.md").read_bytes()
    assert experiments.file_name("cold") == "experiments-cold.md"
