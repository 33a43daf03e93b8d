"""Silicon and toolchain: the facts a calibrated profile is strict about."""

from __future__ import annotations

from typing import Any

from attrs import asdict, field, fields, frozen

from kernels.identity import digest


@frozen(cache_hash=True)
class Target:
    """What a cost model was measured on. `label` is for people only and takes no part in comparison or digest."""

    compute_capability: str
    sm_count: int
    warp_threads: int
    threads_per_sm: int
    registers_per_sm: int
    shared_bytes_per_sm: int
    shared_optin_bytes_per_cta: int
    ctas_per_sm: int
    l2_bytes: int
    memory_bus_bits: int
    memory_clock_khz: int
    nvrtc: str
    cccl: str
    math: str
    label: str = field(default="", eq=False)

    def facts(self) -> dict[str, Any]:
        """Return every field that identifies the target."""
        facts = asdict(self)
        del facts["label"]
        return facts

    def digest(self) -> str:
        """Return the SHA-256 of the facts."""
        return digest({"schema": "rowsmith.target/1", **self.facts()})

    def differences(self, other: Target) -> tuple[tuple[str, Any, Any], ...]:
        """Return (field, ours, theirs) for each identifying field in which the two differ."""
        names = [f.name for f in fields(Target) if f.name != "label"]
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in names)
        return tuple((name, ours, theirs) for name, ours, theirs in pairs if ours != theirs)
