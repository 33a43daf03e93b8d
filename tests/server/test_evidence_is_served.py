"""From a selection an auditor reaches fit, cohort, geometries and raw samples by links, and re-does the arithmetic."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calibration import packet
from calibration.packet import pack
from kernels.identity import digest
from kernels.recipe import ORIGINAL, RECIPE
from kernels.scans import ANY
from policy.profile import profile_from_document
from server.importing import import_packet
from server.profiles import profile_nodes
from server.settings import Settings
from tests.calibration.planted import planted_contents
from tests.made import made_profile
from tests.server.service import QUESTION, TestClient, fresh, opened, serving, state, validation_of


@pytest.fixture(scope="module")
def held() -> packet.Packet:
    """A packet of a planted sweep, read as any packet is."""
    return packet.read(pack("planted", planted_contents()))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory, held: packet.Packet) -> Settings:
    """The settings of a database that the packet was imported into, twice."""
    settings = fresh(tmp_path_factory.mktemp("evidence"))
    with opened(settings) as store:
        first, head = import_packet(store, held), store.head()
        again = import_packet(store, held)
        assert first.new == first.nodes == again.nodes
        assert again.new == 0
        assert store.head() == head
        assert store.first_break() is None
    return settings


@pytest.fixture(scope="module")
def service(imported: Settings) -> Iterator[TestClient]:
    """A service whose only profile is the imported one."""
    with serving(imported, shipped=list) as client:
        yield client


@pytest.fixture(scope="module")
def answer(service: TestClient) -> dict[str, Any]:
    """A selection."""
    found = service.post("/v1/selections", json=QUESTION)
    assert found.status_code in (200, 201), found.text
    body: dict[str, Any] = found.json()
    return body


def document(service: TestClient, address: str) -> Any:
    """Return the document of a node, having recomputed its name."""
    found = service.get(address)
    assert found.status_code == 200, found.text
    assert digest(found.json()["document"]) == found.json()["digest"] == address.rpartition("/")[2]
    assert "immutable" in found.headers["cache-control"]
    return found.json()["document"]


def test_the_imported_profile_answers(answer: dict[str, Any], held: packet.Packet) -> None:
    """It is active: its validation repeats no regression."""
    assert held.contents.profile is not None
    assert answer["provenance"]["profile"] == digest(held.contents.profile)
    assert answer["decision"]["reason"] in ("admitted", "not_below_threshold")


def test_each_candidate_leads_to_its_receipt(service: TestClient, answer: dict[str, Any]) -> None:
    """By its recipe's name, outside the facts that the id is the digest of."""
    links = {name: address for name, address in answer["links"].items() if name.startswith("receipt ")}
    proved = [candidate for candidate in answer["candidates"] if candidate["proved"]]
    assert {candidate["role"] for candidate in proved} >= {ORIGINAL, RECIPE, ANY}
    assert list(links) == [f"receipt {candidate['recipe']}" for candidate in proved]
    for candidate, address in zip(proved, links.values(), strict=True):
        assert document(service, address) == candidate["receipt"]


def test_a_profile_without_a_validation_is_never_active_by_default(settings: Settings) -> None:
    """It can be asked for by name."""
    with serving(settings, shipped=lambda: list(profile_nodes(made_profile()))) as client:
        refused = client.post("/v1/selections", json=QUESTION)
        assert refused.status_code == 422
        assert "made (hot, unvalidated" in refused.json()["detail"]
        assert client.get("/readyz").status_code == 503
        asked = client.post("/v1/selections", json={**QUESTION, "profile": "made"})
        assert asked.status_code == 201
        for name, address in asked.json()["links"].items():
            if name.startswith("receipt "):
                assert client.get(address).status_code == 200


def test_links_lead_to_raw_samples(service: TestClient, answer: dict[str, Any], held: packet.Packet) -> None:
    """selection -> profile -> fit -> cohort -> geometry -> samples, receipts -> environment, kernel source."""
    links = answer["links"]
    profile, fit = document(service, links["profile"]), document(service, links["fit"])
    cohort = document(service, links["cohort"])
    assert fit["cohort"] == digest(cohort)
    assert digest(fit) in {entry["digest"] for entry in profile["fits"]}
    geometry = document(service, f"/v1/geometries/{cohort['geometries'][0]}")
    assert geometry["measurements"][0]["samples_ns"] == list(held.contents.cohort[0].measurements[0].samples_ns)
    document(service, f"/v1/environments/{cohort['environment']}")
    receipt = service.get(f"/v1/receipts/{cohort['receipts'][0]}").json()
    source = service.get(receipt["links"]["source"]).json()
    assert source["digest"] == receipt["document"]["source"] == digest(source["document"])
    for name, sha256 in source["document"]["files"].items():
        text = service.get(source["links"][name])
        assert text.headers["content-type"].startswith("text/plain")
        assert text.content == held.contents.sources[name]
        assert sha256 == text.headers["etag"].strip('"')
    assert service.get(receipt["links"]["options"]).json()["document"]["options"] == list(held.contents.options)


