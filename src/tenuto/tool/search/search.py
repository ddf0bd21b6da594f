"""What the two ways of searching share: the question, the answers, and how a search is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

T = TypeVar("T")
SEARCH_SECONDS = 60.0
"""A search that takes longer ends with what it has found."""
_STOP_SECONDS = 3.0


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to search: `base` is a directory, `only` a file name in it (empty: everything below)."""

    pattern: str
    base: Path
    only: str = ""
    glob: str = ""
    context: int = 0
    ignore_case: bool = False
    literal: bool = False


class Found(msgspec.Struct, frozen=True):
    """A line: path relative to the base, number, text, and for a match the place of its beginning in characters."""

    path: str
    number: int
    text: str
    column: int | None


class Source(Protocol):
    """A way to search. All methods run in a thread and look at `stop` often."""

    def lines(self, query: Query, stop: Stop) -> Iterator[Found | None]:
        """Yield matches with their context in path order; `None` stands for a gap between context blocks."""
        ...

    def counts(self, query: Query, stop: Stop) -> Iterator[tuple[str, int]]:
        """Yield each file with its number of matching lines."""
        ...

    def files(self, base: Path, stop: Stop) -> Iterator[str]:
        """Yield all files that are not ignored, relative to the base."""
        ...


class Stop:
    """Ends a search from outside: by a flag, and by killing the program that it waits for."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._deadline = time.monotonic() + SEARCH_SECONDS
        self.is_late = False

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Kill `process` when stopped."""
        self._process = process
        if self._event.is_set():
            self._kill()

    def set(self) -> None:
        """Stop."""
        self._event.set()
        self._kill()

    def is_due(self) -> bool:
        """Whether the search has to end: stopped, or out of time."""
        if time.monotonic() > self._deadline:
            self.is_late = True
        return self.is_late or self._event.is_set()

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()


async def run_stoppable(work: Callable[[Stop], T]) -> T:
    """Run `work` in a thread; a cancellation stops it and waits until it is gone."""
    stop = Stop()
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    late = asyncio.get_running_loop().call_later(SEARCH_SECONDS + 1, stop.set)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({task}, timeout=_STOP_SECONDS)
        raise
    finally:
        late.cancel()
