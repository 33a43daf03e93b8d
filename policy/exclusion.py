"""Resources: what keeps a proved recipe from competing because of its receipt. Unknown is never taken for zero."""

from __future__ import annotations

from features.errors import Refused
from kernels.receipt import OF_CLUSTERS, RESOURCES, Receipt
from kernels.recipe import Recipe
from kernels.source import SourceIdentity
from kernels.target import Target

# What must be known of a kernel: its resources, and the digest of the machine code they were read from.
_NEEDED = (*RESOURCES, "cubin")
_AT_LEAST_ONE = ("registers", "max_threads_per_cta", "cluster_ctas")


def exclusion(
    recipe: Recipe, dtype: str, receipt: Receipt | None, calibrated: Receipt | None, now: SourceIdentity, target: Target
) -> Refused | None:
    """Return why a receipt keeps a recipe from competing, or None where it is clean.

    Parameters
    ----------
    calibrated : the receipt that the profile recorded for the recipe and dtype, None where it recorded none.
    now : source and options of the kernel that would run.
    """
    if not recipe.runs_on(architecture := _architecture(target)):
        return Refused(
            "clusters_unsupported",
            f"{recipe.id} is launched in clusters of {recipe.cluster} CTAs, which {architecture} has not",
        )
    if receipt is None and calibrated is None:
        return Refused("not_calibrated", f"the profile was made without {recipe.id} for {dtype}")
    if receipt is None:
        return Refused("resource_unknown", f"there is no receipt of {recipe.id} for {dtype}")
    if receipt.failure is not None:
        return Refused("compile_failed", receipt.failure)
    return (
        _another_kernel(recipe, receipt, calibrated, now)
        or _unfit(recipe, receipt)
        or _contradiction(recipe, dtype, receipt, target)
    )


def _architecture(target: Target) -> str:
    return f"sm_{target.compute_capability.replace('.', '')}"


def _another_kernel(
    recipe: Recipe, receipt: Receipt, calibrated: Receipt | None, now: SourceIdentity
) -> Refused | None:
    """Refuse a receipt of another kernel than would run, or than the profile was calibrated on."""
    for name in ("source", "options"):
        theirs, ours = getattr(receipt, name), getattr(now, name)
        if theirs != ours:
            return Refused("source_changed", f"the receipt's {name} {theirs[:12]} is not the catalogue's {ours[:12]}")
    if calibrated is None:
        return Refused("not_calibrated", f"the profile was made without {recipe.id} for {receipt.dtype}")
    for name in ("source", "options"):
        theirs, before = getattr(receipt, name), getattr(calibrated, name)
        if theirs != before:
            return Refused("source_changed", f"the receipt's {name} {theirs[:12]} is not the profile's {before[:12]}")
    return None


def _unfit(recipe: Recipe, receipt: Receipt) -> Refused | None:
    for name in (*_NEEDED, *(OF_CLUSTERS if recipe.cluster > 1 else ())):
        if getattr(receipt, name) is None:
            return Refused("resource_unknown", f"{name} of {recipe.id} is unknown")
    if receipt.local_bytes:
        return Refused("local_memory", f"{recipe.id} uses {receipt.local_bytes} bytes of local memory a thread")
    if receipt.resident_ctas_per_sm == 0:
        return Refused("zero_capacity", f"no CTA of {recipe.id} fits on an SM")
    if receipt.resident_clusters == 0:
        return Refused("zero_capacity", f"no cluster of {recipe.cluster} CTAs of {recipe.id} fits on the GPU")
    return None


def _contradiction(recipe: Recipe, dtype: str, receipt: Receipt, target: Target) -> Refused | None:
    """Refuse complete receipt facts that contradict the launch, the target or one another."""
    names = (*RESOURCES, *(OF_CLUSTERS if recipe.cluster > 1 else ()))
    facts = {name: int(getattr(receipt, name)) for name in names}
    capacity, shared = facts["resident_ctas_per_sm"], facts["static_shared_bytes"] + facts["dynamic_shared_bytes"]
    same = (
        ("recipe", receipt.recipe, recipe.id),
        ("dtype", receipt.dtype, dtype),
        ("architecture", receipt.architecture, _architecture(target)),
    )
    for name, theirs, ours in same:
        if theirs != ours:
            return Refused("launch_contradiction", f"the receipt is of {name} {theirs}, not of {ours}")
    for name, value in facts.items():
        if value < (name in _AT_LEAST_ONE):
            return Refused("launch_contradiction", f"{name} is {value}, which no kernel can be")
    limits = (
        ("threads a CTA", recipe.threads, facts["max_threads_per_cta"]),
        ("resident threads an SM", capacity * recipe.threads, target.threads_per_sm),
        ("resident CTAs an SM", capacity, target.ctas_per_sm),
        ("resident registers an SM", capacity * recipe.threads * facts["registers"], target.registers_per_sm),
        ("shared bytes a CTA", shared, target.shared_optin_bytes_per_cta),
        ("resident shared bytes an SM", capacity * shared, target.shared_bytes_per_sm),
        ("CTAs a cluster", facts["cluster_ctas"], recipe.cluster),
        ("CTAs of a row in a cluster", recipe.cluster, facts["cluster_ctas"]),
        ("resident CTAs of clusters", facts.get("resident_clusters", 0) * recipe.cluster, capacity * target.sm_count),
    )
    for meaning, needed, available in limits:
        if needed > available:
            return Refused("launch_contradiction", f"{meaning}: {needed} needed and {available} available")
    return None