def pages(service: TestClient, address: str) -> Iterator[dict[str, Any]]:
    """Walk a list by its cursors."""
    join, cursor = ("&" if "?" in address else "?"), ""
    while True:
        page = service.get(f"{address}{join}limit=40{cursor}")
        assert page.status_code == 200, page.text
        yield from page.json()["items"]
        if (following := page.json()["next"]) is None:
            return
        cursor = f"&cursor={following}"


def test_a_selection_reaches_the_samples_of_its_dtype(
    service: TestClient, answer: dict[str, Any], held: packet.Packet
) -> None:
    """Every geometry of the cohort in that dtype, once, with every sample."""
    wanted = [record for record in held.contents.cohort if record.dtype == "float16"]
    geometries = list(pages(service, answer["links"]["geometries"]))
    assert [item["digest"] for item in geometries] == [record.digest for record in wanted]
    samples = list(pages(service, answer["links"]["samples"]))
    for item, record in zip(samples, wanted, strict=True):
        assert [m["samples_ns"] for m in item["measurements"]] == [list(m.samples_ns) for m in record.measurements]


def rows(service: TestClient, address: str) -> list[dict[str, str]]:
    """Read a CSV list to its end by Link headers."""
    found: list[dict[str, str]] = []
    while address:
        page = service.get(address)
        assert page.headers["content-type"] == "text/csv; charset=utf-8"
        found += csv.DictReader(io.StringIO(page.text))
        address = page.links.get("next", {}).get("url", "")
    return found


def test_samples_and_residuals_are_csv_too(service: TestClient, answer: dict[str, Any], held: packet.Packet) -> None:
    """Every sample and every residual of the packet, as numbers that read back exactly."""
    every = rows(service, f"{answer['links']['cohort']}/samples?format=csv&limit=100")
    expected = sum(
        len(m.samples_ns) + len(m.recheck_ns or ()) for record in held.contents.cohort for m in record.measurements
    )
    assert len([row for row in every if row["name"] != "baseline"]) == expected
    one = rows(service, f"/v1/geometries/{held.contents.cohort[0].digest}/samples?format=csv")
    assert one == [row for row in every if row["geometry"] == held.contents.cohort[0].digest]
    residuals = rows(service, f"{answer['links']['fit']}/residuals?format=csv&limit=500")
    fit = answer["provenance"]["fit"]
    expected_us = [line["predicted_us"] for line in held.contents.residuals if line["fit"] == fit]
    assert [float(row["predicted_us"]) for row in residuals] == expected_us


def test_residuals_are_filtered(service: TestClient, answer: dict[str, Any], held: packet.Packet) -> None:
    """By set, recipe and geometry, and by the validation that they belong to."""

    def count(**wanted: str) -> int:
        return sum(all(line[name] == value for name, value in wanted.items()) for line in held.contents.residuals)

    found = list(pages(service, "/v1/residuals?set=training&recipe=scan.cub256"))
    assert len(found) == count(set="training", recipe="scan.cub256") > 0
    geometry = held.contents.residuals[0]["geometry"]
    assert len(list(pages(service, f"/v1/residuals?geometry={geometry}"))) == count(geometry=geometry)
    (validation,) = pages(service, "/v1/validations")
    judged = list(pages(service, f"{validation['links']['self']}/residuals"))
    assert len(judged) == count(set="validation", fit=answer["provenance"]["fit"])
    assert all(item["set"] == "validation" for item in judged)
    line = held.contents.residuals[0]
    assert document(service, f"/v1/residuals/{digest(line)}") == json.loads(json.dumps(line))


