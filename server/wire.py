"""The wire types of the API, for its OpenAPI document and for query parameters. No table is a wire type."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256, 64 hexadecimal digits.")]
Count = Annotated[int, Field(ge=0, le=2**47)]
LINKS = (
    "Addresses by name, followed with GET; a name that begins with another method (`POST verify`) is sent with that."
)
Name = Annotated[str, Field(min_length=1, max_length=128)]


class TargetFacts(BaseModel):
    """Silicon and toolchain, as a profile's target shows them."""

    model_config = ConfigDict(extra="forbid")

    compute_capability: str
    sm_count: int = Field(ge=1)
    warp_threads: int = Field(ge=1)
    threads_per_sm: int = Field(ge=1)
    registers_per_sm: int = Field(ge=1)
    shared_bytes_per_sm: int = Field(ge=1)
    shared_optin_bytes_per_cta: int = Field(ge=1)
    ctas_per_sm: int = Field(ge=1)
    l2_bytes: int = Field(ge=1)
    memory_bus_bits: int = Field(ge=1)
    memory_clock_khz: int = Field(ge=1)
    nvrtc: str
    cccl: str
    math: str
    label: str = ""


class Question(BaseModel):
    """A row collective, and optionally the machine, the profile or the recipe."""

    model_config = ConfigDict(extra="forbid")

    op: str = Field(description="A name from /v1/ops.")
    shape: list[Count] = Field(min_length=1, max_length=64, description="Extents; the last is the row's width.")
    dtype: str = Field(description="Storage dtype: float16, bfloat16 or float32.")
    strides: list[Count] | None = Field(None, max_length=64, description="In elements; contiguous when left out.")
    alignment: int | None = Field(None, description="Power of two that divides every base address; 16 when left out.")
    numerics: Literal["any", "bit_equal"] | None = None
    target: TargetFacts | Name | None = Field(None, description="Facts of a target, or a profile's name for its own.")
    profile: Name | None = Field(None, description="A profile's name or digest.")
    regime: Literal["hot", "cold"] | None = None
    recipe: Name | None = Field(None, description="A recipe to force.")


class Batch(BaseModel):
    """Questions that are answered one by one."""

    model_config = ConfigDict(extra="forbid")

    items: list[Question] = Field(min_length=1)


class Answered(BaseModel):
    """A selection: the facts that its id is the digest of, how they were observed, and where they lead."""

    model_config = ConfigDict(extra="forbid")

    id: Digest
    candidates: list[dict[str, Any]]
    decision: dict[str, Any]
    provenance: dict[str, Any]
    schema_: str = Field(alias="schema")
    target: dict[str, Any]
    workload: dict[str, Any]
    observed: dict[str, Any]
    links: dict[str, str] = Field(description=LINKS)


class ProblemDocument(BaseModel):
    """RFC 9457: what went wrong, with which value, and what to do."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class Listing(BaseModel):
    """One page; `next` is the cursor of the following one, null at the end."""

    items: list[dict[str, Any]]
    next: str | None = None


class PageQuery(BaseModel):
    """What every list takes."""

    model_config = ConfigDict(extra="forbid")

    limit: int | None = Field(
        None, ge=1, description="Items in a page; 50 when left out. More than ROWSMITH_PAGE_MAX are refused."
    )
    cursor: str | None = Field(None, max_length=256)


class SelectionsQuery(PageQuery):
    """Filters of the list of selections; all must hold."""

    op: Name | None = None
    dtype: Name | None = None
    rows: Count | None = None
    width: Count | None = None
    recipe: Name | None = None
    reason: Name | None = Field(None, description="A code of /v1/reasons that a decision may carry.")
    profile: Digest | None = None


class NodesQuery(PageQuery):
    """Filters of the lists of evidence; a kind without such a facet has no such rows."""

    form: Name | None = None
    dtype: Name | None = None
    rows: Count | None = None
    width: Count | None = None
    recipe: Name | None = None
    purpose: Name | None = None
    parent: Digest | None = Field(None, description="The node it is listed under: a fit's cohort, a profile's target.")


class GeometriesQuery(PageQuery):
    """A cohort's geometries, by dtype."""

    dtype: Name | None = None


class SamplesQuery(GeometriesQuery):
    """A cohort's samples, by dtype, as JSON or CSV."""

    format: Literal["json", "csv"] = "json"


class FormatQuery(BaseModel):
    """JSON or CSV."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["json", "csv"] = "json"


class ResidualsQuery(PageQuery):
    """Filters of the list of residuals, and its form."""

    fit: Digest | None = None
    geometry: Digest | None = None
    recipe: Name | None = None
    set: Literal["training", "crossvalidation", "validation"] | None = None
    format: Literal["json", "csv"] = "json"
