"""A capture records the very kernel, grid and block that were decided, and nothing compiles or allocates in it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np
import pytest

import rowsmith
from calibration.gpu import Graph, Node, kernel_nodes
from features.workload import workload
from kernels import compile as compiling
from kernels import driver
from kernels.errors import LaunchError
from kernels.guard import Span, span
from kernels.recipe import Recipe
from rowsmith.live import Dispatcher
from tests.gpu.geometries import geometry_of
from tests.gpu.tensors import ORIGINAL, SCANS, host_bits, host_values

if TYPE_CHECKING:
    from calibration.gpu import Session
    from kernels.execute import Prepared
    from kernels.target import Target

RNG = np.random.default_rng(11)
SHAPES = [(128, 8192), (1000, 1024), (16, 131072), (132, 3072), (64, 3584), (5, 7)]


def whole(rows: int, width: int) -> Any:
    return RNG.integers(-8, 9, (rows, width)).astype(np.float32)


def answer(values: Any, dtype: str) -> Any:
    return host_values(host_bits(np.cumsum(values, axis=-1, dtype=np.float32), dtype), dtype)


@contextmanager
def sealed() -> Iterator[None]:
    """Let every compilation, every load of a kernel and every allocation of CuPy's be a failure for a while."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a kernel was compiled or loaded in a capture")

    gc.collect()
    pool = cupy.get_default_memory_pool()
    total, used = pool.total_bytes(), pool.used_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "load", refuse)
        patch.setattr(compiling, "compile_source", refuse)
        yield
    assert pool.total_bytes() == total, "device memory was taken in a capture"
    assert pool.used_bytes() <= used, "an array was allocated in a capture"


def expected(ready: Prepared, x: Any, y: Any, *, original: bool = False) -> Node:
    """Return the node that a launch of what was prepared must leave in a graph."""
    pair = (ready.original, ready.original_shape) if original else (ready.chosen, ready.chosen_shape)
    return Node(int(pair[0].function.ptr), pair[1].ctas, pair[1].threads, (address(x), address(y)))


def address(array: Any) -> int:
    return int(array.data_ptr() if hasattr(array, "data_ptr") else array.data.ptr)


def spans(*arrays: Any) -> list[Span]:
    return [span(address(array), *array.shape, array.shape[1], str(array.dtype)) for array in arrays]


def captured(session: Session, x: Any, out: Any) -> Graph:
    """Capture one `rowsmith.scan` on the session's stream."""
    session.synchronize()
    with sealed():
        return session.capture(lambda: rowsmith.scan(x, out=out, stream=session.stream), 1)


def replay(session: Session, graph: Graph, x: Any, out: Any) -> None:
    """Replay on three inputs, each put there after the capture."""
    for _ in range(3):
        values = whole(*x.shape)
        x[...] = cupy.asarray(values.astype(x.dtype))
        out.fill(cupy.nan)
        session.synchronize()
        graph.replay()
        session.synchronize()
        assert np.array_equal(out.get().astype(np.float32), answer(values, str(x.dtype)))


def pair(rows: int, width: int, dtype: str) -> tuple[Any, Any]:
    return cupy.zeros((rows, width), dtype), cupy.zeros((rows, width), dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("rows", "width"), SHAPES)
def test_the_automatic_pick_is_what_a_graph_holds(
    dispatch: Dispatcher, session: Session, rows: int, width: int, dtype: str
) -> None:
    x, out = pair(rows, width, dtype)
    ready = rowsmith.prepare("scan", x)
    assert ready.selection is not None
    decision = ready.selection.decision
    assert ready.prepared.chosen.recipe.id == decision.recipe
    assert (decision.reason == "admitted") == (ready.prepared.chosen.recipe is not ORIGINAL)
    graph = captured(session, x, out)
    assert kernel_nodes(graph) == (expected(ready.prepared, x, out),)
    replay(session, graph, x, out)
    assert ready.prepared.launches == {"recipe": 1}


def test_the_made_up_profile_picks_recipes_and_keeps_the_original(dispatch: Dispatcher) -> None:
    """So that the tests above and below see both."""
    picked = {rowsmith.prepare("scan", pair(*shape, "float16")[0]).prepared.chosen.recipe.id for shape in SHAPES}
    assert ORIGINAL.id in picked
    assert len(picked) > 1


