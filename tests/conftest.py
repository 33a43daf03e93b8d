"""What every test may rely on: calm property tests, and a plain skip where there is no CUDA device."""

import ctypes
from pathlib import Path

import pytest

try:
    from hypothesis import settings
except ModuleNotFoundError:  # a GPU machine may have pytest and CuPy only
    pass
else:
    settings.register_profile("rowsmith", deadline=None)  # the first example pays for imports and compiling
    settings.load_profile("rowsmith")

GPU_TESTS = Path(__file__).parent / "gpu"


def missing_cuda_device() -> str | None:
    """Say why no CUDA device can be used here, or None; asks the driver itself, so that CuPy is not imported."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return str(error)
    if code := driver.cuInit(0):
        return f"cuInit answered {code}"
    count = ctypes.c_int()
    if code := driver.cuDeviceGetCount(ctypes.byref(count)):
        return f"cuDeviceGetCount answered {code}"
    return None if count.value else "the driver sees none"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies under tests/gpu, and skip what is marked where there is no device."""
    for item in items:
        if item.path.is_relative_to(GPU_TESTS):
            item.add_marker("gpu")
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and (reason := missing_cuda_device()):
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"no CUDA device: {reason}"))
