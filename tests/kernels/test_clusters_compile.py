"""Kernels of clusters compile where there are clusters, say how many CTAs one has, and keep to their registers."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from kernels import clusters
from kernels.compile import compile_source
from kernels.compile_all import ARCHITECTURES, compile_all
from kernels.errors import CompileError
from kernels.recipe import Recipe, architecture_number
from kernels.recipes import RECIPES, is_fitted_on, recipe
from kernels.toolchain import toolchain

CLUSTERED = [row for row in RECIPES if row.cluster > 1]
ROW = recipe("softmax.cluster16x1024x32")
# Attributes of `.nv.info` sections, by the number that the assembler writes.
_REGISTERS, _FRAME_BYTES, _CLUSTER = 0x2F, 0x11, 0x3D
_SIZED = 4  # the format of an attribute that has a size and as many bytes


def attributes(image: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield number and words of the attributes in a cubin, an ELF file."""
    (headers,), (count,) = struct.unpack_from("<Q", image, 40), struct.unpack_from("<H", image, 60)
    sections = [struct.unpack_from("<IIQQQQ", image, headers + 64 * number) for number in range(count)]
    names = sections[struct.unpack_from("<H", image, 62)[0]][4]
    for name, _kind, _flags, _address, start, size in sections:
        at, end = start, start + size
        while image[names + name :].startswith(b".nv.info") and at < end:
            form, number, value = struct.unpack_from("<BBH", image, at)
            length = value if form == _SIZED else 0
            yield number, struct.unpack_from(f"<{length // 4}I", image, at + 4)
            at += 4 + length


@pytest.mark.parametrize("row", [row for row in CLUSTERED if is_fitted_on(row.form)], ids=lambda row: row.id)
def test_nothing_is_kept_in_local_memory_and_a_cta_fits_an_sm(row: Recipe) -> None:
    for dtype in row.dtypes:
        found = dict(attributes(compile_source(row, dtype, "sm_90", toolchain())))
        assert found[_CLUSTER] == (row.cluster, 1, 1)
        assert found[_FRAME_BYTES][1] == 0, "the kernel spills"
        assert found[_REGISTERS][1] * row.threads <= 65536


@pytest.mark.parametrize("architecture", ["sm_80", "sm_86", "sm_89"])
def test_an_architecture_without_clusters_is_told_before_anything_is_compiled(architecture: str) -> None:
    with pytest.raises(CompileError) as raised:
        compile_source(ROW, "float16", architecture, toolchain())
    assert str(raised.value) == (
        f"{ROW.id} float16 is launched in clusters of 16 CTAs, which {architecture} has not; "
        "compile it for sm_90 or later"
    )
    assert compile_all((architecture, "sm_90"), (ROW,), processes=1)[0].job.architecture == "sm_90"


def test_other_recipes_run_everywhere() -> None:
    assert {row.runs_on(arch) for row in RECIPES if row.cluster == 1 for arch in ARCHITECTURES} == {True}
    assert [arch for arch in ARCHITECTURES if ROW.runs_on(arch)] == ["sm_90", "sm_100", "sm_120"]
    assert architecture_number("sm_90a") == 90


class Driver:
    """Answers as the CUDA driver does, and keeps what it was asked."""

    def __init__(self, clusters: int, failed: int = 0) -> None:
        self.clusters, self.failed = clusters, failed
        self.set: list[tuple[int, int, int]] = []
        self.asked: tuple[object, ...] = ()

    def cuFuncSetAttribute(self, function: object, number: int, value: int) -> int:  # noqa: N802
        self.set.append((function.value, number, value))  # type: ignore[attr-defined]
        return 0

    def cuOccupancyMaxActiveClusters(self, found: object, function: object, launch: object) -> int:  # noqa: N802
        config = launch._obj  # type: ignore[attr-defined]
        dimension = config.attributes[0]
        self.asked = (
            tuple(config.grid),
            tuple(config.block),
            config.attribute_count,
            dimension.id,
            tuple(dimension.value[:3]),
        )
        found._obj.value = self.clusters  # type: ignore[attr-defined]
        return self.failed


class Function:
    """A loaded function, as CuPy has it."""

    ptr = 0x1234


def test_the_driver_is_asked_for_clusters_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(8)
    monkeypatch.setattr(clusters, "_driver", lambda: driver)
    assert clusters.resident(ROW, Function) == 8
    assert driver.asked == ((16, 1, 1), (1024, 1, 1), 1, 4, (16, 1, 1))
    driver.failed = 1
    assert clusters.resident(ROW, Function) is None


def test_more_than_eight_ctas_a_cluster_are_allowed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(8)
    monkeypatch.setattr(clusters, "_driver", lambda: driver)
    for name in ("original", "cluster4x256x16", "cluster8x256x16"):
        clusters.allow(recipe(f"softmax.{name}"), Function)
    assert driver.set == []
    clusters.allow(ROW, Function)
    assert driver.set == [(0x1234, 14, 1)]


def test_no_other_recipe_asks_for_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "_driver", None)
    row = recipe("softmax.original")
    clusters.allow(row, Function)
    assert clusters.resident(row, Function) is None
    assert clusters.ctas_of(row, lambda number: 99) == 1
    assert clusters.ctas_of(ROW, lambda number: {11: 16}[number]) == 16
