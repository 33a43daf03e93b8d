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
# What is known besides of kernels whose CTAs are launched in clusters.
OF_CLUSTERS = ("resident_clusters",)


@frozen(cache_hash=True)
class Receipt:
    """The resources of one (recipe, dtype), and the digests of what they were queried from.

    `failure` holds the compiler's or loader's message where there is no kernel at all. `resident_clusters` is of the
    whole GPU, and known where CTAs are launched in clusters alone: those of 16 leave SMs idle.
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
    resident_clusters: int | None = None

    @property
    def capacity(self) -> int | None:
        """What is resident at once: clusters of the GPU where CTAs are launched in them, else CTAs an SM."""
        in_clusters = self.cluster_ctas is not None and self.cluster_ctas > 1
        return self.resident_clusters if in_clusters else self.resident_ctas_per_sm

    def facts(self) -> dict[str, Any]:
        """Return the receipt as JSON-ready facts; clusters where there are any."""
        facts = asdict(self)
        if self.resident_clusters is None:
            del facts["resident_clusters"]
        return facts
