"""What came of a try at a task, and of the task: the line that is kept of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct, field

from tenuto.engine.record import Record

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


class Attempt(Struct, frozen=True):
    """What came of one try. `answer` has names of a headless run's result, and is empty where there was none."""

    outcome: Outcome
    error: str = ""
    answer: dict[str, Any] = field(default_factory=dict[str, Any])
    check_output: str = ""
    seconds: float = 0.0
    patch: bytes = b""
    changed_files: tuple[str, ...] | None = None
    """As git says; `None` where there is no worktree."""
    commit: str = ""
    worktree: str = ""
    trial: str = ""
    reward: float | None = None

    @property
    def cost(self) -> float | None:
        """US dollars, `None` where the price is not known."""
        return self.answer.get("total_cost_usd") if self.answer else 0.0


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
    trial: str = ""
    """The folder of a Harbor trial: logs, trajectory, what the verifier said."""
    reward: float | None = None
    """What the verifier of a Harbor task gave; 1 is all of it."""


Results = Record[str, Result]
"""The results of a file's tasks on the disk."""


def open_results(path: Path) -> Results:
    """Open the results, or begin them. Raises `RecordTakenError` and `OSError`."""
    return Record(path, Result, lambda result: result.id)
