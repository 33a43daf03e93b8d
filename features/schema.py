"""Feature schemas: versioned tables of documented quantities, one function for a request and for a batch alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from attrs import field, frozen

from features.workload import Workload
from features.workloads import Workloads
from kernels import norms
from kernels.dtypes import storage
from kernels.identity import digest
from kernels.launch import lane_elements, load_bytes, spread
from kernels.norms import NORMS
from kernels.recipe import Recipe
from kernels.target import Target

MIB = 2**20
Number = Any  # an int or float, or a NumPy array of them: the feature functions are written for both


def ceil_div(numerator: Number, denominator: Number) -> Number:
    """Return the quotient rounded up, of whole numbers or arrays of them."""
    return -(-numerator // denominator)


@frozen(eq=False)
class Point:
    """What a feature may look at: documented quantities of a workload, a recipe, its receipt and the target.

    Each is a whole number, or an int64 array of them. `resident_ctas_per_sm` is the queried capacity. `row_lanes`
    threads of each of `row_parts` CTAs take a row together, `row_phases` chunks of 8 elements (for a reduction, vectors
    of 16 bytes) a thread at a step; a CTA takes `rows_per_cta` rows: for a recipe facts of the table, for an original
    or a split what its launch makes of rows and width. A lane takes `lane_bytes` at once, by loads of `load_bytes`.
    Every CTA reads `weights` vectors of a row's width; a row's lanes combine `combined` values one after the other, and
    an element takes `work` instructions.
    `inner` consecutive rows interleave. Where the CTAs of a row are a cluster, the queried capacity is
    `resident_clusters` of the whole GPU.
    """

    rows: Number
    width: Number
    storage_bytes: Number
    threads: int
    items: int
    rows_per_cta: Number
    resident_ctas_per_sm: Number
    row_lanes: Number
    row_phases: Number
    row_parts: Number
    lane_bytes: int
    load_bytes: Number
    sm_count: int
    warp_threads: int
    l2_bytes: int
    weights: int = 0
    combined: int = 1
    work: float = 1.0
    inner: Number = 1
    resident_clusters: Number = None

    # Terms that several features share, computed once.
    row_warps: Number = field(init=False)
    traffic: Number = field(init=False)
    chunk: Number = field(init=False)
    row_chunks: Number = field(init=False)
    row_steps: Number = field(init=False)
    ctas: Number = field(init=False)
    resident_batches: Number = field(init=False)

    @row_warps.default
    def _row_warps(self) -> Number:
        """Warps that take a row together in a CTA: W; 0 where a warp takes several rows."""
        return self.row_lanes // self.warp_threads

    @traffic.default
    def _traffic(self) -> Number:
        """MiB read and written over SMs: 2 b R N / (S 2^20)."""
        return (2 * self.storage_bytes * self.rows * self.width) / (self.sm_count * MIB)

    @chunk.default
    def _chunk(self) -> Number:
        """Elements that the lanes of a row take together: 8 w W."""
        return self.items * self.row_lanes

    @row_chunks.default
    def _row_chunks(self) -> Number:
        """Chunks of a row: J = ceil(N / (8 w W))."""
        return ceil_div(self.width, self.chunk)

    @row_steps.default
    def _row_steps(self) -> Number:
        """Steps that a CTA takes of a row: P = ceil(J / (f K)), K CTAs sharing it."""
        return ceil_div(self.row_chunks, self.row_phases * self.row_parts)

    @ctas.default
    def _ctas(self) -> Number:
        """CTAs of the launch: C = ceil(R / B) p, B rows a CTA and p CTAs a row; for a scan ceil(w W R / T)."""
        return ceil_div(self.rows, self.rows_per_cta) * self.row_parts

    @resident_batches.default
    def _resident_batches(self) -> Number:
        """Capacity batches of these CTAs: H = ceil(C / (S A)), or of clusters; None of an unknown capacity or of 0."""
        if self.resident_clusters:
            return ceil_div(self.rows, self.resident_clusters)
        if not self.resident_ctas_per_sm:
            return None
        return ceil_div(self.ctas, self.sm_count * self.resident_ctas_per_sm)


@frozen
class Feature:
    """One column: `of` computes what `formula` says."""

    name: str
    unit: str
    meaning: str
    formula: str
    of: Callable[[Point], Number] = field(eq=False, repr=False)


@frozen
class Schema:
    """A named set of columns for each role, for a family of programs. A published schema never changes.

    A family stands under the key `form` in the document: the first one has a single form of the same name.
    """

    id: str
    family: str
    roles: Mapping[str, tuple[Feature, ...]]
    needs_capacity: frozenset[str] = frozenset()

    def describe(self) -> dict[str, Any]:
        """Return the table as JSON-ready facts."""
        return {
            "schema": "rowsmith.feature-schema/1",
            "id": self.id,
            "form": self.family,
            "roles": {
                role: [{"name": f.name, "unit": f.unit, "meaning": f.meaning, "formula": f.formula} for f in features]
                for role, features in self.roles.items()
            },
        }

    @property
    def digest(self) -> str:
        """The SHA-256 of the table; formulas are part of it."""
        return _schema_digest(self.id)

    def vector(self, role: str, point: Point) -> tuple[Number, ...]:
        """Return the columns of a role at a point, in schema order; none for a role that the schema does not price."""
        return tuple([feature.of(point) for feature in self.roles.get(role, ())])


@cache
def _schema_digest(schema_id: str) -> str:
    from features.schemas import SCHEMAS

    return digest(SCHEMAS[schema_id].describe())


def point(work: Workload | Workloads, recipe: Recipe, capacity: int | None, target: Target) -> Point:
    """Return what the features of one candidate look at, for one workload or many; capacity is as of `Receipt`."""
    element_bytes = storage(work.dtype).bytes
    through = spread(recipe, work.rows, work.width, target.sm_count)
    return Point(
        rows=work.rows,
        width=work.width,
        storage_bytes=element_bytes,
        threads=recipe.threads,
        items=recipe.items,
        rows_per_cta=through.rows_per_cta,
        resident_ctas_per_sm=capacity if recipe.cluster == 1 else None,
        resident_clusters=None if recipe.cluster == 1 else capacity,
        row_lanes=through.lanes,
        row_phases=through.phases,
        row_parts=through.parts,
        lane_bytes=lane_elements(recipe, element_bytes) * element_bytes,
        load_bytes=load_bytes(recipe, element_bytes) * (1 - through.by_element) + element_bytes * through.by_element,
        sm_count=target.sm_count,
        warp_threads=target.warp_threads,
        l2_bytes=target.l2_bytes,
        weights=recipe.weights,
        combined=norms.combined(recipe) if recipe.form in NORMS else 1,
        work=norms.work(recipe) if recipe.form in NORMS else 1.0,
        inner=work.inner,
    )
