"""What compiler and driver said of one compiled kernel. Unknown is `None` and is never replaced by a guess."""

from __future__ import annotations

from typing import Any

from attrs import asdict, frozen

RESOURCES = (
    "registers",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "local_bytes",
    "max_threads_per_cta",
    "cluster_ctas",
    "resident_ctas_per_sm",
)


@frozen(cache_hash=True)
class Receipt:
    """The resources of one (recipe, dtype), and the digests of what they were queried from.

    `failure` holds the compiler's or loader's message where there is no kernel at all.
    """

    recipe: str
    dtype: str
    architecture: str
    source: str
    options: str
    cubin: str | None
    registers: int | None
    static_shared_bytes: int | None
    dynamic_shared_bytes: int | None
    local_bytes: int | None
    max_threads_per_cta: int | None
    cluster_ctas: int | None
    resident_ctas_per_sm: int | None
    failure: str | None = None

    def facts(self) -> dict[str, Any]:
        """Return the receipt as JSON-ready facts."""
        return asdict(self)
