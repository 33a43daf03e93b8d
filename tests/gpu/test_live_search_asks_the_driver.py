"""The live search on a real driver: disposals, modules that are really unloaded, and failures kept apart."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cupy
import pytest
from attrs import evolve

from features.proof import Proved, candidates
from features.workload import workload
from kernels import compile as compiling
from kernels import driver
from kernels.compile import Cubin, cubin
from kernels.errors import CompileError, ToolchainError
from kernels.receipt import Receipt
from kernels.recipe import Recipe
from kernels.recipes import RECIPES, recipe
from kernels.search import FAILED, INSTALLED, UNLOADED, Key, search
from kernels.source import identity
from rowsmith.live import Dispatcher
from tests.gpu.tensors import ORIGINAL, Kernels, blank, check, prepared, random

if TYPE_CHECKING:
    from kernels.target import Target
    from policy.profile import Profile


class Modules:
    """Every module that is loaded while this stands in for CuPy's class, and how many were held at most."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.alive: weakref.WeakSet[Any] = weakref.WeakSet()
        self.made: list[Any] = []
        self.most = 0
        watch = self

        class Watched(cupy.cuda.function.Module):  # CuPy's own class takes no weak reference
            def load(self, image: bytes) -> None:
                super().load(image)
                watch.alive.add(self)
                watch.made.append(weakref.ref(self))
                watch.most = max(watch.most, len(watch.alive))

        patch.setattr(cupy.cuda.function, "Module", Watched)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Modules:
    return Modules(monkeypatch)


def order(*names: str) -> dict[str, float]:
    """Return scores that rank these recipes, the best first."""
    return {name: float(place) for place, name in enumerate(names)}


def searched(
    scores: dict[str, float],
    device: int,
    receipts: dict[Key, Receipt] | None = None,
    installed: dict[Key, driver.Kernel] | None = None,
) -> Any:
    """Search the recipes that have a score, in catalogue order."""
    rows = [row for row in RECIPES if row.id in scores]
    return search(
        rows,
        "float16",
        device,
        lambda row, receipt: None if receipt.failure is not None else scores[row.id],
        {} if receipts is None else receipts,
        {} if installed is None else installed,
    )


ORDERS = {
    "the first is the best": order("scan.cub128", "scan.cub256", "scan.cub512", "scan.cub1024"),
    "each is better than the last": order("scan.cub1024", "scan.cub512", "scan.cub256", "scan.cub128"),
    "one in the middle": order("scan.cub512", "scan.cub128", "scan.cub1024", "scan.cub256"),
}


@pytest.mark.parametrize("scores", ORDERS.values(), ids=ORDERS)
def test_at_most_two_modules_are_held_and_losers_are_unloaded(
    device: int, modules: Modules, scores: dict[str, float]
) -> None:
    receipts: dict[Key, Receipt] = {}
    installed: dict[Key, driver.Kernel] = {}
    found = searched(scores, device, receipts, installed)
    winner = next(iter(scores))
    assert modules.most == 2
    assert len(modules.made) == 4
    assert [module() for module in modules.made if module() is not None] == [found.kernel.module]
    assert found.kernel.recipe.id == winner
    assert list(installed) == [(winner, "float16")]
    disposals = {visit.receipt.recipe: visit.disposal for visit in found.visits}
    assert disposals == {name: INSTALLED if name == winner else UNLOADED for name in scores}
    assert (found.compiler_calls, found.cache_hits) == (0, 4)
    assert all(visit.receipt == receipts[visit.receipt.recipe, "float16"] for visit in found.visits)


def test_the_winner_runs_after_the_losers_are_gone(
    device: int, kernels: Kernels, modules: Modules, sm_count: int
) -> None:
    found = searched(ORDERS["one in the middle"], device)
    mine = {**kernels, ("scan.cub512", "float16"): found.kernel}
    ready = prepared(mine, recipe("scan.cub512"), "float16", 77, 8192, sm_count)
    assert ready.chosen is found.kernel
    check(ready, random("float16", 77, 8192), blank("float16", 77, 8192))


def test_a_module_goes_when_its_last_holder_does(device: int, modules: Modules) -> None:
    kernel = driver.load(ORIGINAL, "float32", device)
    function = kernel.function
    (module,) = modules.made
    del kernel
    assert module() is not None, "a function keeps its module"
    del function
    assert module() is None


