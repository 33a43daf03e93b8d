"""Solving a stored fit again: gathers what the fit names from the store and hands it to calibration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kernels.identity import digest_bytes
from kernels.receipt import Receipt
from kernels.target import Target
from server.store import Store

Finding = dict[str, Any]


def verify_stored_fit(store: Store, name: str) -> dict[str, Any]:
    """Return the report on a fit that the store holds: every digest on the way to its samples, then the solve."""
    from calibration.records import geometry_from_json
    from calibration.verify import verify_fit

    found: list[Finding] = []
    fit = _node(store, "fit", name, found)
    cohort = None if fit is None else _node(store, "cohort", fit["cohort"], found)
    if fit is None or cohort is None:
        return _report(name, found)
    environment = _node(store, "environment", cohort["environment"], found)
    geometries = _nodes(store, "geometry", cohort["geometries"], found)
    receipts = _nodes(store, "receipt", cohort["receipts"], found)
    if environment is None or found:
        return _report(name, found)
    records = [geometry_from_json(document) for document in geometries]
    target = Target(**environment["target"])
    judged = verify_fit(fit, records, [Receipt(**document) for document in receipts], target)
    found += [{"part": f.part, "item": f.item, "expected": f.expected, "found": f.found} for f in judged]
    return _report(name, found)


def _report(name: str, found: list[Finding]) -> dict[str, Any]:
    verdict = "differs" if found else "verified"
    return {"fit": name, "verdict": verdict, "first_difference": found[0] if found else None, "differences": found}


def _node(store: Store, kind: str, name: str, found: list[Finding]) -> Mapping[str, Any] | None:
    documents = _nodes(store, kind, [name], found)
    return documents[0] if documents else None


def _nodes(store: Store, kind: str, names: Sequence[str], found: list[Finding]) -> list[Mapping[str, Any]]:
    """Return the documents in order, having compared each with its name; note those that are missing or altered."""
    bodies = store.bodies(kind, names)
    documents = []
    for name in names:
        body = bodies.get(name)
        actual = None if body is None else digest_bytes(body.encode())
        if actual != name:
            found.append({"part": kind, "item": "digest", "expected": name, "found": actual})
        if body is not None:
            documents.append(json.loads(body))
    return documents
