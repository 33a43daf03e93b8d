"""Clusters of CTAs, asked of the CUDA driver: CuPy 14 knows neither their attributes nor their occupancy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from kernels.recipe import Recipe

PORTABLE_CTAS = 8  # larger clusters are launched only of functions that allow them
# Of `CUfunction_attribute` and `CUlaunchAttributeID`, in cuda.h.
_REQUIRED_CLUSTER_WIDTH = 11
_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
_CLUSTER_DIMENSION = 4


class _Attribute(ctypes.Structure):
    """`CUlaunchAttribute`, whose value is a union of 64 bytes."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16))


class _Launch(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("dynamic_shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


def allow(recipe: Recipe, function: Any) -> None:
    """Let a loaded function be launched in clusters of more CTAs than every GPU with clusters takes.

    A driver that refuses leaves it to the launch, and to `resident`, to say so.
    """
    if recipe.cluster > PORTABLE_CTAS:
        _driver().cuFuncSetAttribute(ctypes.c_void_p(function.ptr), _NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)


def ctas_of(recipe: Recipe, attribute: Callable[[int], int | None]) -> int | None:
    """Return the CTAs of a cluster as the driver reads them from the kernel; 1 where no cluster is compiled in."""
    return 1 if recipe.cluster == 1 else attribute(_REQUIRED_CLUSTER_WIDTH)


def resident(recipe: Recipe, function: Any) -> int | None:
    """Return how many clusters of a loaded function run at once on the current GPU, or None.

    None says that there are no clusters or that the driver does not answer. SMs of a GPC that are too few for one more
    cluster stay idle, which CTAs an SM do not tell.
    """
    if recipe.cluster == 1:
        return None
    dimension = _Attribute(_CLUSTER_DIMENSION, b"", (recipe.cluster, 1, 1))
    launch = _Launch((recipe.cluster, 1, 1), (recipe.threads, 1, 1), 0, None, ctypes.pointer(dimension), 1)
    found = ctypes.c_int()
    failed = _driver().cuOccupancyMaxActiveClusters(
        ctypes.byref(found), ctypes.c_void_p(function.ptr), ctypes.byref(launch)
    )
    return None if failed else found.value


def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")
