"""The live search on a GPU: visit recipes one at a time, keep the best module so far, unload every loser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, MutableMapping

from attrs import frozen

from kernels import driver
from kernels.errors import CompileError
from kernels.receipt import Receipt
from kernels.recipe import Recipe

INSTALLED, UNLOADED, FAILED = "installed", "unloaded", "failed"
Key = tuple[str, str]
# What a recipe scores with this receipt, or None where the policy would not run it.
Rank = Callable[[Recipe, Receipt], float | None]


@frozen
class Visit:
    """One recipe that the search looked at. `from_cache` is None where neither compiler nor cache was asked."""

    receipt: Receipt
    disposal: str
    from_cache: bool | None


@frozen
class Found:
    """The outcome of a search. `elapsed_ns` is host time; the original's compilation is not part of it."""

    kernel: driver.Kernel | None
    visits: tuple[Visit, ...]
    compiler_calls: int
    cache_hits: int
    elapsed_ns: int


def search(
    recipes: Iterable[Recipe],
    dtype: str,
    device: int,
    rank: Rank,
    receipts: MutableMapping[Key, Receipt],
    installed: MutableMapping[Key, driver.Kernel],
) -> Found:
    """Visit the recipes and install the one that ranks lowest, if any ranks at all.

    Receipts belong to a recipe and dtype: one already in `receipts` is not queried again, and its kernel is loaded only
    if it wins. At most two modules are held that are not in `installed`: the best so far and the current one. A recipe
    that does not compile leaves a failed receipt; a broken driver or toolchain raises.
    """
    started = time.perf_counter_ns()
    best: tuple[float, str, Recipe] | None = None
    best_kernel: driver.Kernel | None = None
    seen: list[tuple[Recipe, Receipt, bool | None]] = []
    with driver.on(device):  # a module is unloaded in the context that is current, which must be its own
        for recipe in recipes:
            key = (recipe.id, dtype)
            kernel = installed.get(key)
            from_cache = None
            if key not in receipts:
                try:
                    kernel = kernel or driver.load(recipe, dtype, device)
                    receipts[key], from_cache = kernel.receipt, kernel.cubin.from_cache
                except CompileError as error:
                    receipts[key], from_cache = driver.failed_receipt(recipe, dtype, device, error), False
            seen.append((recipe, receipts[key], from_cache))
            score = rank(recipe, receipts[key])
            if score is not None and (best is None or (score, recipe.id) < best[:2]):
                best, best_kernel = (score, recipe.id, recipe), kernel
            del kernel  # the module of a loser goes here
        if best is not None:
            winner = best[2]
            best_kernel = best_kernel or driver.load(winner, dtype, device)
            installed[(winner.id, dtype)] = best_kernel
    visits = tuple(Visit(receipt, _disposal(recipe, receipt, best), from_cache) for recipe, receipt, from_cache in seen)
    asked = [from_cache for _, _, from_cache in seen if from_cache is not None]
    elapsed_ns = time.perf_counter_ns() - started
    return Found(best_kernel, visits, asked.count(False), asked.count(True), elapsed_ns)


def _disposal(recipe: Recipe, receipt: Receipt, best: tuple[float, str, Recipe] | None) -> str:
    if receipt.failure is not None:
        return FAILED
    return INSTALLED if best is not None and best[1] == recipe.id else UNLOADED