@pytest.mark.parametrize("recipe", SCANS, ids=lambda row: row.id)
def test_a_forced_recipe_is_what_a_graph_holds(dispatch: Dispatcher, session: Session, recipe: Recipe) -> None:
    x, out = pair(*geometry_of(recipe, "float16"), "float16")
    ready = rowsmith.prepare("scan", x, recipe=recipe.id)
    assert ready.selection is not None
    decision = ready.selection.decision
    assert (decision.recipe, decision.reason) == (recipe.id, "forced")
    assert decision.policy_recipe == rowsmith.prepare("scan", x).prepared.chosen.recipe.id
    session.synchronize()
    with sealed():
        graph = session.capture(lambda: ready.prepared.run(*spans(x, out), session.pointer), 3)
    assert ready.prepared.chosen.recipe.id == recipe.id
    assert kernel_nodes(graph) == (expected(ready.prepared, x, out),) * 3
    replay(session, graph, x, out)


def test_a_forced_recipe_and_the_automatic_pick_of_it_are_one_kernel(dispatch: Dispatcher, session: Session) -> None:
    x, out = pair(128, 8192, "float32")
    automatic = rowsmith.prepare("scan", x)
    forced = rowsmith.prepare("scan", x, recipe=automatic.prepared.chosen.recipe.id)
    assert forced.prepared.chosen is automatic.prepared.chosen
    assert forced.prepared.chosen_shape == automatic.prepared.chosen_shape
    graph = captured(session, x, out)
    assert kernel_nodes(graph) == (expected(forced.prepared, x, out),)


def test_every_capture_of_a_split_row_that_is_prepared_holds_it(dispatch: Dispatcher, session: Session) -> None:
    """However many there were before, and whether or not the decision is an old one."""
    x, out = pair(2, 50257, "float16")
    for _ in range(40):
        ready = rowsmith.prepare("scan", x, recipe="scan.split2048")
        session.synchronize()
        graph = session.capture(lambda ready=ready: ready.prepared.run(*spans(x, out), session.pointer), 1)
        assert kernel_nodes(graph) == (expected(ready.prepared, x, out),)
    assert ready.prepared.launches == {"recipe": 40}


def test_a_fallback_in_a_capture_records_the_originals_function(dispatch: Dispatcher, session: Session) -> None:
    x, _ = pair(64, 8192, "float16")
    wide = cupy.zeros((64, 8200), cupy.float16)
    out = wide[:, 3:8195]
    ready = rowsmith.prepare("scan", x)
    assert ready.prepared.chosen.recipe is not ORIGINAL
    graph = captured(session, x, out)
    assert kernel_nodes(graph) == (expected(ready.prepared, x, out, original=True),)
    assert ready.prepared.launches == {"misaligned": 1}
    replay(session, graph, x, out)
    graph = captured(session, x, x)
    assert kernel_nodes(graph) == (expected(ready.prepared, x, x, original=True),)
    assert ready.prepared.launches == {"misaligned": 1, "in_place": 1}


def test_a_workload_that_is_not_prepared_runs_the_original_in_a_capture(dispatch: Dispatcher, session: Session) -> None:
    """The original of that dtype is loaded by another workload; the new one is neither decided nor compiled."""
    rowsmith.prepare("scan", pair(4, 1024, "float16")[0])
    x, out = pair(128, 8192, "float16")
    graph = captured(session, x, out)
    (node,) = kernel_nodes(graph)
    assert node.function == int(dispatch.installed[ORIGINAL.id, "float16"].function.ptr)
    assert node.arguments == (address(x), address(out))
    assert workload("scan", (128, 8192), "float16") not in {work for work, _ in dispatch.decided}
    replay(session, graph, x, out)
    ready = rowsmith.prepare("scan", x)
    assert ready.prepared.chosen.recipe is not ORIGINAL
    assert kernel_nodes(captured(session, x, out)) == (expected(ready.prepared, x, out),)


def test_a_capture_before_anything_is_loaded_is_a_clear_error(dispatch: Dispatcher, session: Session) -> None:
    x, out = pair(8, 1024, "float32")
    with pytest.raises(LaunchError, match=r"scan\.original for float32 is not loaded .* call rowsmith\.prepare"):
        captured(session, x, out)
    assert dispatch.installed == {}
    rowsmith.prepare("scan", x)
    replay(session, captured(session, x, out), x, out)


def test_overlap_in_a_capture_needs_scratch_from_prepare(dispatch: Dispatcher, session: Session) -> None:
    room = cupy.zeros((65, 2048), cupy.float32)
    x, out = room[:64], room[1:]
    rowsmith.prepare("scan", x)
    with pytest.raises(LaunchError, match=r"rowsmith\.prepare\(\.\.\., scratch=True\)"):
        captured(session, x, out)
    rowsmith.prepare("scan", x, scratch=True)
    graph = captured(session, x, out)
    for _ in range(2):
        values = whole(64, 2048)
        x[...] = cupy.asarray(values)
        session.synchronize()
        graph.replay()
        session.synchronize()
        assert np.array_equal(out.get(), answer(values, "float32"))
        assert np.array_equal(room[0].get(), values[0])


