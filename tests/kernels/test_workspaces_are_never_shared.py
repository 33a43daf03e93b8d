"""A stream, and each stream of each capture, has a workspace of its own for each size; captures never allocate."""

from __future__ import annotations

import sys
import threading
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels import workspace
from kernels.errors import LaunchError
from kernels.launch import launch_shape
from kernels.recipes import RECIPES
from kernels.templates import TEMPLATES
from kernels.workspace import SPARE, SPARE_ANNOUNCED, Workspaces, workspaces

SIZES = (24, 72, 256, 8 * 8193)
FIRST_ADDRESS = 2**20
USE = "scan_split.cu"


class Device:
    """Stands in for the GPU: hands out addresses, and knows which streams are being captured, by which capture."""

    def __init__(self) -> None:
        self.next = FIRST_ADDRESS
        self.slabs: list[tuple[int, int]] = []
        self.captures: dict[int, int] = {}

    def zeros(self, device: int, count: int) -> tuple[Any, int]:
        assert device == 0
        address, self.next = self.next, self.next + count
        self.slabs.append((address, count))
        return object(), address

    def user(self, stream: int) -> tuple[Any, bool]:
        if stream in self.captures:
            return workspace._Capture((self.captures[stream], stream)), True
        return stream, False


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    return stand_in(monkeypatch)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(workspace, "_zeros", made.zeros)
    monkeypatch.setattr(workspace, "_user", made.user)
    return made


def given_of(held: Workspaces, stream: int, size: int) -> int:
    address = held.of(stream, USE, size)
    assert address is not None
    return address


def test_a_stream_keeps_its_workspace_and_shares_it_with_no_other(device: Device) -> None:
    held = Workspaces(0)
    first = {(stream, size): given_of(held, stream, size) for stream in range(40) for size in SIZES}
    assert {(stream, size): held.of(stream, USE, size) for stream, size in first} == first
    spans = sorted((address, address + size) for (_, size), address in first.items())
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    assert all(any(at <= start and end <= at + count for at, count in device.slabs) for start, end in spans)


def test_workspaces_lie_on_their_own_cache_lines(device: Device) -> None:
    """256 bytes apart and so aligned: a counter is a 32-bit word, a sum a 64-bit one."""
    held = Workspaces(0)
    for stream in range(SPARE_ANNOUNCED):
        for size in SIZES:
            assert given_of(held, stream, size) % 256 == FIRST_ADDRESS % 256 == 0


def test_each_capture_of_a_stream_has_another_workspace_than_the_stream(device: Device) -> None:
    held = Workspaces(0)
    held.reserve(USE, 24)
    found = [given_of(held, 7, 24)]
    for capture in (1, 2, 3):
        device.captures = {7: capture}
        found += [given_of(held, 7, 24)] * 2
        assert held.of(7, USE, 24) == found[-1]
    device.captures = {}
    assert held.of(7, USE, 24) == found[0]
    assert len(set(found)) == 4


def test_each_stream_of_one_capture_has_its_own(device: Device) -> None:
    """They may run at once."""
    held = Workspaces(0)
    held.reserve(USE, 24)
    device.captures = {7: 1, 8: 1}
    assert held.of(7, USE, 24) != held.of(8, USE, 24)


def test_a_capture_allocates_nothing_and_gets_none_where_none_is_ready(device: Device) -> None:
    held = Workspaces(0)
    device.captures = {7: 1}
    assert held.of(7, USE, 24) is None
    assert device.slabs == []
    held.reserve(USE, 24)
    assert len(device.slabs) == 1
    assert held.of(7, USE, 24) is not None
    assert held.of(7, USE, 72) is None, "what is ready is of another size"
    for capture in range(2, SPARE_ANNOUNCED + 1):
        device.captures = {7: capture}
        assert held.of(7, USE, 24) is not None
    device.captures = {7: SPARE_ANNOUNCED + 1}
    assert held.of(7, USE, 24) is None
    device.captures = {7: 1}
    assert held.of(7, USE, 24) is not None, "it has one already"
    assert len(device.slabs) == 1


@pytest.mark.parametrize("stream", [7, 9])
def test_a_launch_outside_a_capture_makes_room_for_later_ones(device: Device, stream: int) -> None:
    """On a stream that has a workspace already, too."""
    held = Workspaces(0)
    assert held.of(7, USE, 24) is not None
    for turn in range(10):
        for capture in range(SPARE):
            device.captures = {7: 100 * turn + capture}
            assert held.of(7, USE, 24) is not None
        device.captures = {7: 100 * turn + SPARE}
        assert held.of(7, USE, 24) is None
        device.captures = {}
        assert held.of(stream, USE, 24) is not None


