"""Launches that are measured get random weights of their own inside guards, and the usual eps; changes are found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import calibration.measure as measuring
from calibration.buffers import Buffers, buffers, tensors
from calibration.plan import Planned
from calibration.rounds import Bench
from calibration.traffic import footprint_bytes
from features.usual import PARAMETERS
from features.workload import workload
from kernels.guard import Span, Verdict
from kernels.operands import Operands
from kernels.recipes import recipe
from tests.calibration.hosted import bench, floats_at

PLANNED = Planned("layernorm_gamma_beta", "float32", 3, 4096, {"set": "training"})
ORIGINAL = recipe("layernorm_gamma_beta.original")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return bench(monkeypatch)


def values_at(span: Span) -> Any:
    return floats_at(span.address, span.rows * span.width).reshape(span.rows, span.width)


class Layer:
    """Stands in for `Prepared`: LayerNorm on the host, of what the pointers say; `harm` names a weight to spoil."""

    chosen = SimpleNamespace(recipe=ORIGINAL)

    def __init__(self, harm: int | None = None) -> None:
        self.harm, self.given = harm, []

    def run(self, x: Span, y: Span, stream: int, given: Operands) -> Verdict:
        self.given.append(given)
        row, (gamma, beta) = values_at(x).astype(np.float64), map(values_at, given.weights)
        apart = row - row.mean(-1, keepdims=True)
        root = np.sqrt((apart**2).mean(-1, keepdims=True) + given.parameters[0])
        values_at(y)[...] = apart / root * gamma + beta
        if self.harm is not None:
            values_at(given.weights[self.harm])[0, 7] += 1e-3
        return Verdict.RECIPE


def judged(bench: Bench, used: Buffers, kernel: Layer) -> dict[str, Any]:
    work = workload(PLANNED.op, (PLANNED.rows, PLANNED.width), PLANNED.dtype)
    check, _ = measuring._check(bench, ORIGINAL, cast(Any, kernel), used, measuring._truth(bench, work, used))
    return check


def test_each_pair_has_weights_of_its_own_with_the_same_values(host: Bench) -> None:
    used = buffers(PLANNED, "cold", host.l2_bytes, seed=3)
    assert len(used.given) == len(used.pairs) == 4
    addresses = [tensor.address for call in used.calls for tensor in tensors(call)]
    assert len(set(addresses)) == 4 * (2 + 2)
    for given in used.given:
        assert given.parameters == (PARAMETERS["eps"],)
        for mine, first in zip(given.weights, used.given[0].weights, strict=True):
            assert (mine.rows, mine.width) == (1, PLANNED.width)
            assert np.array_equal(mine.body, first.body)
    gamma, beta = used.given[0].weights
    assert not np.array_equal(gamma.body, beta.body)


def test_weights_are_part_of_what_a_launch_moves(host: Bench) -> None:
    used = buffers(PLANNED, "cold", host.l2_bytes, seed=3)
    moved = footprint_bytes(PLANNED.program, PLANNED.rows, PLANNED.width)
    assert moved == sum(tensor.body.nbytes for tensor in tensors(used.calls[0])) == (2 * 3 + 2) * 4096 * 4


def test_a_program_without_operands_is_given_none(host: Bench) -> None:
    used = buffers(Planned("softmax", "float32", 3, 64, {}), "hot", host.l2_bytes, seed=3)
    assert used.given == ()
    assert used.calls == used.pairs


def test_every_launch_gets_the_operands_of_its_pair(host: Bench) -> None:
    used, kernel = buffers(PLANNED, "cold", host.l2_bytes, seed=3), Layer()
    found = judged(host, used, kernel)
    assert found["right"]
    assert found["worst_share"] < 1
    assert kernel.given == [given.operands for given in used.given]


@pytest.mark.parametrize("harm", [0, 1])
def test_a_weight_that_changed_is_found(host: Bench, harm: int) -> None:
    used = buffers(PLANNED, "hot", host.l2_bytes, seed=3)
    found = judged(host, used, Layer(harm))
    assert not found["right"]
    assert not found["guards_and_input_intact"]
