"""A selection is stored once and answered with the same bytes for ever, however and whenever it is asked for."""

import json
import subprocess
import sys
from pathlib import Path

from kernels.identity import digest
from server.settings import Settings
from tests.server.service import QUESTION, ROOT, TestClient, serving


def test_a_new_question_is_created_and_a_known_one_found(client: TestClient) -> None:
    """201 with its address first, 200 with the same body afterwards, and the same bytes at that address."""
    first, again = client.post("/v1/selections", json=QUESTION), client.post("/v1/selections", json=QUESTION)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.content == again.content
    assert first.headers["location"] == again.headers["location"] == f"/v1/selections/{first.json()['id']}"
    found = client.get(first.headers["location"])
    assert found.content == first.content
    assert found.headers["etag"] == f'"{first.json()["id"]}"'
    assert "immutable" in found.headers["cache-control"]
    unchanged = client.get(first.headers["location"], headers={"if-none-match": found.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_another_spelling_of_the_question_is_the_same_selection(client: TestClient) -> None:
    """Defaults written out, members in another order and spaces make no new row."""
    first = client.post("/v1/selections", json=QUESTION)
    spelled = {"regime": "hot", "numerics": "any", "alignment": 16, "strides": [8192, 1], "target": "made", **QUESTION}
    again = client.post(
        "/v1/selections", content=json.dumps(spelled, indent=3), headers={"content-type": "application/json"}
    )
    assert (again.status_code, again.content) == (200, first.content)
    assert len(client.get("/v1/selections").json()["items"]) == 1


def test_the_id_is_the_digest_of_the_facts(client: TestClient) -> None:
    """Anyone can recompute it from the body without id, observation and links."""
    body = client.post("/v1/selections", json=QUESTION).json()
    facts = {name: value for name, value in body.items() if name not in ("id", "observed", "links")}
    assert digest(facts) == body["id"]


def test_a_restarted_service_answers_the_same_bytes(settings: Settings) -> None:
    """Nothing of the answer lives in memory only."""
    with serving(settings) as client:
        first = client.post("/v1/selections", json=QUESTION)
    with serving(settings) as client:
        again = client.post("/v1/selections", json=QUESTION)
    assert (again.status_code, again.content) == (200, first.content)


def test_a_batch_answers_with_the_same_bytes(client: TestClient) -> None:
    """An item's selection is the body that the single question gets; a bad item is that item's problem."""
    single = client.post("/v1/selections", json=QUESTION)
    items = [QUESTION, {**QUESTION, "shape": [-1, 4]}, {**QUESTION, "dtype": "float32"}, QUESTION]
    answered = client.post("/v1/selections:batch", json={"items": items})
    assert answered.status_code == 200
    assert [item["status"] for item in answered.json()["items"]] == [200, 422, 201, 200]
    assert answered.json()["items"][1]["problem"]["field"] == "shape"
    assert single.content in answered.content


PROGRAM = """
from features.workload import workload
from kernels.identity import canonical_json
from policy.select import recorded, select
from tests.made import made_profile
profile = made_profile()
for rows in (1, 127, 4096):
    for dtype in ("float16", "bfloat16", "float32"):
        work = workload("scan", [rows, 8192], dtype)
        print(canonical_json(select(work, profile.target, profile, recorded(profile)).facts))
"""


def test_twenty_fresh_processes_decide_the_same_bytes(tmp_path: Path) -> None:
    """No hash seed, clock or order of arrival enters a decision (pytorch#189121)."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE, env={"PYTHONHASHSEED": str(n)}
        )
        for n in range(20)
    ]
    answers = {child.communicate()[0] for child in children}
    assert len(answers) == 1
    assert answers.pop().count(b"\n") == 9
