"""Every bad question is answered by a problem that names the member, its value and what would be accepted."""

import json
from typing import Any

import pytest

from tests.server.service import QUESTION, TestClient

TARGET = {"compute_capability": "9.0", "sm_count": 132}

# What is changed in a good question, and what the detail must hold.
BAD: list[tuple[str, dict[str, Any], list[str]]] = [
    ("unknown op", {"op": "sort"}, ["'sort'", "scan"]),
    ("op of another type", {"op": 7}, ["op 7", "not text"]),
    ("no op", {"op": None}, ["op", "null"]),
    ("a long op", {"op": "s" * 500}, ["op", "128"]),
    ("control signs", {"op": "sc\nan"}, ["op", "printable"]),
    ("a lone surrogate", {"op": "\ud800"}, ["op", "printable"]),
    ("unknown dtype", {"dtype": "float64"}, ["'float64'", "float16"]),
    ("dtype of another type", {"dtype": ["float16"]}, ["dtype", "a list"]),
    ("rank 0", {"shape": []}, ["0 extents", "1 to 64"]),
    ("too many extents", {"shape": [1] * 65}, ["65 extents", "64"]),
    ("a very long shape", {"shape": [1] * 5000}, ["5000 extents", "64"]),
    ("negative extent", {"shape": [-1, 8192]}, ["-1", "axis 0"]),
    ("fractional extent", {"shape": [1.5, 8192]}, ["1.5", "axis 0"]),
    ("a float that is whole", {"shape": [128.0, 8192]}, ["128.0", "axis 0"]),
    ("extent as text", {"shape": ["128", 8192]}, ["'128'", "axis 0"]),
    ("a boolean extent", {"shape": [True, 8192]}, ["True", "axis 0"]),
    ("an absent extent", {"shape": [None, 8192]}, ["None", "axis 0"]),
    ("a nested extent", {"shape": [[128], 8192]}, ["[128]", "axis 0"]),
    ("huge extent", {"shape": [10**30, 8192]}, ["axis 0"]),
    ("overflowing product", {"shape": [2**40, 2**20]}, ["140737488355328 bytes"]),
    ("overflowing product of many", {"shape": [2**16] * 8}, ["140737488355328 bytes"]),
    ("shape as a number", {"shape": 8192}, ["8192", "list"]),
    ("shape as text", {"shape": "128x8192"}, ["128x8192", "list"]),
    ("shape as an object", {"shape": {"rows": 1}}, ["list"]),
    ("overlapping rows", {"strides": [1, 1]}, ["row pitch 1", "8192"]),
    ("broadcast rows", {"strides": [0, 1]}, ["row pitch 0", "8192"]),
    ("every second element", {"strides": [16384, 2]}, ["inner stride 2"]),
    ("transposed", {"strides": [1, 128]}, ["inner stride 128"]),
    ("negative stride", {"strides": [-8192, 1]}, ["-8192", "axis 0"]),
    ("fractional stride", {"strides": [8192.5, 1]}, ["8192.5"]),
    ("too few strides", {"strides": [1]}, ["strides", "one number"]),
    ("rows that do not fold", {"shape": [2, 3, 8], "strides": [100, 8, 1]}, ["100", "3 x 8"]),
    ("strides past the address space", {"strides": [2**46, 1]}, ["140737488355328 bytes"]),
    ("alignment not a power of two", {"alignment": 3}, ["3", "power of two"]),
    ("alignment below an element", {"alignment": 1}, ["1", "float16"]),
    ("alignment as text", {"alignment": "16"}, ["'16'", "power of two"]),
    ("unknown numerics", {"numerics": "exact"}, ["'exact'", "bit_equal"]),
    ("unknown regime", {"regime": "warm"}, ["'warm'", "hot or cold"]),
    ("a regime without a profile", {"regime": "cold"}, ["cold", "made (hot"]),
    ("unknown profile", {"profile": "h100"}, ["'h100'", "made"]),
    ("unknown target", {"target": "h100"}, ["'h100'", "made"]),
    ("target as a number", {"target": 90}, ["90", "object"]),
    ("target with missing facts", {"target": TARGET}, ["warp_threads", "missing"]),
    ("target with an unknown fact", {"target": {**TARGET, "price": 1}}, ["'price'"]),
    ("unknown recipe", {"recipe": "scan.fast"}, ["'scan.fast'", "use one of scan."]),
    ("two recipes", {"recipe": ["scan.cub128", "scan.cub256"]}, ["recipe", "a list"]),
    ("a recipe that is not legal", {"recipe": "scan.cub1024", "shape": [4, 1000]}, ["scan.cub1024", "1000"]),
    ("a path", {"profile": "../../etc/passwd"}, ["passwd", "made"]),
    ("unknown member", {"dtypes": "float16"}, ["'dtypes'", "dtype"]),
]