def test_streams_alone_take_little(device: Device) -> None:
    """Ragged batches ask for ever new sizes; most are never captured."""
    held = Workspaces(0)
    for size in range(24, 2400, 8):
        assert held.of(7, USE, size) is not None
    assert sum(count for _, count in device.slabs) < (SPARE + 1) * (2400 // 8) * (2400 / 2 + 256)


def test_past_the_limit_a_launch_gets_none_and_what_is_there_is_kept(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "LIMIT_BYTES", 20 * 256)
    held = Workspaces(0)
    held.reserve(USE, 24)
    own = given_of(held, 7, 24)
    taken = [held.of(stream, USE, 72) for stream in range(8)]
    assert taken[0] is not None
    assert taken[-1] is None
    assert sum(count for _, count in device.slabs) == 20 * 256
    assert held.of(7, USE, 24) == own


def test_all_threads_find_the_same_workspaces_of_a_device() -> None:
    assert workspaces(3) is workspaces(3)
    assert workspaces(3) is not workspaces(4)


def test_reserving_again_allocates_only_what_was_used(device: Device) -> None:
    held = Workspaces(0)
    for _ in range(3):
        held.reserve(USE, 24)
    assert len(device.slabs) == 1
    assert held.of(1, USE, 24) is not None
    for _ in range(3):
        held.reserve(USE, 24)
    assert len(device.slabs) == 2


def test_what_captures_used_is_used_again_and_what_streams_use_is_kept(device: Device) -> None:
    held = Workspaces(0)
    own = given_of(held, 7, 24)
    held.reserve(USE, 24)
    device.captures = {7: 1}
    captured = given_of(held, 7, 24)
    held.release_captures()
    device.captures = {}
    assert held.of(7, USE, 24) == own
    again = set()
    for capture in range(2, 2 + SPARE_ANNOUNCED - 1):
        device.captures = {7: capture}
        again.add(given_of(held, 7, 24))
    assert captured in again
    assert own not in again
    assert len(again) == SPARE_ANNOUNCED - 1


# What may happen: a launch on one of four streams, captured by one of three captures (0: none), or a release.
EVENTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from(SIZES)) | st.just("release") | st.just("reserve"),
    max_size=120,
)


@given(EVENTS)
def test_no_two_users_ever_hold_one_address(events: list[Any]) -> None:
    """Whatever the order of launches, captures and releases."""
    with pytest.MonkeyPatch.context() as patch:
        device, held = stand_in(patch), Workspaces(0)
        used: dict[tuple[Any, ...], int] = {}
        for event in events:
            if event == "release":
                held.release_captures()
                used = {user: address for user, address in used.items() if user[1] == 0}
            elif event == "reserve":
                held.reserve(USE, SIZES[0])
            else:
                stream, capture, size = event
                device.captures = {stream: capture} if capture else {}
                slabs, address = len(device.slabs), held.of(stream, USE, size)
                assert capture == 0 or len(device.slabs) == slabs
                assert capture != 0 or address is not None
                if address is not None:
                    assert used.setdefault(event, address) == address
        assert len(set(used.values())) == len(used)


def test_threads_that_ask_at_once_get_different_ones(device: Device) -> None:
    held, found = Workspaces(0), {}
    ready = threading.Barrier(8)

    def ask(first: int) -> None:
        ready.wait()
        for stream in range(first, 400, 8):
            found[stream] = held.of(stream, USE, 24)

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found.values())) == len(found) == 400


def test_a_launch_has_a_workspace_where_its_template_says_so_and_nowhere_else() -> None:
    """The kernel's arguments and the launch's follow one table."""
    for recipe in RECIPES:
        shape = launch_shape(recipe, 3, 50_000, 132)
        assert bool(shape.workspace_bytes) is TEMPLATES[recipe.template].workspace


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the driver answers about a stream."""
    ok, bad = Code(0), Code(400)
    active = object()
    said: dict[str, Any] = {"info": (ok, object(), 0), "id": (ok, 41), "ok": ok, "bad": bad, "active": active}
    status = SimpleNamespace(CU_STREAM_CAPTURE_STATUS_ACTIVE=active)
    driver = SimpleNamespace(
        CUstream=int,
        CUstreamCaptureStatus=status,
        cuStreamGetCaptureInfo=lambda stream: said["info"],
        cuStreamGetId=lambda stream: said["id"],
    )
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=driver))
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    return said


class Code(int):
    """An answer's error code with its name."""

    @property
    def name(self) -> str:
        return "CUDA_SUCCESS" if self == 0 else "CUDA_ERROR_INVALID_HANDLE"


def test_a_stream_is_told_by_its_number_and_a_capture_by_its_own(answers: dict[str, Any]) -> None:
    """A destroyed stream's pointer may come back; its number does not. Asking for that in a capture would end it."""
    assert workspace._user(5) == (41, False)
    answers["info"] = (answers["ok"], answers["active"], 12, None, None)
    del answers["id"]
    user, captured = workspace._user(5)
    assert captured
    assert isinstance(user, workspace._Capture)
    assert user == (12, 5)


def test_a_stream_that_cannot_be_asked_is_an_error_that_names_why(answers: dict[str, Any]) -> None:
    for changed in ({"id": (answers["bad"], None)}, {"info": (answers["bad"], None, None)}):
        before = dict(answers)
        answers.update(changed)
        with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_HANDLE"):
            workspace._user(5)
        answers.update(before)


def test_uses_of_one_size_have_workspaces_of_their_own(device: Device) -> None:
    """What one template leaves in a workspace means nothing to another."""
    held = Workspaces(0)
    assert held.of(7, USE, 24) != held.of(7, "reduce_split.cu", 24)
