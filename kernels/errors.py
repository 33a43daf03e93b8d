"""The errors of this room. Each message says what, which value, and what to do."""

from __future__ import annotations


class KernelError(Exception):
    """Something about a kernel, its source, its toolchain or its launch."""


class CompileError(KernelError):
    """NVRTC refused a translation unit: an ordinary failure of one recipe. Holds the compiler's log."""


class ToolchainError(KernelError):
    """No usable driver, NVRTC or headers: nothing can be compiled, which is no recipe's fault."""


class LaunchError(KernelError):
    """A launch that cannot be made safely with the buffers it was given."""
