"""Every recipe compiles for every dtype and architecture, on a machine with or without a GPU."""

import struct
from pathlib import Path

import pytest

from kernels import compile_all as module
from kernels.compile import compile_source
from kernels.compile_all import ARCHITECTURES, Job, Outcome, compile_all, main, table
from kernels.recipes import RECIPES, is_fitted_on, original_of
from kernels.toolchain import toolchain

ORIGINAL = original_of("prefix.sum")


@pytest.mark.timeout(1800)  # 950 kernels are some 220 s of one core; sm_90 has more than twice as many
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_recipe_and_dtype_compiles(architecture: str) -> None:
    """All on sm_90; elsewhere those of programs that families are fitted on: the others differ by a constant."""
    rows = [row for row in RECIPES if architecture == "sm_90" or is_fitted_on(row.form)]
    outcomes = compile_all((architecture,), rows)
    assert [outcome.failure for outcome in outcomes if outcome.failure is not None] == []
    compiled = [(outcome.job.recipe, outcome.job.dtype) for outcome in outcomes]
    assert sorted(compiled) == sorted(
        (row.id, dtype) for row in rows if row.runs_on(architecture) for dtype in row.dtypes
    )
    assert {outcome.job.architecture for outcome in outcomes} == {architecture}


def test_a_cubin_is_a_whole_elf_file_and_the_same_every_time() -> None:
    """CuPy hands cubins over a byte short, as if they were text; a header table that ends past the file shows it."""
    for dtype in ORIGINAL.dtypes:
        image = compile_source(ORIGINAL, dtype, "sm_90", toolchain())
        assert image[:4] == b"\x7fELF"
        program_headers, section_headers = struct.unpack_from("<QQ", image, 32)
        program_size, program_count, section_size, section_count = struct.unpack_from("<HHHH", image, 54)
        assert program_headers + program_size * program_count <= len(image)
        assert section_headers + section_size * section_count <= len(image)
        assert compile_source(ORIGINAL, dtype, "sm_90", toolchain()) == image


def test_the_six_architectures_are_those_promised() -> None:
    assert ARCHITECTURES == ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def test_nothing_is_kept_unless_a_folder_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWSMITH_CACHE_DIR", str(tmp_path / "user"))
    compile_all(("sm_90",), (ORIGINAL,), processes=1)
    assert not (tmp_path / "user").exists()
    compile_all(("sm_90",), (ORIGINAL,), folder=tmp_path / "given", processes=1)
    assert len(list((tmp_path / "given").glob("*.cubin"))) == len(ORIGINAL.dtypes)


def test_a_failure_ends_the_command_with_1_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--arch", "sm_999", "--processes", "1"]) == 1
    told = capsys.readouterr()
    count = sum(len(row.dtypes) for row in RECIPES)
    assert told.out.splitlines()[-1].startswith(f"{count} of {count} kernels failed: 1 architectures, NVRTC")
    assert told.err.count("sm_999") == count


def test_a_missing_toolchain_ends_the_command_with_1_before_anything_is_compiled(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise module.ToolchainError("NVRTC cannot be loaded; pip install '.[cuda13]'")

    monkeypatch.setattr(module, "toolchain", missing)
    assert main([]) == 1
    assert capsys.readouterr().err == "error: NVRTC cannot be loaded; pip install '.[cuda13]'\n"


def test_the_table_counts_what_compiled() -> None:
    outcomes = [
        Outcome(Job("scan.a", "float16", "sm_80"), 100, None),
        Outcome(Job("scan.a", "float32", "sm_80"), 0, "no"),
        Outcome(Job("scan.a", "float16", "sm_90"), 100, None),
    ]
    assert [line.split() for line in table(outcomes).splitlines()] == [
        ["recipe", "sm_80", "sm_90"],
        ["scan.a", "1/2", "1/1"],
    ]
