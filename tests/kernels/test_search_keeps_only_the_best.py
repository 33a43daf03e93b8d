"""The search keeps the best module so far and unloads every loser. Loading is made up here: nothing is launched."""

from __future__ import annotations

import weakref
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import driver
from kernels.errors import CompileError, ToolchainError
from kernels.receipt import Receipt
from kernels.recipe import Recipe
from kernels.recipes import RECIPES
from kernels.search import Found, search
from tests.made import made_receipt

NAMES = [row.id for row in RECIPES]


class Loaded:
    """Stands for a loaded kernel; the loader knows how many are alive."""

    def __init__(self, recipe: Recipe, receipt: Receipt, from_cache: bool) -> None:
        self.recipe, self.receipt = recipe, receipt
        self.cubin = SimpleNamespace(from_cache=from_cache)


class Loader:
    """Loads made-up kernels and keeps count of those that are held."""

    def __init__(self, broken: frozenset[str] = frozenset(), cached: frozenset[str] = frozenset()) -> None:
        self.broken, self.cached = broken, cached
        self.calls: list[str] = []
        self.alive: weakref.WeakSet[Loaded] = weakref.WeakSet()
        self.most = 0

    def __call__(self, recipe: Recipe, dtype: str, device: int) -> Loaded:
        self.calls.append(recipe.id)
        if recipe.id in self.broken:
            raise CompileError(f"{recipe.id} does not compile")
        made = Loaded(recipe, made_receipt(recipe, dtype), recipe.id in self.cached)
        self.alive.add(made)
        self.most = max(self.most, len(self.alive))
        return made


def run(
    loader: Loader,
    scores: dict[str, float | None],
    receipts: dict[tuple[str, str], Receipt] | None = None,
    installed: dict[Any, Any] | None = None,
) -> Found:
    """Search every recipe with these scores."""

    def failed(recipe: Recipe, dtype: str, device: int, error: Exception) -> Receipt:
        return made_receipt(recipe, dtype, cubin=None, registers=None, failure=str(error))

    def rank(recipe: Recipe, receipt: Receipt) -> float | None:
        return None if receipt.failure is not None else scores[recipe.id]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "load", loader)
        patch.setattr(driver, "failed_receipt", failed)
        patch.setattr(driver, "on", lambda device: nullcontext())
        return search(
            RECIPES,
            "float16",
            0,
            rank,
            {} if receipts is None else receipts,
            {} if installed is None else installed,
        )


scored = st.dictionaries(
    st.sampled_from(NAMES), st.none() | st.sampled_from([1.0, 2.0, 3.0, 4.0]), min_size=len(NAMES), max_size=len(NAMES)
)
some = st.frozensets(st.sampled_from(NAMES))


@given(scored, some, some)
def test_the_least_score_wins_and_everything_else_is_let_go(
    scores: dict[str, float | None], broken: frozenset[str], cached: frozenset[str]
) -> None:
    loader = Loader(broken, cached)
    receipts: dict[tuple[str, str], Receipt] = {}
    installed: dict[Any, Any] = {}
    found = run(loader, scores, receipts, installed)
    ranked = sorted((s, name) for name, s in scores.items() if s is not None and name not in broken)
    winner = ranked[0][1] if ranked else None
    assert loader.calls == NAMES
    assert loader.most <= 2
    assert [kernel.recipe.id for kernel in loader.alive] == [winner] * bool(ranked)
    assert (found.kernel.recipe.id if found.kernel else None) == winner
    assert list(installed) == [(winner, "float16")] * bool(ranked)
    assert [visit.receipt.recipe for visit in found.visits] == NAMES
    for visit in found.visits:
        name = visit.receipt.recipe
        expected = "failed" if name in broken else "installed" if name == winner else "unloaded"
        assert visit.disposal == expected
        assert visit.from_cache == (name in cached - broken)
        assert receipts[name, "float16"] is visit.receipt
    assert found.cache_hits == len(cached - broken)
    assert found.compiler_calls == len(NAMES) - found.cache_hits
    assert found.elapsed_ns > 0


@given(scored, some)
def test_known_receipts_are_not_asked_for_again_and_only_the_winner_is_loaded(
    scores: dict[str, float | None], broken: frozenset[str]
) -> None:
    receipts: dict[tuple[str, str], Receipt] = {}
    first = run(Loader(broken), scores, receipts)
    loader = Loader()
    second = run(loader, scores, receipts)
    assert loader.calls == ([first.kernel.recipe.id] if first.kernel else [])
    assert (second.compiler_calls, second.cache_hits) == (0, 0)
    assert [visit.from_cache for visit in second.visits] == [None] * len(NAMES)
    assert [visit.disposal for visit in second.visits] == [visit.disposal for visit in first.visits]


def test_what_is_installed_is_used_as_it_is() -> None:
    scores: dict[str, float | None] = dict.fromkeys(NAMES, 2.0)
    scores["scan.cub512"] = 1.0
    receipts: dict[tuple[str, str], Receipt] = {}
    installed: dict[Any, Any] = {}
    first = run(Loader(), scores, receipts, installed)
    loader = Loader()
    second = run(loader, scores, receipts, installed)
    assert loader.calls == []
    assert second.kernel is first.kernel


def test_a_worse_pick_later_leaves_the_earlier_installed_one_loaded() -> None:
    """Graphs may hold what was installed once; only losers that were never installed go."""
    receipts: dict[tuple[str, str], Receipt] = {}
    installed: dict[Any, Any] = {}
    loader = Loader()
    for name in ("scan.cub128", "scan.cub256"):
        run(loader, {**dict.fromkeys(NAMES, 2.0), name: 1.0}, receipts, installed)
    assert sorted(kernel.recipe.id for kernel in loader.alive) == ["scan.cub128", "scan.cub256"]


def test_a_broken_toolchain_is_an_error_and_no_failed_candidate() -> None:
    def broken(recipe: Recipe, dtype: str, device: int) -> Loaded:
        raise ToolchainError("NVRTC failed")

    receipts: dict[tuple[str, str], Receipt] = {}
    with pytest.raises(ToolchainError, match="NVRTC failed"):
        run(broken, dict.fromkeys(NAMES, 1.0), receipts)  # type: ignore[arg-type]
    assert receipts == {}