def test_a_fit_shows_what_it_is_made_of(service: TestClient, answer: dict[str, Any], held: packet.Packet) -> None:
    """Design matrix with named columns, coefficients with units and ranges."""
    fit = next(fit for fit in held.contents.fits if digest(fit) == answer["provenance"]["fit"])
    design = service.get(f"{answer['links']['fit']}/design").json()
    assert [block["design"] for block in design["blocks"]] == [block["design"] for block in fit["blocks"]]
    assert [len(block["columns"]) for block in design["blocks"]] == [len(b["coefficients"]) for b in fit["blocks"]]
    coefficients = service.get(f"{answer['links']['fit']}/coefficients").json()
    for ours, theirs in zip(coefficients["blocks"], fit["blocks"], strict=True):
        assert [c["coefficient"] for c in ours["coefficients"]] == theirs["coefficients"]
        assert all(c["unit"] and c["formula"] for c in ours["coefficients"])
    assert len(rows(service, f"{answer['links']['fit']}/design?format=csv")) == sum(
        len(block["design"]) * len(block["coefficients"]) for block in fit["blocks"]
    )


def test_a_stored_fit_is_solved_again(service: TestClient, answer: dict[str, Any]) -> None:
    """From the stored samples, receipts and environment."""
    report = service.post(f"{answer['links']['fit']}/verify").json()
    assert report["verdict"] == "verified", report["first_difference"]


def test_selections_of_the_validation_are_stored_and_replayed(service: TestClient, held: packet.Packet) -> None:
    """A geometry record names its selection, and that is a resource."""
    picked = next(m for m in held.contents.validation_records[0].measurements if m.name == "policy")
    assert picked.selection is not None
    stored = service.get(f"/v1/selections/{picked.selection}")
    assert stored.json()["decision"]["recipe"] == picked.picked
    report = service.get(f"/v1/selections/{picked.selection}/verify").json()
    assert (report["verdict"], report["changes"]) == ("verified", [])


def test_every_list_has_its_items_at_their_addresses(service: TestClient) -> None:
    """Whatever is listed can be fetched, and leads on to things that there are."""
    for kind in (
        "packets",
        "profiles",
        "fits",
        "cohorts",
        "receipts",
        "validations",
        "environments",
        "plans",
        "sources",
    ):
        items = list(pages(service, f"/v1/{kind}"))
        assert items, kind
        found = service.get(items[0]["links"]["self"]).json()
        for name, address in found["links"].items():
            method = name.partition(" ")[0] if name.startswith("POST ") else "GET"
            assert service.request(method, address).status_code == 200, (kind, name, address)


def test_a_profile_with_a_repeated_regression_is_never_active_by_default(tmp_path: Path, held: packet.Packet) -> None:
    """It can be asked for by name."""
    from server.node import node_of

    settings = fresh(tmp_path)
    assert held.contents.validation is not None
    assert held.contents.profile is not None
    regressed = {**held.contents.validation, "standing": "experimental"}
    with opened(settings) as store:
        import_packet(store, held)
        store.add([node_of("validation", regressed, parent=regressed["profile"])])
    with serving(settings, shipped=list) as client:
        refused = client.post("/v1/selections", json=QUESTION)
        assert refused.status_code == 422
        assert "planted (hot, experimental" in refused.json()["detail"]
        assert client.post("/v1/selections", json={**QUESTION, "profile": "planted"}).status_code == 201
        assert client.get("/readyz").status_code == 503
        assert not state(client).profiles[0].active


def test_two_profiles_are_told_apart_by_target(imported: Settings, held: packet.Packet) -> None:
    """A target picks its own profile; without one, several active profiles are an error that lists them."""
    assert held.contents.profile is not None
    other = {**held.contents.profile, "name": "other"}
    other["target"] = {**other["target"], "sm_count": 114}
    profile = profile_from_document(other)
    nodes = [*profile_nodes(profile), validation_of(profile, "standard")]
    with serving(imported, shipped=lambda: nodes) as client:
        several = client.post("/v1/selections", json={**QUESTION, "shape": [9, 8192]})
        assert several.status_code == 422
        assert "planted" in several.json()["detail"]
        assert "other" in several.json()["detail"]
        for name, document_ in (("planted", held.contents.profile), ("other", other)):
            by_facts = client.post("/v1/selections", json={**QUESTION, "target": document_["target"]})
            assert by_facts.json()["provenance"]["profile_name"] == name
            by_name = client.post("/v1/selections", json={**QUESTION, "target": name, "profile": name})
            assert by_name.content == by_facts.content
