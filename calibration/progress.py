"""Progress of long work: a bar on a terminal, plain lines elsewhere, always with counts and time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
LINE_EVERY_SECONDS = 10.0


def say(line: str) -> None:
    """Print one line for whoever waits."""
    print(line, file=sys.stderr, flush=True)


def tracked(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Yield the items and report how many are done and how long the rest will take."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import track

        yield from track(items, description=what, total=total, console=Console(stderr=True))
        return
    started = last = time.monotonic()
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= LINE_EVERY_SECONDS or done == total:
            left = (now - started) / done * (total - done)
            say(f"{what}: {done} of {total}, {left:.0f} s left")
            last = now
    if not done:
        say(f"{what}: nothing left to do")
