"""What the driver says of kernels and device hangs together, and live receipts decide as recorded ones do."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import cupy
import pytest
from attrs import evolve

import rowsmith
from features.workload import Workload, workload
from kernels import driver
from kernels.compile import cubin
from kernels.recipe import Recipe
from kernels.recipes import RECIPES
from kernels.source import identity
from kernels.toolchain import toolchain
from policy.errors import PolicyError
from rowsmith.live import Dispatcher
from rowsmith.profiles import profile_for
from tests.gpu.tensors import DTYPES, ORIGINAL, Kernels

if TYPE_CHECKING:
    from kernels.target import Target


@pytest.mark.parametrize("row", RECIPES, ids=lambda row: row.id)
def test_receipts_of_the_driver_are_clean_and_hang_together(
    kernels: Kernels, target: Target, device: int, row: Recipe
) -> None:
    for dtype in row.dtypes:
        check(kernels[row.id, dtype], target, device)


def check(kernel: driver.Kernel, target: Target, device: int) -> None:
    row, dtype = kernel.recipe, kernel.dtype
    receipt = kernel.receipt
    assert (receipt.recipe, receipt.dtype, receipt.architecture) == (row.id, dtype, driver.architecture(device))
    made_from = identity(row, dtype)
    assert (receipt.source, receipt.options) == (made_from.source, made_from.options)
    assert receipt.cubin == kernel.cubin.digest == hashlib.sha256(kernel.cubin.image).hexdigest()
    assert receipt.failure is None
    assert receipt.local_bytes == 0, "the kernel spills"
    assert receipt.registers is not None
    assert 8 <= receipt.registers <= 255
    assert receipt.static_shared_bytes is not None
    assert 0 <= receipt.static_shared_bytes <= 48 * 1024
    assert receipt.dynamic_shared_bytes == 0
    assert receipt.max_threads_per_cta is not None
    assert receipt.max_threads_per_cta >= row.threads
    assert receipt.cluster_ctas == row.cluster
    capacity = receipt.resident_ctas_per_sm
    assert capacity is not None
    assert 1 <= capacity <= target.ctas_per_sm
    if row.cluster == 1:
        assert receipt.resident_clusters is None
    else:
        assert receipt.resident_clusters is not None
        assert 1 <= receipt.resident_clusters <= capacity * target.sm_count // row.cluster
    assert capacity * row.threads <= target.threads_per_sm
    assert capacity * row.threads * receipt.registers <= target.registers_per_sm
    assert capacity * receipt.static_shared_bytes <= target.shared_bytes_per_sm


def test_the_same_source_gives_the_same_machine_code(device: int, tmp_path: Path, kernels: Kernels) -> None:
    """The receipt's digest is a fact about the source and the toolchain, not about one compilation."""
    for dtype in DTYPES:
        again = cubin(ORIGINAL, dtype, driver.architecture(device), tmp_path)
        assert not again.from_cache
        assert again.digest == kernels[ORIGINAL.id, dtype].receipt.cubin


def test_the_live_target_states_the_facts_of_the_device(device: int, target: Target) -> None:
    properties = cupy.cuda.runtime.getDeviceProperties(device)
    tools = toolchain()
    assert target.compute_capability == f"{properties['major']}.{properties['minor']}"
    assert driver.architecture(device) == f"sm_{properties['major']}{properties['minor']}"
    assert target.sm_count == properties["multiProcessorCount"]
    assert target.warp_threads == properties["warpSize"] == 32
    assert target.threads_per_sm == properties["maxThreadsPerMultiProcessor"]
    assert target.registers_per_sm == properties["regsPerMultiprocessor"]
    assert target.shared_bytes_per_sm == properties["sharedMemPerMultiprocessor"]
    assert target.l2_bytes == properties["l2CacheSize"]
    assert target.memory_bus_bits == properties["memoryBusWidth"]
    assert target.shared_optin_bytes_per_cta > 48 * 1024
    assert target.memory_clock_khz > 0
    assert target.ctas_per_sm >= 16
    assert (target.nvrtc, target.cccl, target.math) == (tools.nvrtc, tools.cccl, "strict")
    assert target.label == properties["name"].decode()


def test_the_target_is_the_same_when_it_is_asked_again(device: int, target: Target) -> None:
    again = driver.live_target(device)
    assert again == target
    assert again.digest() == target.digest()
    assert evolve(target, label="another name").digest() == target.digest()


def workloads_of_the_profile() -> list[Workload]:
    shapes = [(1, 1024), (16, 131072), (128, 8192), (131, 4096), (1000, 2048), (4096, 8192), (64, 3584), (5, 7), (0, 9)]
    return [workload("scan", shape, dtype) for shape in shapes for dtype in DTYPES]


def test_live_and_recorded_receipts_give_the_same_selection(device: int, target: Target) -> None:
    """On the GPU that the bundled profile was calibrated on, asking the driver changes not one byte."""
    try:
        bundled = profile_for(None, "hot")
    except PolicyError as error:
        pytest.skip(f"no bundled profile is in force: {error}")
    if differences := bundled.target.differences(target):
        pytest.skip(f"the bundled profile is of another target: {differences}")
    live = Dispatcher(device, target, bundled)
    for work in workloads_of_the_profile():
        ready = live.ready(work)
        recorded = rowsmith.select("scan", (work.rows, work.width), work.dtype, profile=bundled)
        assert ready.selection is not None
        assert ready.selection.decision == recorded.decision
        assert ready.selection.facts == recorded.facts
        assert ready.selection.id == recorded.id
        assert ready.prepared.chosen.recipe.id == recorded.decision.recipe
