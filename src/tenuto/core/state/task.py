"""What is known of a session's running task: how the last one ended, where it can be held, what runs beside it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from tenuto.protocol.entry import ExtensionEntry, ShellEntry
    from tenuto.protocol.event import Outcome
    from tenuto.session.session import Session


class Boundary:
    """Where a session's running task can be held, to be stopped there or to go on."""

    def __init__(self) -> None:
        self._reached: asyncio.Event | None = None
        self._released = asyncio.Event()

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the task to come here, or holds it."""
        return self._reached is not None

    async def wait(self, finished: asyncio.Event) -> None:
        """Wait until the task is held here, or has `finished` without coming. Whoever waited has to `release()` it."""
        self._released.clear()
        reached = self._reached = asyncio.Event()
        waits = [asyncio.ensure_future(reached.wait()), asyncio.ensure_future(finished.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def release(self) -> None:
        """Let the task go on, if it is held."""
        self._reached = None
        self._released.set()

    async def cross(self) -> None:
        """Called by the task: go on, or be held where somebody waits for that."""
        if self._reached is not None:
            self._reached.set()
            await self._released.wait()


class FinishedCommand(Struct, frozen=True):
    """What came of a command of the user, and what is to be called when it is in the history."""

    entry: ShellEntry
    forget: Callable[[], None]


class SideCommand(Struct, eq=False):
    """A command of the user that runs beside the task. What came of it, and of those before, waits for a boundary."""

    submission_id: str = ""
    task: asyncio.Task[None] | None = None
    finished: list[FinishedCommand] = field(default_factory=list[FinishedCommand])

    @property
    def is_running(self) -> bool:
        """Whether the command has not ended."""
        return self.task is not None and not self.task.done()

    async def wait(self) -> None:
        """Wait for its end, as the session's task; an interrupt ends the command."""
        try:
            if self.task is not None:
                await asyncio.shield(self.task)
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the command; what it has written is among the finished ones then."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task

    def store(self, session: Session) -> bool:
        """Put what came of commands into the history, and say whether there was anything."""
        finished = self.finished.copy()
        self.finished.clear()
        for command in finished:
            session.append(command.entry)
            command.forget()
        return bool(finished)


class TaskState(Struct, eq=False):
    """Whether the session works, how the last task ended, and what holds the next one."""

    settled: bool = True
    turns: int = 0
    """Calls of the model since the session was opened."""
    turns_below: int = 0
    """Those of sub-agents of it, of theirs too."""
    spent_before: float | None = None
    """What the session had cost before the first of them, in US dollars; `None` before that."""
    submissions: int = 0
    """How many submissions are on their way in; the session is not settled while there are any."""
    queue_waiting: bool = False
    """After an interrupt or a resume the queue waits for the user (DESIGN section 2)."""
    last_outcome: Outcome = "completed"
    last_error: str = ""
    jobs_until: float | None = None
    """Until when a run that ends by itself waits for its background jobs (the loop's time); `None`: it does not yet."""
    told_later: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """What hooks say of commands that ran for a prompt: told at the next boundary."""
    refused: int = 0
    """How many calls needed an approval that nobody could give, since the session was idle."""
    entries: list[ExtensionEntry] = field(default_factory=list["ExtensionEntry"])
    """What extensions add to the view at the next boundary."""
    questions: int = 0
    """How many questions extensions have asked the model since the user's last prompt."""
    added: int = 0
    """How many texts extensions have added since then."""
    asking: set[asyncio.Future[str]] = field(default_factory=set["asyncio.Future[str]"])
    """The questions of extensions that are being answered."""
    boundary: Boundary = field(default_factory=Boundary)
    """Where the running task can be held."""
    side_command: SideCommand = field(default_factory=SideCommand)

    def end_questions(self) -> None:
        """End what extensions ask the model: the turn that they do it in is over."""
        for asking in tuple(self.asking):
            asking.cancel()
