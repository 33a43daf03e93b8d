"""Where NVRTC and the CUDA and CCCL headers are, and which versions they have."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from attrs import frozen

from kernels.errors import ToolchainError

_INSTALL = "pip install '.[cuda13]' (or '.[cuda12]') in the source folder brings CuPy, NVRTC and the CUDA headers"


@frozen
class Toolchain:
    """The compiler and the headers that kernels are built with."""

    nvrtc: str
    cccl: str
    include: tuple[Path, ...]


@cache
def toolchain() -> Toolchain:
    """Find NVRTC and the headers, or raise `ToolchainError` naming what is missing and what brings it."""
    try:
        import cupy
        from cupy_backends.cuda.libs import nvrtc
    except ImportError as error:
        raise ToolchainError(f"CuPy cannot be imported ({error}); {_INSTALL}") from error
    try:
        version = ".".join(map(str, nvrtc.getVersion()))
    except Exception as error:  # CuPy raises several kinds for a library that cannot be loaded
        raise ToolchainError(f"NVRTC cannot be loaded ({error}); {_INSTALL}") from error
    cccl = Path(cupy.__file__).parent / "_core" / "include" / "cupy" / "_cccl"
    parts = tuple(cccl / part for part in ("libcudacxx", "cub", "thrust"))
    return Toolchain(version, _cccl_version(parts[0]), (*parts, _cuda_headers()))


def _cccl_version(libcudacxx: Path) -> str:
    header = libcudacxx / "cuda" / "std" / "__cccl" / "version.h"
    try:
        found = re.search(r"define CCCL_VERSION (\d+)", header.read_text())
    except OSError as error:
        raise ToolchainError(f"CuPy's bundled CCCL headers are missing ({error}); {_INSTALL}") from error
    if found is None:
        raise ToolchainError(f"{header.name} states no CCCL_VERSION; {_INSTALL}")
    number = int(found.group(1))
    return f"{number // 1_000_000}.{number // 1_000 % 1_000}.{number % 1_000}"


def _cuda_headers() -> Path:
    """Return the folder of `cuda_fp16.h`: the toolkit that CuPy would use, else the nvidia-cuda-runtime package."""
    candidates: list[Path] = []
    try:
        from cuda.pathfinder import find_nvidia_header_directory

        if (located := find_nvidia_header_directory("cudart")) is not None:
            candidates.append(Path(located))
    except (ImportError, RuntimeError):
        pass
    from cupy.cuda import get_cuda_path

    if (root := get_cuda_path()) is not None:
        candidates.append(Path(root) / "include")
    for folder in candidates:
        if (folder / "cuda_fp16.h").is_file() and (folder / "cuda_bf16.h").is_file():
            return folder
    raise ToolchainError(f"cuda_fp16.h and cuda_bf16.h were not found; {_INSTALL}")
