"""A source that does not compile is its recipe's failure and names the file; a missing toolchain, what brings it."""

import sys
from pathlib import Path

import pytest

from kernels.compile import compile_source
from kernels.errors import CompileError, ToolchainError
from kernels.recipe import Recipe
from kernels.recipes import original_of
from kernels.toolchain import toolchain
from tests.kernels.conftest import Edit

ORIGINAL = original_of("prefix.sum")


def test_a_fault_in_a_template_is_told_with_file_and_line(edit: Edit) -> None:
    edit("scan_original.cu", lambda text: b"int broken = ;\n" + text)
    with pytest.raises(CompileError) as raised:
        compile_source(ORIGINAL, "float16", "sm_90", toolchain())
    assert str(raised.value).startswith("scan.original float16 does not compile for sm_90:")
    assert "scan_original.cu(1): error" in str(raised.value)


def test_a_fault_in_a_header_of_ours_is_told_with_the_headers_name(edit: Edit) -> None:
    edit("rowio.cuh", lambda text: text.replace(b"#pragma once", b"#pragma once\n#error planted"))
    with pytest.raises(CompileError, match=r"rowio\.cuh\(\d+\): .*planted"):
        compile_source(ORIGINAL, "float16", "sm_90", toolchain())


def test_an_architecture_that_nvrtc_does_not_know_is_no_recipes_fault(empty_recipe: Recipe) -> None:
    with pytest.raises(ToolchainError, match=r"test\.empty float32 for sm_999"):
        compile_source(empty_recipe, "float32", "sm_999", toolchain())


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch, forgetful_toolchain: None) -> pytest.MonkeyPatch:
    """Return what breaks the toolchain for one test."""
    return monkeypatch


def told() -> str:
    with pytest.raises(ToolchainError) as raised:
        toolchain()
    assert "pip install '.[cuda13]' (or '.[cuda12]') in the source folder" in str(raised.value)
    return str(raised.value)


def test_cupy_is_missing(missing: pytest.MonkeyPatch) -> None:
    missing.setitem(sys.modules, "cupy", None)
    assert told().startswith("CuPy cannot be imported")


@pytest.mark.parametrize("kind", [RuntimeError, ImportError, OSError])
def test_nvrtc_is_missing(missing: pytest.MonkeyPatch, kind: type[Exception]) -> None:
    from cupy_backends.cuda.libs import nvrtc

    def fail() -> None:
        raise kind("libnvrtc.so.13: cannot open shared object file")

    missing.setattr(nvrtc, "getVersion", fail)
    assert told().startswith("NVRTC cannot be loaded (libnvrtc.so.13")


def test_the_bundled_headers_are_missing(missing: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import cupy

    missing.setattr(cupy, "__file__", str(tmp_path / "cupy" / "__init__.py"))
    assert told().startswith("CuPy's bundled CCCL headers are missing")


def test_the_bundled_headers_state_no_version(missing: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import cupy

    header = tmp_path / "_core/include/cupy/_cccl/libcudacxx/cuda/std/__cccl/version.h"
    header.parent.mkdir(parents=True)
    header.write_text("// nothing\n")
    missing.setattr(cupy, "__file__", str(tmp_path / "__init__.py"))
    assert told().startswith("version.h states no CCCL_VERSION")


def test_the_cuda_headers_are_missing_or_incomplete(missing: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import cuda.pathfinder
    import cupy.cuda

    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda_fp16.h").touch()
    missing.setattr(cuda.pathfinder, "find_nvidia_header_directory", lambda name: None)
    for root in (None, str(tmp_path / "nowhere"), str(tmp_path)):
        missing.setattr(cupy.cuda, "get_cuda_path", lambda root=root: root)
        assert told().startswith("cuda_fp16.h and cuda_bf16.h were not found")


def test_the_toolchain_at_hand_says_what_it_is(forgetful_toolchain: None) -> None:
    found = toolchain()
    assert [len(text.split(".")) for text in (found.nvrtc, found.cccl)] == [2, 3]
    assert all(folder.is_dir() for folder in found.include)
    assert (found.include[-1] / "cuda_bf16.h").is_file()
