"""Compiling through NVRTC, and the cubin cache on disk."""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
import time
from pathlib import Path

from attrs import frozen

from kernels.errors import CompileError, ToolchainError
from kernels.identity import digest
from kernels.recipe import CLUSTERS_FROM, Recipe
from kernels.source import OPTIONS, entry, identity, macros, sources
from kernels.toolchain import Toolchain, toolchain

_KEY_SCHEMA = "rowsmith.cubin/1"
_SHA256_BYTES = 32


@frozen
class Cubin:
    """A compiled kernel. `from_cache` tells whether NVRTC ran, `elapsed_ns` how long reading or compiling took."""

    image: bytes
    digest: str
    entry: str
    architecture: str
    from_cache: bool
    elapsed_ns: int


def cache_folder() -> Path:
    """Return the cubin cache: ROWSMITH_CACHE_DIR, else `rowsmith` under the user's cache folder."""
    if explicit := os.environ.get("ROWSMITH_CACHE_DIR"):
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rowsmith" / "cubin"


def cubin_key(recipe: Recipe, dtype: str, architecture: str, tools: Toolchain) -> str:
    """Return the digest of everything the machine code depends on."""
    made_from = identity(recipe, dtype)
    return digest(
        {
            "schema": _KEY_SCHEMA,
            "source": made_from.source,
            "options": made_from.options,
            "nvrtc": tools.nvrtc,
            "cccl": tools.cccl,
            "architecture": architecture,
        }
    )


def cubin(recipe: Recipe, dtype: str, architecture: str, folder: Path | None = None) -> Cubin:
    """Return the machine code of a recipe for `architecture` (`sm_90`), from the cache where it is whole.

    Raises
    ------
    CompileError : NVRTC refused the source.
    ToolchainError : NVRTC or headers are missing.
    """
    started = time.perf_counter_ns()
    tools = toolchain()
    path = (folder or cache_folder()) / f"{cubin_key(recipe, dtype, architecture, tools)}.cubin"
    image = _read(path)
    from_cache = image is not None
    if image is None:
        image = compile_source(recipe, dtype, architecture, tools)
        _write(path, image)
    sha = hashlib.sha256(image).hexdigest()
    return Cubin(image, sha, entry(recipe, dtype), architecture, from_cache, time.perf_counter_ns() - started)


def compile_source(recipe: Recipe, dtype: str, architecture: str, tools: Toolchain) -> bytes:
    """Compile a recipe with the strict options; needs no GPU and no driver."""
    from cupy_backends.cuda.libs import nvrtc

    if not recipe.runs_on(architecture):
        raise CompileError(
            f"{recipe.id} {dtype} is launched in clusters of {recipe.cluster} CTAs, which {architecture} has not; "
            f"compile it for sm_{CLUSTERS_FROM} or later"
        )
    headers = sources(recipe.template)
    main = headers.pop(recipe.template).decode()
    names = tuple(name.encode() for name in headers)
    program = nvrtc.createProgram(main, recipe.template, tuple(headers.values()), names)
    include = tuple(f"-I{folder}" for folder in tools.include)
    options = (*OPTIONS, f"--gpu-architecture={architecture}", *macros(recipe, dtype), *include)
    try:
        nvrtc.compileProgram(program, options)
        return _whole(bytes(nvrtc.getCUBIN(program)))
    except nvrtc.NVRTCError as error:
        log = nvrtc.getProgramLog(program).strip()
        if "NVRTC_ERROR_COMPILATION" in str(error):
            raise CompileError(f"{recipe.id} {dtype} does not compile for {architecture}:\n{log}") from error
        raise ToolchainError(f"NVRTC failed on {recipe.id} {dtype} for {architecture} ({error})\n{log}") from error
    finally:
        nvrtc.destroyProgram(program)


def _whole(image: bytes) -> bytes:
    """Give a cubin back the zero byte that CuPy 14.2 cuts off its end, as if it were text.

    The driver loads the shorter one, but it is no whole ELF file: its last program header ends one byte past it, and
    every disassembler refuses it.
    """
    start, size, count = struct.unpack_from("<Q14xHH", image, 32)
    return image + bytes(max(0, start + size * count - len(image)))


def _read(path: Path) -> bytes | None:
    """Return a cache entry's image, or None where it is missing or damaged; a damaged one is built again."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    expected, image = data[:_SHA256_BYTES], data[_SHA256_BYTES:]
    return image if hashlib.sha256(image).digest() == expected else None


def _write(path: Path, image: bytes) -> None:
    """Put an entry in place atomically. A cache that cannot be written costs a compilation next time, nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(image).digest() + image)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError:
        return
