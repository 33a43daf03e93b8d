"""The cubin cache: its key covers all that machine code depends on, and no damage or denial makes a wrong kernel."""

import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve

from kernels import compile as module
from kernels import source
from kernels.compile import cache_folder, compile_source, cubin, cubin_key
from kernels.recipe import Recipe
from kernels.recipes import recipe
from kernels.toolchain import Toolchain, toolchain
from tests.kernels.conftest import Edit

ROOT = Path(__file__).parents[2]
TOOLS = Toolchain("13.0", "3.1.2", ())
CUB128 = recipe("scan.cub128")
NOBODY = 65534


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by a recipe's id whenever the compiler is asked."""
    calls: list[str] = []

    def counted(row: Recipe, *arguments: object) -> bytes:
        calls.append(row.id)
        return compile_source(row, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "compile_source", counted)
    return calls


def only_entry(folder: Path) -> Path:
    (entry,) = folder.iterdir()
    return entry


def test_a_second_call_reads_what_the_first_one_wrote(
    tmp_path: Path, empty_recipe: Recipe, compiled: list[str]
) -> None:
    first = cubin(empty_recipe, "float32", "sm_90", tmp_path)
    second = cubin(empty_recipe, "float32", "sm_90", tmp_path)
    assert (first.from_cache, second.from_cache) == (False, True)
    assert compiled == ["test.empty"]
    assert second.image == first.image
    assert second.digest == first.digest == hashlib.sha256(first.image).hexdigest()
    assert only_entry(tmp_path).name == f"{cubin_key(empty_recipe, 'float32', 'sm_90', toolchain())}.cubin"


def test_the_folder_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ROWSMITH_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "rowsmith" / "cubin"
    monkeypatch.setenv("ROWSMITH_CACHE_DIR", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


def test_one_byte_of_a_source_or_of_a_header_changes_the_key(edit: Edit) -> None:
    keys = [cubin_key(CUB128, "float16", "sm_90", TOOLS)]
    edit("scan_cub.cu", lambda text: text + b" ")
    keys.append(cubin_key(CUB128, "float16", "sm_90", TOOLS))
    edit("scan_cub.cu", bytes)
    edit("rowio.cuh", lambda text: text.replace(b"N", b"M", 1))
    keys.append(cubin_key(CUB128, "float16", "sm_90", TOOLS))
    edit("rowio.cuh", bytes)
    keys.append(cubin_key(CUB128, "float16", "sm_90", TOOLS))
    assert len(set(keys)) == 3
    assert keys[-1] == keys[0]


def test_a_file_that_a_kernel_does_not_reach_leaves_its_key_alone(edit: Edit) -> None:
    before = cubin_key(CUB128, "float16", "sm_90", TOOLS)
    edit("scan_original.cu", lambda text: text + b" ")
    assert cubin_key(CUB128, "float16", "sm_90", TOOLS) == before


@pytest.mark.parametrize(
    "other",
    [
        (CUB128, "bfloat16", "sm_90", TOOLS),
        (CUB128, "float16", "sm_80", TOOLS),
        (CUB128, "float16", "sm_90", evolve(TOOLS, nvrtc="13.1")),
        (CUB128, "float16", "sm_90", evolve(TOOLS, cccl="3.1.3")),
        (evolve(CUB128, threads=256), "float16", "sm_90", TOOLS),
        (evolve(CUB128, items=16), "float16", "sm_90", TOOLS),
        (evolve(CUB128, phases=2), "float16", "sm_90", TOOLS),
    ],
    ids=["dtype", "architecture", "nvrtc", "cccl", "threads", "items", "phases"],
)
def test_the_key_tells_apart(other: tuple[Recipe, str, str, Toolchain]) -> None:
    assert cubin_key(*other) != cubin_key(CUB128, "float16", "sm_90", TOOLS)


def test_options_and_schema_change_the_key(monkeypatch: pytest.MonkeyPatch, edit: Edit) -> None:
    keys = {cubin_key(CUB128, "float16", "sm_90", TOOLS)}
    with monkeypatch.context() as patch:
        patch.setattr(source, "OPTIONS", (*source.OPTIONS, "--ftz=true"))
        edit("scan_cub.cu", bytes)
        keys.add(cubin_key(CUB128, "float16", "sm_90", TOOLS))
    edit("scan_cub.cu", bytes)
    monkeypatch.setattr(module, "_KEY_SCHEMA", "rowsmith.cubin/0")
    keys.add(cubin_key(CUB128, "float16", "sm_90", TOOLS))
    assert len(keys) == 3


def test_where_the_headers_lie_does_not_change_the_key() -> None:
    elsewhere = evolve(TOOLS, include=(Path("elsewhere"),))
    assert cubin_key(CUB128, "float16", "sm_90", elsewhere) == cubin_key(CUB128, "float16", "sm_90", TOOLS)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:7],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: bytes([data[0] ^ 1]) + data[1:],
        lambda data: data[:-1] + bytes([data[-1] ^ 128]),
        lambda data: bytes(len(data)),
    ],
    ids=["empty", "shorter than its digest", "halved", "one short", "one more", "digest", "last bit", "zeros"],
)
def test_a_damaged_entry_is_built_again(tmp_path: Path, empty_recipe: Recipe, damage: Callable[[bytes], bytes]) -> None:
    whole = cubin(empty_recipe, "float32", "sm_90", tmp_path)
    entry = only_entry(tmp_path)
    data = entry.read_bytes()
    entry.write_bytes(damage(data))
    again = cubin(empty_recipe, "float32", "sm_90", tmp_path)
    assert not again.from_cache
    assert again.image == whole.image
    assert only_entry(tmp_path).read_bytes() == data
    assert cubin(empty_recipe, "float32", "sm_90", tmp_path).from_cache


