"""What came of the tasks: one line a finished task, in a file that only grows. A second run goes on behind it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct, field

from tenuto.private_files import open_private, write_all
from tenuto.text.writable import to_json

Outcome = Literal[
    "done",
    "check_failed",
    "refused",
    "limit_reached",
    "cut_off",
    "declined",
    "failed",
    "crashed",
    "setup_failed",
    "invalid",
]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""`crashed`: the agent ended without a result. `invalid`: the command line of the task was refused."""


class Result(Struct, frozen=True):
    """What came of a task. Names that a headless run's result has mean the same here; sums are over all attempts."""

    id: str
    task: str
    """The digest of the task: a task that has changed since is another one."""
    outcome: Outcome
    attempts: int = 1
    error: str | None = None
    exit_code: int | None = None
    """Of the last agent; `None` where it gave none."""
    session_id: str = ""
    num_turns: int = 0
    duration_ms: int = 0
    total_cost_usd: float | None = 0.0
    usage: dict[str, Any] = field(default_factory=dict[str, Any])
    permission_denials: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    changed_files: list[str] = field(default_factory=list[str])
    result: str = ""
    structured_output: Any = None
    check_output: str = ""
    """The end of what the check printed."""
    patch: str = ""
    """The file with all that was changed, empty where nothing was or no worktree was made."""
    commit: str = ""
    """What the agent's worktree was on at the end, where the agent has committed."""
    worktree: str = ""
    """The worktree, where it was kept."""


class ResultsError(Exception):
    """The results cannot be kept; the message says why."""


class ResultsFile:
    """The results on disk. One process at a time has the file; a line that a crash left half written is taken away."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it. Raises `ResultsError` and `OSError`."""
        is_new = not path.exists()
        self.path = path
        self._descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise ResultsError(f"another tenuto batch writes {path}") from None
        if is_new:
            _sync_folder(path.parent)
        self.latest, self.faults = self._read()

    def append(self, result: Result) -> None:
        """Write one line, and be sure that it is on the disk. Raises `OSError`; then nothing of the line stays."""
        size = os.fstat(self._descriptor).st_size
        try:
            write_all(self._descriptor, to_json(result) + b"\n")
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, size)
            raise
        self.latest[result.id] = result

    def close(self) -> None:
        """Let another process have the file."""
        os.close(self._descriptor)

    def _read(self) -> tuple[dict[str, Result], list[str]]:
        """Return the last result of each task, and a line on each line that cannot be read."""
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            os.ftruncate(self._descriptor, len(whole))
        latest, faults = read_results(whole)
        return latest, [f"{self.path.name}, {fault}; its task runs again" for fault in faults]


def read_results(data: bytes) -> tuple[dict[str, Result], list[str]]:
    """Return the last result of each task of whole lines, and what is wrong with the others. Pure."""
    latest: dict[str, Result] = {}
    faults: list[str] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            result = msgspec.json.decode(line, type=Result)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            faults.append(f"line {number}: {error}")
        else:
            latest[result.id] = result
    return latest, faults


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
