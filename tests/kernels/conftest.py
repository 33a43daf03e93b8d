"""What the tests of compiling share: caches that forget, and a kernel that compiles in no time."""

from collections.abc import Callable, Iterator

import pytest

from kernels import source
from kernels.recipe import Recipe
from kernels.toolchain import toolchain

Edit = Callable[[str, Callable[[bytes], bytes]], None]


@pytest.fixture
def empty_recipe() -> Recipe:
    """A recipe whose kernel does nothing; it reaches no header, so it compiles in a twentieth of a second."""
    return Recipe(
        id="test.empty",
        form="none",
        role="recipe",
        template="empty.cu",
        threads=1,
        items=1,
        rows_per_cta=1,
        proofs=(),
        numerics="bit_equal",
    )


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Edit]:
    """Return how to change a device file for the rest of the test, as if it had been edited on disk."""
    read = source.device_file
    changes: dict[str, Callable[[bytes], bytes]] = {}

    def edited(name: str) -> bytes:
        return changes.get(name, bytes)(read(name))

    def apply(name: str, change: Callable[[bytes], bytes]) -> None:
        changes[name] = change
        source.identity.cache_clear()

    monkeypatch.setattr(source, "device_file", edited)
    yield apply
    source.identity.cache_clear()


@pytest.fixture
def forgetful_toolchain() -> Iterator[None]:
    """Let the toolchain be looked for again, in the test and after it."""
    toolchain.cache_clear()
    yield
    toolchain.cache_clear()
