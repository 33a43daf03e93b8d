"""Channel norms on a GPU: every recipe against the FP64 reference, the original's bits and FP32's own semantics.

Where OUT names a folder, `channel-norms.txt` there gets a line for each program, dtype and recipe.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
import pytest

from kernels.channel_references import is_close
from kernels.channels import CHANNEL_NORMS
from kernels.guard import Verdict
from kernels.operands import Operands
from kernels.recipe import ORIGINAL, Recipe
from kernels.recipes import original_of, recipe, recipes_of
from kernels.reference import Answer, Comparison, answer
from tests.gpu.image_shapes import LARGER, SMALL, legal
from tests.gpu.images import Images, empty, made_of, uniform
from tests.gpu.tensors import DTYPES, POISON, Kernels, host_bits, refill
from tests.kernels.channel_formulas import in_order, special_rows

if TYPE_CHECKING:
    from calibration.gpu import Session

EPS = 1e-5
SPATIAL = 17 * 19
Share = tuple[Comparison, int]
TABLE: dict[tuple[str, str, str], list[Share]] = defaultdict(list)
FORM_OF = {norm.op: form for form, norm in CHANNEL_NORMS.items()}


@pytest.fixture(scope="module", autouse=True)
def _told() -> Iterator[None]:
    """Write the table when all is done."""
    yield
    lines = ["program dtype recipe: worst share of the bound, bad finite, bad special, share bit-equal to the original"]
    for (op, dtype, name), met in sorted(TABLE.items()):
        whole = sum((found for found, _ in met[1:]), start=met[0][0])
        equal = sum(bits for _, bits in met) / max(1, whole.elements)
        figures = f"{whole.worst_share:.3f}, {whole.bad_finite}, {whole.bad_special}, {equal:.6f}"
        lines.append(f"{op} {dtype} {name}: {figures}")
    print("\n".join(lines))
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "channel-norms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def operands(row: Recipe, eps: float = EPS) -> Operands:
    return Operands((), (eps,) if row.parameters else ())


def run(kernels: Kernels, sm_count: int, row: Recipe, x: Images, y: Images, eps: float = EPS) -> Verdict:
    """Launch between two waits for the device."""
    ready = x.prepared(kernels, row, sm_count)
    cupy.cuda.Device().synchronize()
    verdict = ready.run(x.span, y.span, int(cupy.cuda.get_current_stream().ptr), operands(row, eps))
    cupy.cuda.Device().synchronize()
    return verdict


def launched(kernels: Kernels, sm_count: int, row: Recipe, x: Images, *, offset: int = 0, eps: float = EPS) -> Images:
    """Return the poisoned output that a launch wrote, having looked at all that it must not touch."""
    y, before = empty(x.memory.dtype, *x.shape, offset=offset), x.memory.raw.copy()
    where = f"{row.id} {x.memory.dtype} {x.shape}, {offset} past a boundary"
    assert run(kernels, sm_count, row, x, y, eps) is Verdict.RECIPE, where
    assert bool(cupy.array_equal(x.memory.raw, before)), f"{where}: the input changed"
    assert y.memory.outside_equals(POISON), f"{where}: a byte outside the output changed"
    return y


def met(kernels: Kernels, sm_count: int, row: Recipe, x: Images, offset: int, known: Answer, bits: Any) -> Any:
    """Compare a launch with reference and original, put it into the table, and return its bits."""
    y = launched(kernels, sm_count, row, x, offset=offset)
    found = known.compare(cupy, row, x.memory.dtype, y.rows())
    mine = y.memory.bits
    equal = mine.size if bits is None else int(cupy.sum(mine == bits))
    norm = CHANNEL_NORMS[row.form]
    TABLE[norm.op, x.memory.dtype, row.id.removeprefix(f"{norm.op}.")].append((found, equal))
    where = f"{row.id} {x.memory.dtype} {x.shape}, {offset} past a boundary"
    assert found.right, f"{where}: {found}"
    assert row.numerics != "bit_equal" or equal == mine.size, f"{where}: {equal} of {mine.size} are the original's"
    return mine


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", CHANNEL_NORMS)
def test_every_recipe_is_right_on_images(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    ran = set()
    for place, shape in enumerate((*SMALL, *LARGER)):
        for offset in (0, 1):
            x = uniform(dtype, *shape, seed=place, offset=offset)
            alignment = 16 if offset == 0 else 2 if dtype != "float32" else 4
            known = answer(cupy, form, x.rows(), operands(original_of(form)).parameters)
            bits = None
            for row in recipes_of(form):
                if dtype in row.dtypes and legal(row, dtype, *shape, alignment):
                    found = met(kernels, sm_count, row, x, offset, known, bits)
                    bits = found if bits is None else bits
                    ran.add(row)
    assert ran == {row for row in recipes_of(form) if dtype in row.dtypes}


def test_nearly_2_31_elements_are_taken(kernels: Kernels, sm_count: int) -> None:
    """The most that this family is tested at; places are 64-bit numbers throughout."""
    x = uniform("float16", 1, 2, 2**30 - 8)
    for name in ("original", "vector8"):
        row = recipe(f"channel_l2.{name}")
        y = launched(kernels, sm_count, row, x)
        found = answer(cupy, row.form, x.rows()).compare(cupy, row, "float16", y.rows())
        assert found.right, f"{row.id}: {found}"


def fp32_of(row: Recipe, rows: Any, eps: float = EPS) -> Any:
    """Return what FP32 says on the host, where nothing is flushed to zero."""
    with np.errstate(all="ignore"):
        return in_order(np, row, rows, eps, 4)


def rows_on_host(y: Images) -> Any:
    return cupy.asnumpy(y.rows())


def same_bits(got: Any, expected: Any) -> bool:
    alike = got.view(np.uint32) == expected.view(np.uint32)
    return bool((alike | (np.isnan(got) & np.isnan(expected))).all())


DRAWN = {
    "uniform": lambda rng, shape: rng.uniform(0, 1, shape),
    "normal": lambda rng, shape: rng.normal(0, 1, shape),
    "normal 1e-20": lambda rng, shape: rng.normal(0, 1, shape) * 1e-20,
    "normal 1e10": lambda rng, shape: rng.normal(0, 1, shape) * 1e10,
}


@pytest.mark.parametrize("op", FORM_OF)
@pytest.mark.parametrize("drawn", DRAWN)
@pytest.mark.parametrize("seed", range(4))
def test_the_reports_distributions(kernels: Kernels, sm_count: int, seed: int, drawn: str, op: str) -> None:
    """48 cases of images 2 x 64 x 128 x 128, retained and reread: by the evaluator's predicate, and FP32's bits."""
    rows = DRAWN[drawn](np.random.default_rng(seed), (2 * 128 * 128, 64)).astype(np.float32)
    x = made_of("float32", rows, 128 * 128)
    for name in ("original", "retained64", "reread64"):
        row = recipe(f"{op}.{name}")
        got, expected = rows_on_host(launched(kernels, sm_count, row, x)), fp32_of(row, rows)
        assert is_close(np, expected, got), f"{row.id} {drawn} seed {seed}"
        assert same_bits(got, expected), f"{row.id} {drawn} seed {seed}"


@pytest.mark.parametrize("op", FORM_OF)
@pytest.mark.parametrize("channels", [32, 64, 128])
def test_the_reports_controls(kernels: Kernels, sm_count: int, channels: int, op: str) -> None:
    """45 controls at 17 x 19: zeros, 1e20, 1e-40, NaN and infinities, normal; of every recipe that takes them."""
    for name, rows in special_rows(np.random.default_rng(channels), 2 * SPATIAL, channels).items():
        x = made_of("float32", rows, SPATIAL)
        for row in recipes_of(FORM_OF[op]):
            if "float32" in row.dtypes and legal(row, "float32", *x.shape):
                got, expected = rows_on_host(launched(kernels, sm_count, row, x)), fp32_of(row, rows)
                where = f"{row.id} {name} of {channels}"
                assert is_close(np, expected, got, equal_nan=True), where
                assert row.numerics != "bit_equal" or same_bits(got, expected), where
                if name == "zeros":
                    assert np.isnan(got).all() == (op != "channel_rms"), where


@pytest.mark.parametrize("eps", [0.0, 1e-10, 1e-3])
def test_eps_is_what_the_launch_is_given(kernels: Kernels, sm_count: int, eps: float) -> None:
    rng = np.random.default_rng(5)
    rows = np.vstack([rng.normal(0, 1, (SPATIAL, 64)), rng.normal(0, 1e-6, (SPATIAL, 64))]).astype(np.float32)
    x = made_of("float32", rows, SPATIAL)
    for row in recipes_of(FORM_OF["channel_rms"]):
        if "float32" in row.dtypes and legal(row, "float32", *x.shape):
            got = rows_on_host(launched(kernels, sm_count, row, x, eps=eps))
            assert is_close(np, fp32_of(row, rows, eps), got), f"{row.id} eps {eps}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", CHANNEL_NORMS)
def test_a_graph_is_replayed_after_the_input_changed(
    kernels: Kernels, sm_count: int, session: Session, form: str, dtype: str
) -> None:
    for row in (row for row in recipes_of(form) if dtype in row.dtypes):
        shape = next(shape for shape in SMALL if legal(row, dtype, *shape))
        x, y = uniform(dtype, *shape, seed=1), empty(dtype, *shape)
        ready, given = x.prepared(kernels, row, sm_count), operands(row)
        graph = session.capture(lambda r=ready, a=x, b=y, g=given: r.run(a.span, b.span, session.pointer, g), 1)
        for seed in (2, 3):
            refill(x.memory, seed)
            y.memory.raw.fill(POISON)
            cupy.cuda.Device().synchronize()
            graph.replay()
            session.synchronize()
            found = answer(cupy, form, x.rows(), given.parameters).compare(cupy, row, dtype, y.rows())
            assert found.right, f"{row.id} {dtype} {shape}: {found}"
            assert y.memory.outside_equals(POISON)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", CHANNEL_NORMS)
def test_in_place_the_original_runs(kernels: Kernels, sm_count: int, form: str, dtype: str) -> None:
    for shape in ((2, 1, 300), (3, 3, 49), (2, 64, 24), (1, 130, SPATIAL), (5, 200, 1)):
        for row in recipes_of(form):
            if dtype in row.dtypes and legal(row, dtype, *shape):
                x = uniform(dtype, *shape, seed=4)
                apart = launched(kernels, sm_count, original_of(form), x).memory.bits
                expected = Verdict.RECIPE if row.role == ORIGINAL else Verdict.IN_PLACE
                assert run(kernels, sm_count, row, x, x) is expected, f"{row.id} {dtype} {shape}"
                assert bool(cupy.array_equal(x.memory.bits, apart)), f"{row.id} {dtype} {shape}"
                assert x.memory.outside_equals(POISON)


def test_host_values_are_stored_as_they_are() -> None:
    """What the controls rest on: rows of NumPy values become images whose positions hold them."""
    rows = np.random.default_rng(0).normal(0, 1, (2 * 5, 7)).astype(np.float32)
    x = made_of("float32", rows, 5)
    assert np.array_equal(rows_on_host(x), rows)
    assert np.array_equal(cupy.asnumpy(x.memory.bits).ravel()[5:10], host_bits(rows[:5, 1], "float32"))
