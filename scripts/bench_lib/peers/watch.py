"""A program and all that it starts: the most memory that they held together, and their end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Collection
from typing import Self

from scripts.bench_lib.process import family, resident

INTERVAL = 0.05
_SUBREAPER = 36


class Watcher:
    """Looks every 50 ms at the resident memory of a process and its descendants; `peak` is in MB.

    Pages that several of them share count for each. A descendant counts from the second look on: until it has become
    another program, a new process is its parent once more, and would double it.
    """

    def __init__(self) -> None:
        self.peak = 0.0
        self._pid = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def start(self, pid: int) -> None:
        """Begin with this process."""
        self._pid = pid
        self._thread.start()

    def stop(self) -> None:
        """End the looking."""
        self._ended.set()
        if self._pid:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _look(self) -> None:
        known = {self._pid}
        while not self._ended.wait(INTERVAL):
            present = family(self._pid)
            self.peak = max(self.peak, sum(resident(pid) for pid in present if pid in known))
            known = {self._pid, *present}


def adopt_orphans() -> None:
    """Make this process the parent of what its descendants leave behind (Linux), so that `sweep` finds it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def sweep(keep: Collection[int]) -> list[int]:
    """End all descendants of this process but those of `keep` and theirs; return which they were."""
    kept = {one for pid in keep for one in family(pid)}
    left = [pid for pid in family(os.getpid())[1:] if pid not in kept]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in left:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    return left
