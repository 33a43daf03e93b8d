"""Liger and Quack, where they can be imported, run every row normalization as torch does and inside a graph."""

from __future__ import annotations

import pytest

from calibration.peers_libraries import absent, tried
from features.usual import PARAMETERS, TORCH
from features.usual_libraries import LIBRARIES
from kernels.norms import NORMS
from tests.gpu.tensors import DTYPES

torch = pytest.importorskip("torch")
ABSENT = absent()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", NORMS)
@pytest.mark.parametrize("name", LIBRARIES)
def test_results_are_torchs(name: str, form: str, dtype: str) -> None:
    if name in ABSENT:
        pytest.skip(ABSENT[name])
    norm, like = NORMS[form], {"dtype": getattr(torch, dtype), "device": "cuda"}
    for rows, width in ((17, 1024), (128, 8192), (5, 1000)):
        x = torch.randn(rows, width, **like) + 1
        vectors = [torch.randn(width, **like) for _ in range(norm.weights)]
        arguments = (x, *vectors, *(PARAMETERS[name] for name in norm.parameters))
        found = tried(LIBRARIES[name].calls[form], TORCH[form], arguments)
        assert not isinstance(found, str), f"{rows} x {width}: {found}"
