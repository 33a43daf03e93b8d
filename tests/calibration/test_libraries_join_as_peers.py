"""Liger and Quack join where they can be imported, on every row normalization; their failures are kept as text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from calibration.judge import judge
from calibration.packet import pack, read
from calibration.page import page
from calibration.peers_libraries import LibraryPeers, absent, library_peers, tried
from calibration.records import COMPILED, CUPY, EAGER, FLOORS, LIGER, QUACK
from features.usual import TORCH
from features.usual_libraries import LIBRARIES, Library
from kernels.identity import digest
from kernels.norms import NORMS
from tests.calibration.planted import planted_contents

EPS = 1e-5


class Tensor(np.ndarray[Any, Any]):
    """As much of a torch tensor as the calls and the comparison ask for."""

    device = "cuda"

    def float(self) -> Tensor:
        return self.astype(np.float64)

    def abs(self) -> Tensor:
        return abs(self)


def tensor(values: Any) -> Tensor:
    return np.asarray(values, np.float32).view(Tensor)


def normalized(x: Any, gamma: Any, beta: Any, eps: float, centred: bool) -> Any:
    moved = x - x.mean(-1, keepdims=True) if centred else x
    found = moved / np.sqrt((moved * moved).mean(-1, keepdims=True) + eps)
    return found * (1 if gamma is None else gamma) + (0 if beta is None else beta)


def softmax(x: Any) -> Any:
    shares = np.exp(x - x.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def _liger_rms(x: Any, w: Any, eps: float, offset: float, casting: str, row_mode: None) -> tuple[Any, ...]:
    assert (offset, casting) == (0.0, "llama")
    return normalized(x, w, None, eps, centred=False), x


def _liger_layer(x: Any, w: Any, b: Any, eps: float) -> tuple[Any, ...]:
    assert w.shape == b.shape == x.shape[-1:], "it takes both, always"
    return normalized(x, w, b, eps, centred=True), x


def _quack_into(x: Any, w: Any, out: Any, b: Any, *rest: Any) -> None:
    *without, eps, is_layernorm = rest
    assert without == [None] * 4
    out[...] = normalized(x, w, b, eps, is_layernorm)


def _quack_rms(x: Any, weight: Any = None, *, eps: float) -> tuple[Any, ...]:
    return normalized(x, weight, None, eps, centred=False), x, None


# The functions with the signatures that the two have in the versions named in `features.usual_libraries`.
FAKES: dict[str, dict[str, Callable[..., Any]]] = {
    "liger_kernel.ops.softmax": {"_softmax_forward": lambda x: (softmax(x), 1024, 4, False)},
    "liger_kernel.ops.rms_norm": {"rms_norm_forward": _liger_rms},
    "liger_kernel.ops.layer_norm": {"layer_norm_forward": _liger_layer},
    "quack.softmax": {"softmax_fwd": softmax},
    "quack.rmsnorm": {"_rmsnorm_fwd": _quack_into, "rmsnorm_fwd": _quack_rms},
}


@contextmanager
def _graph(*given: Any, **named: Any) -> Any:
    yield


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for both libraries and for what is used of torch."""
    for name, functions in FAKES.items():
        module = ModuleType(name)
        vars(module).update(functions)
        monkeypatch.setitem(sys.modules, name, module)
    for package in ("liger_kernel", "liger_kernel.ops", "quack"):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    stream = SimpleNamespace(wait_stream=lambda other: None)
    cuda = SimpleNamespace(
        Stream=lambda: stream,
        current_stream=lambda: stream,
        stream=lambda of: nullcontext(),
        synchronize=lambda: None,
        CUDAGraph=lambda: None,
        graph=_graph,
    )
    functional = SimpleNamespace(
        rms_norm=lambda x, shape, w, eps: normalized(x, w, None, eps, centred=False),
        layer_norm=lambda x, shape, w, b, eps: normalized(x, w, b, eps, centred=True),
    )
    torch = SimpleNamespace(
        cuda=cuda,
        no_grad=nullcontext,
        empty_like=np.empty_like,
        full=lambda shape, value, dtype, device: tensor(np.full(shape, value)),
        nn=SimpleNamespace(functional=functional),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(Tensor, "softmax", lambda x, axis: softmax(x), raising=False)


def arguments(form: str) -> tuple[Any, ...]:
    rng, norm = np.random.default_rng(3), NORMS[form]
    vectors = (tensor(rng.normal(1, 1, 40)) for _ in range(norm.weights))
    return tensor(rng.normal(1, 2, (9, 40))), *vectors, *(EPS for _ in norm.parameters)


def test_every_row_normalization_has_a_call_of_each_library() -> None:
    assert set(LIBRARIES) == {LIGER, QUACK}
    assert len({LIGER, QUACK, EAGER, COMPILED, CUPY, *FLOORS}) == 7
    for library in LIBRARIES.values():
        assert set(library.calls) == set(NORMS) <= set(TORCH)


@pytest.mark.parametrize("form", NORMS)
@pytest.mark.usefixtures("there")
def test_each_call_hands_its_operands_over_as_the_library_takes_them(form: str) -> None:
    given = arguments(form)
    expected = TORCH[form](*given)
    for library in LIBRARIES.values():
        assert np.allclose(library.calls[form](*given), expected, rtol=1e-5, atol=1e-6)
    assert absent() == {}
    assert set(library_peers(()).calls(form, ("a",), given)) == {LIGER, QUACK}


def test_a_library_that_is_not_there_is_told_with_its_reason() -> None:
    missing = {"nowhere": Library(("rowsmith_has_no_such_peer",), (), {}), "here": Library(("json",), (), {})}
    ((name, reason),) = absent(missing).items()
    assert name == "nowhere"
    assert reason.startswith("rowsmith_has_no_such_peer cannot be imported (ModuleNotFoundError")
    assert library_peers(LIBRARIES).here == {}


def refusing(x: Any) -> Any:
    raise RuntimeError("n exceeds the block")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (refusing, "RuntimeError: n exceeds the block"),
        (lambda x: softmax(x) * 1.5, "wrong: results are 0.5 of the largest"),
        (lambda x: softmax(x) * np.nan, "wrong: results are nan of the largest"),
        (lambda x: np.where(np.arange(9)[:, None] == 8, 0, softmax(x)).view(Tensor), "wrong: results are 1 of the lar"),
    ],
)
@pytest.mark.usefixtures("there")
def test_a_failure_is_kept_as_text(call: Any, message: str) -> None:
    form = next(iter(NORMS))
    found = tried(call, TORCH[form], arguments(form))
    assert isinstance(found, str)
    assert found.startswith(message)


