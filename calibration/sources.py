"""Which source a packet's kernels were made from: the digests of `kernels.source`, over the packet's own files.

A packet's environment holds under `catalogue` what `catalogue_facts` returns, so that a later release, whose rows and
macros may differ, can still tie each receipt to the sources beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from calibration.errors import CalibrationError
from kernels.identity import digest
from kernels.receipt import Receipt
from kernels.recipes import RECIPES
from kernels.source import SourceIdentity, catalogue_digest, macros, options_document, source_document

Identities = Mapping[tuple[str, str], SourceIdentity]


def catalogue_facts() -> dict[str, Any]:
    """Return this release's catalogue as an environment records it: its digest, each kernel's template and macros."""
    rows = [
        {"id": row.id, "template": row.template, "macros": {dtype: list(macros(row, dtype)) for dtype in row.dtypes}}
        for row in RECIPES
    ]
    return {"digest": catalogue_digest(), "recipes": rows}


def identities(
    catalogue: Mapping[str, Any], sources: Mapping[str, bytes], options: Sequence[str], receipts: Iterable[Receipt]
) -> Identities:
    """Return the source and options digests of each receipt's kernel, compiled from these files.

    Raises
    ------
    CalibrationError : a recipe that the catalogue does not hold, or a file that its kernel reaches and nobody packed.
    """
    rows = {row["id"]: row for row in catalogue["recipes"]}
    options_digest = digest(options_document(options))
    found = {}
    for receipt in receipts:
        row = rows.get(receipt.recipe)
        if row is None or receipt.dtype not in row["macros"]:
            raise CalibrationError(f"the packet's catalogue holds no kernel {receipt.recipe} for {receipt.dtype}")
        source = source_document(row["template"], _reader(row["template"], sources), row["macros"][receipt.dtype])
        found[receipt.recipe, receipt.dtype] = SourceIdentity(digest(source), options_digest)
    return found


def _reader(template: str, sources: Mapping[str, bytes]) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        if name not in sources:
            raise CalibrationError(f"{template} reaches {name}, which is not among the packet's sources")
        return sources[name]

    return read