@pytest.mark.parametrize(("change", "named"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_member_is_named(client: TestClient, change: dict[str, Any], named: list[str]) -> None:
    """422, as a problem document; nothing is stored."""
    body = json.dumps({**QUESTION, **change})
    answer = client.post("/v1/selections", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    detail = answer.json()["detail"]
    for part in named:
        assert part in detail
    assert len(detail) < 600
    assert client.get("/v1/selections").json()["items"] == []


GOOD = '{"op":"scan","shape":[128,8192],"dtype":"float16"'
TEXTS: list[tuple[str, bytes, str]] = [
    ("nothing", b"", "line 1"),
    ("not JSON", b"op=scan", "line 1"),
    ("a list", b"[]", "a list"),
    ("null", b"null", "null"),
    ("a number", b"7", "a number"),
    ("half an object", GOOD.encode(), "delimiter"),
    ("two values", f"{GOOD}}}{{}}".encode(), "Extra data"),
    ("NaN", b'{"op":"scan","shape":[NaN,8192],"dtype":"float16"}', "NaN"),
    ("Infinity", b'{"op":"scan","shape":[Infinity,8192],"dtype":"float16"}', "Infinity"),
    ("minus Infinity", b'{"op":"scan","shape":[-Infinity,8192],"dtype":"float16"}', "Infinity"),
    ("a float past doubles", b'{"op":"scan","shape":[1e999,8192],"dtype":"float16"}', "1e999"),
    ("a number of 5000 digits", b'{"op":"scan","shape":[' + b"9" * 5000 + b',8192],"dtype":"float16"}', "5000 digits"),
    ("a fraction of 5000 digits", b'{"op":"scan","shape":[0.' + b"9" * 5000 + b'],"dtype":"float16"}', "double"),
    ("a member twice", f'{GOOD},"op":"scan"}}'.encode(), "'op' is given twice"),
    ("a member twice, below", f'{GOOD},"target":{{"a":1,"a":1}}}}'.encode(), "'a' is given twice"),
    ("deep lists", b'{"op":"scan","shape":' + b"[" * 40 + b"]" * 40 + b',"dtype":"float16"}', "deeper than 32"),
    ("very deep lists", b"[" * 30_000 + b"]" * 30_000, "deeper than 32"),
    ("very deep objects", b'{"a":' * 9_000 + b"1" + b"}" * 9_000, "deeper than 32"),
    ("not UTF-8", b'{"op":"\xff"}', "UTF-8"),
    ("UTF-16", GOOD.encode("utf-16"), "UTF-8"),
    ("a byte order mark", b"\xef\xbb\xbf" + GOOD.encode() + b"}", "line 1"),
    ("a control sign in text", b'{"op":"sc\x00an"}', "control"),
    ("a comment", f"{GOOD}/* */}}".encode(), "line 1"),
]


@pytest.mark.parametrize(("text", "named"), [row[1:] for row in TEXTS], ids=[row[0] for row in TEXTS])
def test_a_bad_text_is_explained(client: TestClient, text: bytes, named: str) -> None:
    """422 with the place or the number; the service goes on."""
    answer = client.post("/v1/selections", content=text, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert named in answer.json()["detail"]
    assert client.post("/v1/selections", json=QUESTION).status_code == 201


@pytest.mark.parametrize(
    "batch", [[], {}, {"items": {}}, {"items": []}, {"items": [QUESTION] * 257}, {"items": [QUESTION], "more": 1}]
)
def test_a_bad_batch_is_explained(client: TestClient, batch: Any) -> None:
    """422 with what a batch is, or how many items it may have."""
    answer = client.post("/v1/selections:batch", json=batch)
    assert answer.status_code == 422
    assert "items" in answer.json()["detail"]


@pytest.mark.parametrize("shape", [[0, 8192], [128, 0], [0, 0], [0], [1], [7], [2, 3, 4, 1024], [1] * 64])
def test_what_is_legal_runs_on_the_original_at_least(client: TestClient, shape: list[int]) -> None:
    """Empty, single and high-rank shapes are no errors."""
    answer = client.post("/v1/selections", json={**QUESTION, "shape": shape})
    assert answer.status_code == 201, answer.text
    recipes = [candidate["recipe"] for candidate in answer.json()["candidates"]]
    assert recipes[0] == "scan.original"
    assert answer.json()["decision"]["recipe"] in recipes