@pytest.mark.usefixtures("there")
def test_a_geometry_is_tried_once() -> None:
    form, seen = next(iter(NORMS)), []
    peers = LibraryPeers({"counts": Library((), (), {form: lambda x: (seen.append(1), softmax(x))[1]})})
    first = peers.calls(form, ("a",), arguments(form))
    again = peers.calls(form, ("a",), arguments(form))
    assert again is first
    assert callable(first["counts"])
    assert len(seen) == 2, "one call and one capture"
    assert peers.calls("prefix.sum", ("b",), ()) == {}, "a form that it has nothing for"


@pytest.mark.parametrize("name", [LIGER, QUACK])
def test_a_library_is_a_peer_like_any_other(name: str, tmp_path: Any) -> None:
    """The fastest peer of a round is the best one, whatever it is called; the page names it where a pick is behind."""
    contents = planted_contents()
    records = list(contents.validation_records)
    compiled = records[0].by_name[COMPILED]
    fast = tuple(round(sample / 100) for sample in compiled.samples_ns)
    records[0] = evolve(
        records[0], measurements=(*records[0].measurements, evolve(compiled, name=name, samples_ns=fast))
    )
    validation = judge(digest(contents.profile), records, contents.selections)
    assert validation["outcomes"][0]["best_peer"] == name
    changed = evolve(contents, validation=validation, validation_records=tuple(records))
    text = page(read(pack("planted", changed)))
    assert f"of {name}" in text
