"""From records to numbers: one row of features and a time for every measured recipe of every accepted geometry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from attrs import frozen

from calibration.errors import FitError
from calibration.records import Geometry
from calibration.stats import Timing
from features.proof import Refused, prove
from features.schema import Schema, point
from features.schemas import SCHEMAS
from kernels.receipt import Receipt
from kernels.recipe import Recipe
from kernels.recipes import family_of, original_of, recipes_of
from kernels.target import Target
from policy.profile import ANY_DTYPE, Block

Receipts = Mapping[tuple[str, str], Receipt]


@frozen(eq=False)
class Row:
    """One measured recipe at one geometry: its features in schema order and its timing."""

    geometry: Geometry
    recipe: Recipe
    features: tuple[int | float, ...]
    timing: Timing
    round: int = 1

    @property
    def measured_us(self) -> float:
        """The median microseconds of a launch: what is fitted."""
        return self.timing.median_us


@frozen(eq=False)
class Design:
    """Every row of one family under one schema, by geometry in canonical order and recipe in catalogue order."""

    schema: Schema
    rows: tuple[Row, ...]

    @property
    def family(self) -> str:
        """The family of the programs, which the schema is for; it stands under the key `form` in documents."""
        return self.schema.family

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The storage dtypes that occur, sorted."""
        return tuple(sorted({row.geometry.dtype for row in self.rows}))

    def by_geometry(self) -> tuple[tuple[Row, ...], ...]:
        """Return the rows of each record together, in canonical order."""
        return tuple(tuple(rows) for _, rows in groupby(self.rows, key=lambda row: row.geometry.digest))


def by_recipe(receipts: Iterable[Receipt]) -> Receipts:
    """Return receipts by recipe and dtype."""
    return {(receipt.recipe, receipt.dtype): receipt for receipt in receipts}


def schema(schema_id: str) -> Schema:
    """Return a published schema, or raise `FitError`."""
    if schema_id not in SCHEMAS:
        raise FitError(f"feature schema {schema_id!r} is not published by this release; use a matching one")
    return SCHEMAS[schema_id]


def design(schema: Schema, records: Iterable[Geometry], receipts: Receipts, target: Target) -> Design:
    """Return the rows of the records of a schema's family, which are taken in the order given.

    Raises
    ------
    FitError : a measured recipe is unknown, was not legal for its geometry, or has no receipt to take capacity from.
    """
    rows: list[Row] = []
    for record in records:
        if family_of(record.form) == schema.family:
            rows += _rows(record, schema, receipts, target)
    return Design(schema, tuple(rows))


def _rows(record: Geometry, schema: Schema, receipts: Receipts, target: Target) -> list[Row]:
    measured = {m.name: m for m in record.recipes()}
    known = recipes_of(record.form)
    if strangers := sorted(set(measured) - {recipe.id for recipe in known}):
        raise FitError(
            f"{record.label}: {', '.join(strangers)} is not in this release's catalogue; use a matching release"
        )
    rows = []
    for recipe in known:
        if recipe.id not in measured:
            continue
        verdict = prove(record.workload, recipe)
        if isinstance(verdict, Refused):
            raise FitError(f"{record.label}: {recipe.id} was measured and is not legal here: {verdict.fact}")
        capacity = _capacity(record, recipe, receipts)
        features = schema.vector(recipe.role, point(record.workload, recipe, capacity, target))
        rows.append(Row(record, recipe, features, measured[recipe.id].timing, measured[recipe.id].in_round))
    return rows


def _capacity(record: Geometry, recipe: Recipe, receipts: Receipts) -> int | None:
    receipt = receipts.get((recipe.id, record.dtype))
    capacity = None if receipt is None else receipt.capacity
    if not capacity:
        known = "there is no receipt" if receipt is None else f"its capacity is {capacity}"
        raise FitError(f"{record.label}: {recipe.id} was measured, but {known} for {record.dtype}")
    return capacity


def block_of(blocks: Iterable[Block], row: Row) -> Block | None:
    """Return the block that prices a row, or None."""
    for block in blocks:
        if block.role == row.recipe.role and block.dtype in (row.geometry.dtype, ANY_DTYPE):
            return block
    return None


def original_row(rows: Iterable[Row]) -> Row | None:
    """Return the original's row among those of one geometry, or None where it was not measured."""
    return next((row for row in rows if row.recipe.id == original_of(row.geometry.form).id), None)