def test_a_second_search_compiles_loads_and_asks_nothing(device: int, modules: Modules) -> None:
    receipts: dict[Key, Receipt] = {}
    installed: dict[Key, driver.Kernel] = {}
    first = searched(ORDERS["one in the middle"], device, receipts, installed)
    again = searched(ORDERS["one in the middle"], device, receipts, installed)
    assert len(modules.made) == 4
    assert again.kernel is first.kernel
    assert (again.compiler_calls, again.cache_hits) == (0, 0)
    assert [visit.from_cache for visit in again.visits] == [None] * 4


def test_compiler_calls_and_cache_hits_are_counted_apart(
    device: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWSMITH_CACHE_DIR", str(tmp_path))
    scores = order("scan.cub128", "scan.cub256")
    cold, warm = searched(scores, device), searched(scores, device)
    assert (cold.compiler_calls, cold.cache_hits) == (2, 0)
    assert (warm.compiler_calls, warm.cache_hits) == (0, 2)
    assert cold.elapsed_ns > warm.elapsed_ns > 0
    assert [visit.receipt for visit in cold.visits] == [visit.receipt for visit in warm.visits]


def test_a_recipe_that_does_not_compile_leaves_a_failed_receipt_and_the_search_goes_on(
    device: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    macros = compiling.macros

    def broken(row: Recipe, dtype: str) -> tuple[str, ...]:
        given = macros(row, dtype)
        if row.id != "scan.cub128":
            return given
        return tuple("-DROWSMITH_THREADS=nonsense" if "ROWSMITH_THREADS" in macro else macro for macro in given)

    monkeypatch.setenv("ROWSMITH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiling, "macros", broken)
    receipts: dict[Key, Receipt] = {}
    found = searched(order("scan.cub128", "scan.cub256"), device, receipts)
    assert found.kernel.recipe.id == "scan.cub256"
    assert [visit.disposal for visit in found.visits] == [FAILED, INSTALLED]
    failed = receipts["scan.cub128", "float16"]
    assert failed.failure is not None
    assert failed.failure.startswith("scan.cub128 float16 does not compile for sm_")
    assert failed.cubin is failed.registers is failed.local_bytes is failed.resident_ctas_per_sm is None
    assert (failed.source, failed.options) == (
        identity(recipe("scan.cub128"), "float16").source,
        identity(recipe("scan.cub128"), "float16").options,
    )
    assert (found.compiler_calls, found.cache_hits) == (2, 0)


def foreign_image(row: Recipe, dtype: str, architecture: str) -> Cubin:
    """A whole cubin, for another architecture than the one at hand."""
    return cubin(row, dtype, "sm_120" if architecture != "sm_120" else "sm_80")


def nameless_entry(row: Recipe, dtype: str, architecture: str) -> Cubin:
    """A cubin for the GPU at hand, asked for an entry that it does not hold."""
    return evolve(cubin(row, dtype, architecture), entry="rowsmith_nothing")


@pytest.mark.parametrize("image", [foreign_image, nameless_entry])
def test_a_cubin_that_does_not_load_is_that_recipes_failure(
    device: int, modules: Modules, monkeypatch: pytest.MonkeyPatch, image: Any
) -> None:
    monkeypatch.setattr(
        driver, "cubin", lambda row, *rest: image(row, *rest) if row.id == "scan.cub128" else cubin(row, *rest)
    )
    found = searched(order("scan.cub128", "scan.cub256"), device)
    assert found.kernel.recipe.id == "scan.cub256"
    assert [visit.disposal for visit in found.visits] == [FAILED, INSTALLED]
    assert found.visits[0].receipt.failure.startswith("scan.cub128 float16 does not load: CUDA_ERROR_")
    del found
    assert len(modules.alive) == 0


def failing(patch: pytest.MonkeyPatch, status: int) -> None:
    """Let every load of a module end with this status of the driver."""

    class Failing(cupy.cuda.function.Module):
        def load(self, image: bytes) -> None:
            raise cupy.cuda.driver.CUDADriverError(status)

    patch.setattr(cupy.cuda.function, "Module", Failing)


OUT_OF_MEMORY, ILLEGAL_ADDRESS = 2, 700


def test_a_lack_of_room_is_the_recipes_failure(device: int, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, OUT_OF_MEMORY)
    found = searched(order("scan.cub128", "scan.cub256"), device)
    assert found.kernel is None
    assert [visit.disposal for visit in found.visits] == [FAILED, FAILED]


def test_a_broken_driver_is_an_error_and_no_failed_candidate(device: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a launch has gone astray every call fails so; no recipe is to blame for it."""
    failing(monkeypatch, ILLEGAL_ADDRESS)
    receipts: dict[Key, Receipt] = {}
    with pytest.raises(ToolchainError, match=r"the driver fails on scan\.cub128 float16 \(CUDA_ERROR_ILLEGAL_ADDRESS"):
        searched(order("scan.cub128", "scan.cub256"), device, receipts)
    assert receipts == {}


def test_a_search_in_which_nothing_compiles_installs_nothing(device: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(row: Recipe, *rest: object) -> None:
        raise CompileError(f"{row.id} is refused by this test")

    monkeypatch.setattr(driver, "cubin", refuse)
    installed: dict[Key, driver.Kernel] = {}
    found = searched(ORDERS["one in the middle"], device, {}, installed)
    assert found.kernel is None
    assert installed == {}
    assert {visit.disposal for visit in found.visits} == {FAILED}


def test_a_broken_toolchain_is_an_error_and_no_failed_candidate(
    device: int, target: Target, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ToolchainError("NVRTC cannot be loaded")

    monkeypatch.setattr(compiling, "toolchain", broken)
    receipts: dict[Key, Receipt] = {}
    with pytest.raises(ToolchainError, match="NVRTC cannot be loaded"):
        searched(ORDERS["one in the middle"], device, receipts)
    assert receipts == {}
    fresh = Dispatcher(device, target, profile)
    with pytest.raises(ToolchainError, match="NVRTC cannot be loaded"):
        fresh.ready(workload("scan", (128, 8192), "float16"))
    assert fresh.receipts == fresh.installed == fresh.decided == {}


def test_an_original_that_does_not_compile_is_an_error(
    device: int, target: Target, profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(row: Recipe, *rest: object) -> None:
        raise CompileError(f"{row.id} is refused by this test")

    monkeypatch.setattr(driver, "cubin", refuse)
    with pytest.raises(CompileError, match=r"scan\.original is refused"):
        Dispatcher(device, target, profile).ready(workload("scan", (128, 8192), "float16"))


def test_one_search_serves_every_workload_of_a_dtype(dispatch: Dispatcher, modules: Modules) -> None:
    """Receipts belong to a recipe and dtype: a second shape asks the driver nothing about what is known."""
    work = workload("scan", (128, 16384), "float16")
    first = dispatch.ready(work)
    asked = len(modules.made)
    assert asked == sum(isinstance(proof, Proved) for _, proof in candidates(work))
    second = dispatch.ready(workload("scan", (129, 16384), "float16"))
    assert second.found is not None
    assert (second.found.compiler_calls, second.found.cache_hits) == (0, 0)
    assert len(modules.made) <= asked + 1
    assert dispatch.ready(workload("scan", (128, 16384), "float16")) is first
    assert len(modules.alive) == len(dispatch.installed)


def test_a_decision_comes_out_of_the_receipts_that_were_queried(dispatch: Dispatcher, kernels: Kernels) -> None:
    ready = dispatch.ready(workload("scan", (128, 16384), "float16"))
    assert ready.selection is not None
    assert ready.selection.decision.reason == "admitted"
    for candidate in ready.selection.candidates:
        if isinstance(candidate.proof, Proved):
            assert candidate.receipt == kernels[candidate.recipe.id, "float16"].receipt
    assert ready.prepared.chosen is dispatch.installed[ready.selection.decision.recipe, "float16"]


def test_on_another_target_than_the_profiles_the_original_is_kept_and_no_recipe_is_loaded(
    device: int, target: Target, profile: Profile, modules: Modules
) -> None:
    elsewhere = evolve(target, sm_count=target.sm_count - 1)
    ready = Dispatcher(device, elsewhere, profile).ready(workload("scan", (128, 8192), "float16"))
    assert ready.selection is not None
    assert ready.selection.decision.reason == "target_mismatch"
    assert ready.prepared.chosen.recipe is ORIGINAL
    assert len(modules.made) == 1


def test_every_recipe_that_is_proved_is_visited_and_no_other(dispatch: Dispatcher) -> None:
    for shape in ((128, 8192), (64, 3072), (64, 2048), (64, 513), (3, 0)):
        work = workload("scan", shape, "float32")
        ready = dispatch.ready(work)
        assert ready.found is not None
        proved = [row.id for row, proof in candidates(work) if isinstance(proof, Proved) and row is not ORIGINAL]
        assert [visit.receipt.recipe for visit in ready.found.visits] == proved
