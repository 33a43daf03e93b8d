"""What the GPU tests share: every kernel compiled beforehand in processes, loaded once, and a wait after each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from calibration.gpu import Session
    from kernels.target import Target
    from policy.profile import Profile
    from rowsmith.live import Dispatcher
    from tests.gpu.tensors import Kernels


def pytest_configure(config: pytest.Config) -> None:
    """Know the mark of pytest-timeout, which a GPU machine may lack."""
    config.addinivalue_line("markers", "timeout(seconds): what a test may take, where pytest-timeout is there")


@pytest.fixture(scope="session")
def device() -> int:
    """The current device, with a context."""
    from kernels import driver

    return driver.current_device()


@pytest.fixture(scope="session", autouse=True)
def cubins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cubin cache of the session's own, filled by as many processes as there are CPUs."""
    from kernels import driver
    from kernels.compile_all import compile_all

    folder = tmp_path_factory.mktemp("cubins")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROWSMITH_CACHE_DIR", str(folder))
        outcomes = compile_all((driver.architecture(driver.current_device()),), folder=folder)
        assert [outcome.failure for outcome in outcomes if outcome.failure is not None] == []
        yield folder


@pytest.fixture(scope="session")
def kernels(cubins: Path, device: int) -> Kernels:
    """Every recipe for every dtype, loaded."""
    from kernels import driver
    from kernels.recipes import RECIPES

    return {(row.id, dtype): driver.load(row, dtype, device) for row in RECIPES for dtype in row.dtypes}


@pytest.fixture(scope="session")
def target(device: int) -> Target:
    """The live target."""
    from kernels import driver

    return driver.live_target(device)


@pytest.fixture(scope="session")
def sm_count(target: Target) -> int:
    return target.sm_count


@pytest.fixture
def session(device: int) -> Session:
    """A stream of the test's own that graphs are captured and replayed on."""
    from calibration.gpu import Session

    return Session()


@pytest.fixture(autouse=True)
def settled(cubins: Path) -> Iterator[None]:
    """Wait for the device after every test, so that an asynchronous fault is told by the test that made it."""
    import cupy

    yield
    cupy.cuda.Device().synchronize()


@pytest.fixture(scope="session")
def profile(kernels: Kernels, target: Target) -> Profile:
    """A made-up profile for this GPU, with the receipts of its own driver: it admits recipes where rows are long."""
    from policy.profile import profile_from_document
    from tests.made import FAMILIES, made_document

    receipts = [kernel.receipt.facts() for kernel in kernels.values()]
    return profile_from_document(
        made_document(
            FAMILIES, target={**target.facts(), "label": target.label}, receipts=receipts, name="made on this GPU"
        )
    )


@pytest.fixture
def dispatch(device: int, target: Target, profile: Profile, monkeypatch: pytest.MonkeyPatch) -> Dispatcher:
    """A fresh dispatcher with the made-up profile, in force for `rowsmith.scan` and `rowsmith.prepare`."""
    from rowsmith import api
    from rowsmith.live import Dispatcher

    made = Dispatcher(device, target, profile)
    monkeypatch.setattr(api, "dispatcher", lambda number: made)
    return made


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch, where it sees the device."""
    found = pytest.importorskip("torch")
    if not found.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return found
