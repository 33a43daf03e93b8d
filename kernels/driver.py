"""Asking the CUDA driver: the live target, loaded kernels and their receipts. Imports CuPy when called, not before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import frozen

from kernels import clusters
from kernels.compile import Cubin, cubin
from kernels.errors import CompileError, KernelError, ToolchainError
from kernels.receipt import Receipt
from kernels.recipe import Recipe
from kernels.source import identity
from kernels.target import Target
from kernels.toolchain import toolchain

# What a driver answers about one module: an image it cannot use, an entry that is not there, no room. Anything else,
# such as an earlier launch's illegal address, is the driver's or the device's own fault and would meet every candidate.
_OF_THE_MODULE = (
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_INVALID_PTX",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CUDA_ERROR_INVALID_SOURCE",
    "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
    "CUDA_ERROR_NOT_FOUND",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
)


@frozen(eq=False)
class Kernel:
    """A loaded kernel. Its module is unloaded when the last reference to this value goes, on its own device."""

    recipe: Recipe
    dtype: str
    device: int
    cubin: Cubin
    module: Any
    function: Any
    receipt: Receipt


def device_count() -> int:
    """Return how many CUDA devices there are; 0 where there is no driver or no CuPy."""
    try:
        import cupy
    except ImportError:
        return 0
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def current_device() -> int:
    """Return the calling thread's current device, with a context made current for the driver API."""
    import cupy

    try:
        device = cupy.cuda.Device()
        device.use()
        cupy.cuda.runtime.free(0)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise ToolchainError(f"no usable CUDA device ({error}); run rowsmith doctor") from error
    return int(device.id)


@contextmanager
def on(device: int) -> Iterator[None]:
    """Make a device current for a while, with a context that the driver API can use. Allowed during a capture."""
    import cupy
    from cupy_backends.cuda.api import driver

    with cupy.cuda.Device(device):
        if not driver.ctxGetCurrent():  # a thread that has made no CUDA call so far
            cupy.cuda.runtime.setDevice(device)
        yield


def live_target(device: int | None = None) -> Target:
    """Return the facts of a device and of the toolchain in this process.

    Raises
    ------
    ToolchainError : no device, driver, NVRTC or headers.
    """
    import cupy

    number = current_device() if device is None else device
    tools = toolchain()
    attribute = cupy.cuda.Device(number).attributes
    properties = cupy.cuda.runtime.getDeviceProperties(number)
    return Target(
        compute_capability=f"{properties['major']}.{properties['minor']}",
        sm_count=attribute["MultiProcessorCount"],
        warp_threads=attribute["WarpSize"],
        threads_per_sm=attribute["MaxThreadsPerMultiProcessor"],
        registers_per_sm=attribute["MaxRegistersPerMultiprocessor"],
        shared_bytes_per_sm=attribute["MaxSharedMemoryPerMultiprocessor"],
        shared_optin_bytes_per_cta=attribute["MaxSharedMemoryPerBlockOptin"],
        ctas_per_sm=attribute["MaxBlocksPerMultiprocessor"],
        l2_bytes=attribute["L2CacheSize"],
        memory_bus_bits=attribute["GlobalMemoryBusWidth"],
        memory_clock_khz=attribute["MemoryClockRate"],
        nvrtc=tools.nvrtc,
        cccl=tools.cccl,
        math="strict",
        label=properties["name"].decode(),
    )


def architecture(device: int) -> str:
    """Return the architecture to compile for, such as `sm_90`."""
    import cupy

    return f"sm_{cupy.cuda.Device(device).compute_capability}"


def load(recipe: Recipe, dtype: str, device: int) -> Kernel:
    """Compile (or read from the cache), load and query one kernel on a device.

    Raises
    ------
    CompileError : this recipe does not compile or load.
    ToolchainError : nothing would.
    """
    import cupy

    built = cubin(recipe, dtype, architecture(device))
    with on(device):
        module = cupy.cuda.function.Module()
        try:
            module.load(built.image)
            function = module.get_function(built.entry)
            clusters.allow(recipe, function)
        except cupy.cuda.driver.CUDADriverError as error:
            if not str(error).startswith(_OF_THE_MODULE):
                raise ToolchainError(
                    f"the driver fails on {recipe.id} {dtype} ({error}); run rowsmith doctor"
                ) from error
            raise CompileError(f"{recipe.id} {dtype} does not load: {error}") from error
        return Kernel(recipe, dtype, device, built, module, function, _query(recipe, dtype, built, function))


def _query(recipe: Recipe, dtype: str, built: Cubin, function: Any) -> Receipt:
    """Ask the driver what the loaded kernel occupies. A question it will not answer stays None."""
    from cupy_backends.cuda.api import driver

    def attribute(number: int) -> int | None:
        try:
            return int(driver.funcGetAttribute(number, function.ptr))
        except driver.CUDADriverError:
            return None

    try:
        capacity = int(driver.occupancyMaxActiveBlocksPerMultiprocessor(function.ptr, recipe.threads, 0))
    except driver.CUDADriverError:
        capacity = None
    made_from = identity(recipe, dtype)
    return Receipt(
        recipe=recipe.id,
        dtype=dtype,
        architecture=built.architecture,
        source=made_from.source,
        options=made_from.options,
        cubin=built.digest,
        registers=attribute(driver.CU_FUNC_ATTRIBUTE_NUM_REGS),
        static_shared_bytes=attribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        dynamic_shared_bytes=0,
        local_bytes=attribute(driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        max_threads_per_cta=attribute(driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        cluster_ctas=clusters.ctas_of(recipe, attribute),
        resident_ctas_per_sm=capacity,
        resident_clusters=clusters.resident(recipe, function),
    )


def failed_receipt(recipe: Recipe, dtype: str, device: int, error: KernelError) -> Receipt:
    """Return the receipt of a kernel that does not exist: every resource unknown, and the message."""
    made_from = identity(recipe, dtype)
    return Receipt(
        recipe=recipe.id,
        dtype=dtype,
        architecture=architecture(device),
        source=made_from.source,
        options=made_from.options,
        cubin=None,
        registers=None,
        static_shared_bytes=None,
        dynamic_shared_bytes=None,
        local_bytes=None,
        max_threads_per_cta=None,
        cluster_ctas=None,
        resident_ctas_per_sm=None,
        failure=str(error),
    )
