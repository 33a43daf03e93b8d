"""Maps are drawn from the packet alone, to the same byte each time, and show what is decided and what was measured."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from attrs import evolve
from typer.testing import CliRunner

from calibration.bundle import ROOT
from calibration.errors import CalibrationError
from calibration.legend import KEPT
from calibration.maps import ODD, OUTSIDE, REGRETS, ROUND, VALUES, WORSE, _catalogue, _picks, maps
from calibration.packet import Packet, pack, read
from features.workload import Workload
from kernels.recipes import recipes_of
from policy.profile import profile_from_document
from policy.select import recorded, select
from rowsmith.cli import app
from tests.calibration.planted import planted_contents

CONTENTS = planted_contents()
FORM = CONTENTS.plan.training[0].form
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def packet() -> Packet:
    return read(pack("planted", CONTENTS))


@pytest.fixture(scope="module")
def drawn(packet: Packet) -> dict[str, ElementTree.Element]:
    return {name: ElementTree.fromstring(text) for name, text in maps(packet).items()}


def test_every_form_has_a_map_of_picks_and_one_of_regrets(packet: Packet, drawn: dict[str, object]) -> None:
    assert set(drawn) == {f"map-planted-{FORM.replace('.', '-')}-{kind}.svg" for kind in ("picks", "regret")}
    assert maps(packet) == maps(read(pack("planted", CONTENTS)))


@pytest.mark.parametrize("widths", [ROUND, ODD], ids=lambda widths: widths[0])
def test_the_ground_is_what_the_policy_decides(widths) -> None:  # type: ignore[no-untyped-def]
    profile = profile_from_document(CONTENTS.profile or {})
    program = CONTENTS.plan.training[0].program
    most = CONTENTS.plan.max_elements
    picks = _picks(program, widths[1], profile, _catalogue(CONTENTS), most)
    assert all(rows * widths[1](width) <= most for rows, width in picks)
    assert len(picks) > len(VALUES) ** 2 / 2
    for rows, width in sorted(picks)[::97]:
        work = Workload(program, rows, widths[1](width), widths[1](width))
        decision = select(work, profile.target, profile, recorded(profile)).decision
        outside = decision.reason == "outside_calibrated_domain"
        assert picks[rows, width] == (OUTSIDE if outside else decision.recipe)


def dots(picture: ElementTree.Element) -> list[ElementTree.Element]:
    return list(picture.iter(f"{SVG}circle"))


def test_every_judged_geometry_is_a_dot_that_says_what_it_is(drawn: dict[str, ElementTree.Element]) -> None:
    assert CONTENTS.validation is not None
    outcomes = CONTENTS.validation["outcomes"]
    picks, regrets = (
        next(p for name, p in drawn.items() if name.endswith(f"{kind}.svg")) for kind in ("picks", "regret")
    )
    assert len(dots(picks)) == len(outcomes)
    assert len(dots(regrets)) == len({(o["dtype"], o["rows"], o["width"]) for o in outcomes})
    for o in outcomes:
        worst = max(
            other["regret"] for other in outcomes if all(other[name] == o[name] for name in ("dtype", "rows", "width"))
        )
        told = f"{o['dtype']} {o['rows']} x {o['width']}: {o['picked']}, regret {worst:.3f}"
        dot = next(d for d in dots(regrets) if d.findtext(f"{SVG}title") == told)
        assert dot.get("fill") == next((colour for most, colour in REGRETS if worst <= most), WORSE)


def test_recipes_that_are_picked_have_a_colour_each_and_the_original_is_grey(
    drawn: dict[str, ElementTree.Element],
) -> None:
    picture = next(p for name, p in drawn.items() if name.endswith("picks.svg"))
    legend = [t.text for t in picture.iter(f"{SVG}text")]
    fills = {p.get("fill") for p in picture.iter(f"{SVG}path")}
    named = [row.id for row in recipes_of(FORM) if row.id in legend]
    assert named[0] == recipes_of(FORM)[0].id
    assert KEPT in fills
    assert len(fills) >= len(named)


def test_a_packet_without_a_validation_has_no_map() -> None:
    with pytest.raises(CalibrationError, match="holds no validated profile"):
        maps(read(pack("early", evolve(CONTENTS, validation=None, residuals=()))))


def test_the_command_writes_the_maps_of_a_packet(tmp_path: Path) -> None:
    file = ROOT / "calibration" / "packets" / "h200.zip"
    answer = CliRunner().invoke(app, ["map", str(file), "--out", str(tmp_path / "drawn")])
    assert answer.exit_code == 0, answer.output
    written = sorted((tmp_path / "drawn").iterdir())
    assert [str(path) for path in written] == answer.output.split()
    for path in written:
        assert path.read_bytes() == (ROOT / "docs" / path.name).read_bytes()
