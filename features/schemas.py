"""Every published feature schema. The vectors of a schema are frozen under its name."""

from __future__ import annotations

from features.schema import Schema
from features.schemas_channel import CHANNELNORM_1
from features.schemas_norm import ROWNORM_1
from features.schemas_reduce import REDUCE_1, REDUCE_2
from features.schemas_scan import SCAN_1, SCAN_2, SCAN_3
from features.schemas_scan_any import SCAN_4, SCAN_5, SCAN_6, SCAN_7

# In the order of publication.
SCHEMAS: dict[str, Schema] = {
    schema.id: schema
    for schema in (
        *(SCAN_1, SCAN_2, SCAN_3, SCAN_4, SCAN_5, SCAN_6, SCAN_7),
        *(REDUCE_1, REDUCE_2, ROWNORM_1, CHANNELNORM_1),
    )
}


def schemas_of(family: str) -> tuple[Schema, ...]:
    """Return the schemas published for a family, the earliest first."""
    return tuple(schema for schema in SCHEMAS.values() if schema.family == family)
