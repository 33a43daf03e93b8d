"""Maps of nine programs and many recipes: colours that can be told apart, legends inside the picture, small files."""

from __future__ import annotations

import itertools
import math
import xml.etree.ElementTree as ElementTree

import pytest
from attrs import evolve

from calibration.legend import KEPT, Entry, colours, legend, text_width
from calibration.maps import maps
from calibration.packet import Packet
from calibration.planned import Planned
from features.program import OPS
from kernels.dtypes import STORAGE
from kernels.recipe import ORIGINAL
from kernels.recipes import RECIPES, recipes_of
from tests.calibration.planted import planted_contents
from tests.made import FAMILIES, made_document

SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 300_000
FORMS = tuple(dict.fromkeys(row.form for row in RECIPES))


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """The maps of a profile that prices every program with made-up coefficients."""
    contents = planted_contents()
    planned = tuple(Planned(op, dtype, 8, 8, {}) for op in OPS for dtype in STORAGE)
    several = evolve(contents, plan=evolve(contents.plan, training=planned), profile=made_document(FAMILIES))
    return maps(Packet("0" * 64, "several", {}, {}, several))


def test_every_program_has_both_maps_and_each_is_small(drawn: dict[str, str]) -> None:
    assert len(drawn) == 2 * len(OPS) == 2 * len(FORMS)
    assert {name: len(text) for name, text in drawn.items() if len(text.encode()) > MOST_BYTES} == {}


def test_nothing_that_is_written_leaves_the_picture(drawn: dict[str, str]) -> None:
    for name, text in drawn.items():
        picture = ElementTree.fromstring(text)
        _, _, width, height = (float(part) for part in picture.attrib["viewBox"].split())
        for said in picture.iter(f"{SVG}text"):
            x, y, size = (float(said.attrib[key]) for key in ("x", "y", "font-size"))
            if said.get("text-anchor") == "start":
                assert x + text_width(said.text or "", size) <= width, (name, said.text)
            assert y <= height, (name, said.text)


@pytest.mark.parametrize("form", FORMS)
def test_recipes_of_a_form_can_be_told_apart_by_colour(form: str) -> None:
    rows = recipes_of(form)
    found = colours(rows)
    assert list(found) == [row.id for row in rows if row.role == ORIGINAL] + [
        row.id for role in dict.fromkeys(row.role for row in rows[1:]) for row in rows[1:] if row.role == role
    ]
    assert found[rows[0].id] == KEPT
    apart = 15 if len(rows) < 60 else 8  # 79 recipes are 8.5 apart
    for one, other in itertools.combinations(found.values(), 2):
        assert math.dist(*(tuple(bytes.fromhex(colour[1:])) for colour in (one, other))) > apart


@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("width", [100.0, 362.0, 1150.0])
def test_a_legend_keeps_groups_in_columns_of_the_width(width: float, count: int) -> None:
    entries = [Entry(group, f"{group}.recipe{place}", "#123456") for group in "abc" for place in range(count)]
    parts, taken = legend(entries, 10.0, 20.0, width)
    texts = [ElementTree.fromstring(part) for part in parts if part.startswith("<text")]
    assert [text.text for text in texts if "." in (text.text or "")] == [entry.label for entry in entries]
    places = {(float(text.attrib["x"]), float(text.attrib["y"])): text.text or "" for text in texts}
    assert len(places) == len(texts)
    for (x, y), said in places.items():
        assert 20.0 <= y <= 20.0 + taken
        assert width == 100.0 or x + text_width(said) <= 10.0 + width
        assert "." in said or (x + 18.0, y + 20.0) in places, "a column ends with the name of a group"


def test_one_entry_is_a_legend() -> None:
    parts, taken = legend([Entry("", "alone", "#123456")], 0.0, 0.0, 50.0)
    assert (len(parts), taken) == (3, 20.0)