def test_a_folder_in_the_place_of_an_entry_costs_a_compilation(tmp_path: Path, empty_recipe: Recipe) -> None:
    whole = cubin(empty_recipe, "float32", "sm_90", tmp_path)
    entry = only_entry(tmp_path)
    entry.unlink()
    (entry / "inside").mkdir(parents=True)
    assert cubin(empty_recipe, "float32", "sm_90", tmp_path).image == whole.image
    assert [path.name for path in tmp_path.iterdir()] == [entry.name]


def test_a_file_in_the_place_of_the_folder_costs_a_compilation(tmp_path: Path, empty_recipe: Recipe) -> None:
    (tmp_path / "taken").write_text("mine")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "below"):
        assert not cubin(empty_recipe, "float32", "sm_90", folder).from_cache
    assert (tmp_path / "taken").read_text() == "mine"


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Lose root's right to write everywhere, for a while; no subprocess, since another user may not read this tree."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("mode", [0o555, 0o000], ids=["readable", "closed"])
def test_a_folder_that_cannot_be_written_costs_a_compilation(tmp_path: Path, empty_recipe: Recipe, mode: int) -> None:
    cubin(empty_recipe, "float32", "sm_90", tmp_path / "warm")  # loads NVRTC while files can be read
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(mode)
    try:
        with as_somebody_else():
            assert not os.access(folder, os.W_OK, effective_ids=True)
            built = cubin(empty_recipe, "float32", "sm_90", folder)
            below = cubin(empty_recipe, "float32", "sm_90", folder / "new")
    finally:
        folder.chmod(0o755)
    assert not built.from_cache
    assert not below.from_cache
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("call", ["mkstemp", "fsync"])
def test_a_read_only_or_full_disk_costs_a_compilation(
    tmp_path: Path, empty_recipe: Recipe, monkeypatch: pytest.MonkeyPatch, number: int, call: str
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    owner = module.tempfile if call == "mkstemp" else module.os
    with monkeypatch.context() as patch:
        patch.setattr(owner, call, refuse)
        assert not cubin(empty_recipe, "float32", "sm_90", tmp_path).from_cache
    assert list(tmp_path.iterdir()) == []
    assert not cubin(empty_recipe, "float32", "sm_90", tmp_path).from_cache


def test_an_interrupted_write_leaves_nothing_behind(
    tmp_path: Path, empty_recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cubin(empty_recipe, "float32", "sm_90", tmp_path)
    assert list(tmp_path.iterdir()) == []


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start Python on `code` from the root of the tree."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


WRITER = """
import sys
from pathlib import Path
from kernels.compile import _write
for _ in range(100):
    _write(Path(sys.argv[1]), bytes([int(sys.argv[2])]) * 300_000)
"""


def test_writers_at_once_never_show_a_reader_half_an_entry(tmp_path: Path) -> None:
    entry = tmp_path / "entry.cubin"
    module._write(entry, b"\0" * 300_000)
    writers = [python(WRITER, entry, number) for number in (1, 2, 3)]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        image = module._read(entry)
        assert image is not None
        assert len(image) == 300_000
        assert len(set(image)) == 1
        seen.add(image[0])
    assert [writer.communicate()[0] for writer in writers] == ["", "", ""]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert seen <= {0, 1, 2, 3}
    assert len(seen) > 1
    assert only_entry(tmp_path) == entry


COMPILER = """
import sys
from pathlib import Path
from kernels.compile import cubin
from kernels.recipes import recipe
print(cubin(recipe("scan.original"), "float16", "sm_90", Path(sys.argv[1])).digest)
"""


def test_two_processes_that_compile_at_once_agree_and_leave_one_entry(tmp_path: Path) -> None:
    processes = [python(COMPILER, tmp_path / "new" / "cache") for _ in range(2)]
    digests = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert digests[0] == digests[1]
    image = only_entry(tmp_path / "new" / "cache").read_bytes()[32:]
    assert hashlib.sha256(image).hexdigest() == digests[0]
