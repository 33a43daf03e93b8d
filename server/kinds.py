"""The kinds of evidence: where each is served and where it leads. Routes, listings and links walk this table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

Document = Mapping[str, Any]
Links = Callable[[str, Document], dict[str, str]]


@frozen
class Kind:
    """One row: `links` returns addresses by name, from a node's own address and document.

    A link is followed with GET, but where its name begins with another method.
    """

    name: str
    path: str
    meaning: str
    links: Links
    raw: bool = False  # the body is text of its own, not a JSON document

    def address(self, digest: str) -> str:
        """Return where a node of this kind is served."""
        return f"/v1/{self.path}/{digest}"


def _name(here: str) -> str:
    return here.rpartition("/")[2]


def _none(here: str, document: Document) -> dict[str, str]:
    return {}


def _packet(here: str, document: Document) -> dict[str, str]:
    held = ("cohorts", "environments", "plans", "crossvalidations")
    sources = [part for part in document["parts"] if part["name"].startswith("sources/")]
    lists = {path: f"/v1/{path}?parent={_name(here)}" for path in held}
    return {**lists, **{part["name"]: f"/v1/files/{part['sha256']}" for part in sources}}


def _source(here: str, document: Document) -> dict[str, str]:
    return {name: f"/v1/files/{sha256}" for name, sha256 in document.get("files", {}).items()}


def _receipt(here: str, document: Document) -> dict[str, str]:
    return {name: f"/v1/sources/{document[name]}" for name in ("source", "options")}


def _profile(here: str, document: Document) -> dict[str, str]:
    fits = {f"fit {fit['form']}": f"/v1/fits/{fit['digest']}" for fit in document["fits"]}
    name = _name(here)
    lists = {"validations": f"/v1/validations?parent={name}", "selections": f"/v1/selections?profile={name}"}
    return {**fits, **lists}


def _fit(here: str, document: Document) -> dict[str, str]:
    own = {name: f"{here}/{name}" for name in ("design", "coefficients", "residuals")}
    return {**own, "POST verify": f"{here}/verify", "cohort": f"/v1/cohorts/{document['cohort']}"}


def _cohort(here: str, document: Document) -> dict[str, str]:
    own = {name: f"{here}/{name}" for name in ("geometries", "samples", "receipts")}
    fits = f"/v1/fits?parent={_name(here)}"
    return {**own, "fits": fits, "environment": f"/v1/environments/{document['environment']}"}


def _geometry(here: str, document: Document) -> dict[str, str]:
    return {"samples": f"{here}/samples", "residuals": f"/v1/residuals?geometry={_name(here)}"}


def _validation(here: str, document: Document) -> dict[str, str]:
    return {"profile": f"/v1/profiles/{document['profile']}", "residuals": f"{here}/residuals"}


def _residual(here: str, document: Document) -> dict[str, str]:
    return {"fit": f"/v1/fits/{document['fit']}", "geometry": f"/v1/geometries/{document['geometry']}"}


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("packet", "packets", "manifests of imported packets", _packet),
        Kind("profile", "profiles", "the fits in force for one target", _profile),
        Kind("fit", "fits", "coefficients from one cohort for one program form", _fit),
        Kind("cohort", "cohorts", "the measured geometries of one sweep", _cohort),
        Kind("geometry", "geometries", "one measured point with its raw samples", _geometry),
        Kind("receipt", "receipts", "what compiler and driver said of one kernel", _receipt),
        Kind("validation", "validations", "every outcome of a validation, and its figures", _validation),
        Kind("residual", "residuals", "predicted minus measured, one candidate of one set", _residual),
        Kind("environment", "environments", "the machine and software that measured", _none),
        Kind("plan", "plans", "what was to be measured", _none),
        Kind("crossvalidation", "crossvalidations", "fits judged by held-out geometries", _none),
        Kind("source", "sources", "the files and macros, or the options, of one kernel", _source),
        Kind("file", "files", "device code as compiled, as text", _none, raw=True),
    )
}