def test_empty_arrays_leave_no_node(dispatch: Dispatcher, session: Session) -> None:
    x, out = pair(0, 8, "float16")
    assert kernel_nodes(captured(session, x, out)) == ()


def test_many_launches_of_several_workloads_share_a_graph(dispatch: Dispatcher, session: Session) -> None:
    """A pipeline as a model has it: different shapes and dtypes one after the other, in one graph."""
    arrays = [pair(*shape, dtype) for shape in SHAPES for dtype in ("float16", "float32")]
    readied = [rowsmith.prepare("scan", x).prepared for x, _ in arrays]

    def enqueue() -> None:
        for x, out in arrays:
            rowsmith.scan(x, out=out, stream=session.stream)

    session.synchronize()
    with sealed():
        graph = session.capture(enqueue, 1)
    nodes = [expected(ready, x, out) for ready, (x, out) in zip(readied, arrays, strict=True)]
    assert sorted(kernel_nodes(graph), key=repr) == sorted(nodes, key=repr)
    values = [whole(*x.shape) for x, _ in arrays]
    for (x, _), fresh in zip(arrays, values, strict=True):
        x[...] = cupy.asarray(fresh.astype(x.dtype))
    session.synchronize()
    graph.replay()
    session.synchronize()
    for (_, out), fresh in zip(arrays, values, strict=True):
        assert np.array_equal(out.get().astype(np.float32), answer(fresh, str(out.dtype)))


def test_without_a_profile_a_graph_holds_the_original(
    device: int, target: Target, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Dispatcher(device, target, None)
    monkeypatch.setattr("rowsmith.api.dispatcher", lambda number: alone)
    x, out = pair(128, 8192, "float16")
    ready = rowsmith.prepare("scan", x)
    assert ready.selection is None
    assert ready.prepared.chosen is ready.prepared.original
    graph = captured(session, x, out)
    assert kernel_nodes(graph) == (expected(ready.prepared, x, out),)
    replay(session, graph, x, out)


def torch_capture(torch: Any, x: Any, out: Any) -> tuple[Any, Graph]:
    """Capture as torch users do; the handle lets the graph be read back before it is instantiated."""
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with sealed(), torch.cuda.graph(graph, stream=side):
        rowsmith.scan(x, out=out)
    handle = SimpleNamespace(graph=graph.raw_cuda_graph())
    return graph, Graph(1, graph.replay, handle)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(("rows", "width"), [(128, 8192), (16, 131072), (64, 3584)])
def test_torch_captures_the_pick_on_its_own_stream(
    torch: Any, dispatch: Dispatcher, rows: int, width: int, dtype: str
) -> None:
    x = torch.zeros(rows, width, dtype=getattr(torch, dtype), device="cuda")
    out = torch.empty_like(x)
    ready = rowsmith.prepare("scan", x)
    graph, seen = torch_capture(torch, x, out)
    assert kernel_nodes(seen) == (expected(ready.prepared, x, out),)
    graph.instantiate()
    for _ in range(3):
        values = whole(rows, width)
        x.copy_(torch.tensor(values))
        out.fill_(float("nan"))
        torch.cuda.synchronize()
        graph.replay()
        torch.cuda.synchronize()
        assert np.array_equal(out.float().cpu().numpy(), answer(values, dtype))


def test_torch_allocates_the_output_of_a_capture_in_the_graphs_own_pool(torch: Any, dispatch: Dispatcher) -> None:
    x = torch.zeros(128, 8192, dtype=torch.bfloat16, device="cuda")
    rowsmith.prepare("scan", x)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with sealed(), torch.cuda.graph(graph):
        out = rowsmith.scan(x)
    values = whole(128, 8192)
    x.copy_(torch.tensor(values))
    torch.cuda.synchronize()
    graph.replay()
    torch.cuda.synchronize()
    assert np.array_equal(out.float().cpu().numpy(), answer(values, "bfloat16"))


def test_a_misaligned_torch_view_in_a_capture_records_the_original(torch: Any, dispatch: Dispatcher) -> None:
    x = torch.zeros(64, 8192, dtype=torch.bfloat16, device="cuda")
    out = torch.zeros(64 * 8192 + 1, dtype=torch.bfloat16, device="cuda")[1:].view(64, 8192)
    ready = rowsmith.prepare("scan", x)
    assert ready.prepared.chosen.recipe is not ORIGINAL
    _, seen = torch_capture(torch, x, out)
    assert kernel_nodes(seen) == (expected(ready.prepared, x, out, original=True),)
