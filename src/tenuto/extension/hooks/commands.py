"""The hook commands of an open session: read once, run side by side where they match, their failures told once.

Nothing that a command does raises out of here. One that fails is named to the user, and everything goes on as if it
had not been there; only where its file says so does it count as one that blocks.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from tenuto.config.consent import Verdict
from tenuto.config.project import HookFile
from tenuto.extension.hooks.answers import CAN_BLOCK, Finished, Heard, HookAnswer, HookFault, read_answer
from tenuto.extension.hooks.files import LONGEST, EventName, HookCommand, ReadHooks, read_hook_files
from tenuto.extension.hooks.matching import holds, matches
from tenuto.text.writable import to_json

Run = Callable[[HookCommand, bytes, float], Awaitable[Finished]]
"""Runs a command with this on its standard input, for so many seconds at most."""
Judge = Callable[[Sequence[HookCommand]], Mapping[HookCommand, Verdict]]
"""Says what the user decided about commands as they are now: only those that are `trusted` run. For any thread."""
Watch = Callable[[HookCommand], AbstractContextManager[None]]
"""Tells the user that a command runs, as long as that takes."""
CHANGED = "has changed since you trusted it"
CLOSE_PATIENCE = 2.0
"""Seconds that the session's end waits for hooks whose answers nobody waits for."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of a hook when it was asked last; `when` is seconds since the epoch."""

    text: str
    when: float
    is_fault: bool = False


class HookCommands:
    """Those of one session. Its methods are for the event loop that it was made on.

    `read` is what stands in the files; `commands` are those that may run, `verdicts` say so of each.
    """

    def __init__(self, files: Sequence[HookFile], run: Run, judge: Judge) -> None:
        self._files = tuple(files)
        self._run = run
        self._judge = judge
        self._watch: Watch = lambda _command: nullcontext()
        self._report: Callable[[str], None] = lambda _text: None
        self._told: set[str | HookCommand] = set()
        self._owed: list[asyncio.Task[Heard | None]] = []
        self._beside: set[asyncio.Task[Any]] = set()
        self.read = ReadHooks()
        self.commands: list[HookCommand] = []
        self.verdicts: Mapping[HookCommand, Verdict] = {}
        self._lapsed: set[HookCommand] = set()
        self.outcomes: dict[HookCommand, Outcome] = {}
        self._reading = asyncio.create_task(self._read(), name="hook files")

    async def ready(self) -> None:
        """Wait until the files are read."""
        await asyncio.shield(self._reading)

    async def reload(self, files: Sequence[HookFile]) -> None:
        """Read these files as they are now, in the place of those before."""
        self._files = tuple(files)
        self._told.clear()
        self.outcomes.clear()
        await self.ready()
        await self._read()

    def for_sub_agent(self) -> HookCommands:
        """Return the same commands for a sub-agent's session, which hears of its own compactions."""
        made = copy.copy(self)
        made._owed = []
        return made

    async def judge(self) -> list[HookCommand]:
        """Look again which commands may run; return those that could not before.

        One that runs no longer, because it or a program of it has changed, is told.
        """
        before = set(self.commands)
        self.verdicts = await asyncio.to_thread(self._judge, self.read.commands)
        self.commands = [command for command in self.read.commands if self.verdicts[command] == "trusted"]
        known = before | self._lapsed
        self._lapsed = {one for one in self.read.commands if one in known and self.verdicts[one] == "changed"}
        for command in self._lapsed:
            if not command.blocks_on_failure:
                self.report(f"The {command.name} {CHANGED} and is not run; /trust shows it")
        return [command for command in self.commands if command not in before]

    async def ask(
        self,
        event: EventName,
        details: Mapping[str, Any],
        *,
        names: tuple[str, ...] = (),
        longest: float | None = None,
        among: Sequence[HookCommand] | None = None,
    ) -> Heard:
        """Have every command that matches one of these names answer, side by side, and return what they say.

        `details` go to their standard input. `longest` is the seconds that each has at most. `among`: only these.
        """
        await self.ready()
        found = [command for command in self.read.commands if self._fits(command, event, details, names)]
        if any(command.file.root is not None for command in found):
            await self.judge()
        guards = [command for command in found if command in self._lapsed and command.blocks_on_failure]
        failed = [(guard, answer) for guard in guards if (answer := self._note_fault(guard, f"it {CHANGED}; /trust"))]
        found = [command for command in found if command in self.commands and (among is None or command in among)]
        given = to_json(details)
        for command in found:
            if not command.waits:
                self.beside(self._ask(command, given, longest))
        waited = [command for command in found if command.waits]
        answers = await asyncio.gather(*(self._ask(command, given, longest) for command in waited))
        heard = [(one, answer) for one, answer in zip(waited, answers, strict=True) if answer is not None]
        return Heard((*failed, *heard))

    def listens(self, event: EventName) -> bool:
        """Say whether anybody may have to be asked: also while the files are not read yet."""
        return not self._reading.done() or any(command.event == event for command in self.read.commands)

    def beside(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something beside everything else, until the session ends."""
        task = asyncio.create_task(work, name="hook")
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    def owe(self, asking: Coroutine[Any, Any, Heard | None]) -> None:
        """Ask something beside the work whose answers have to be heard before the next request."""
        self._owed.append(self.beside(asking))

    @property
    def is_owing(self) -> bool:
        """Whether there is something to be heard."""
        return bool(self._owed)

    async def take_owed(self) -> list[Heard]:
        """Wait for what is owed and return it; one that a cancelled wait leaves is owed on."""
        if self._owed:
            await asyncio.wait(self._owed)
        owed, self._owed = self._owed, []
        heard = [task.result() for task in owed if not task.cancelled() and task.exception() is None]
        return [one for one in heard if one is not None]

    def report_with(self, report: Callable[[str], None], watch: Watch) -> None:
        """Say who tells the user of faults, and of commands that run, from now on."""
        self._report, self._watch = report, watch

    async def close(self) -> None:
        """Wait a moment for what runs beside, then end it with everything that it started."""
        if self._beside:
            _, late = await asyncio.wait(tuple(self._beside), timeout=CLOSE_PATIENCE)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        self._reading.cancel()

    def report(self, text: str, of: HookCommand | None = None) -> None:
        """Tell the user, once; of a command only its first fault, because the words of the next may differ."""
        topic = of or text
        if topic not in self._told:
            self._told.add(topic)
            self._report(text)

    async def _read(self) -> None:
        self.read = await asyncio.to_thread(read_hook_files, self._files)
        await self.judge()
        for problem in self.read.problems:
            self.report(problem)

    def _fits(self, command: HookCommand, event: EventName, details: Mapping[str, Any], names: tuple[str, ...]) -> bool:
        if command.event != event or not matches(command.matcher, names):
            return False
        return not command.condition or (
            "tool_input" in details and holds(command.condition, names[0], details["tool_input"])
        )

    async def _ask(self, command: HookCommand, given: bytes, longest: float | None) -> HookAnswer | None:
        """Return what a command says; `None`, with the fault told, for one that failed."""
        try:
            with self._watch(command) if command.waits else nullcontext():
                finished = await self._run(command, given, min(command.timeout, longest or LONGEST))
            answer = read_answer(command.event, finished)
        except HookFault as fault:
            return self._note_fault(command, str(fault))
        self._note(command, _describe(answer))
        return answer

    def _note_fault(self, command: HookCommand, fault: str) -> HookAnswer | None:
        blocks = command.blocks_on_failure and command.event in CAN_BLOCK
        self._note(command, fault, is_fault=True)
        ending = "" if blocks else "; everything goes on without it"
        self.report(f"The {command.name} failed: {fault}{ending}", command)
        return HookAnswer(verdict="deny", reason=f"the {command.name} failed: {fault}") if blocks else None

    def _note(self, command: HookCommand, text: str, *, is_fault: bool = False) -> None:
        self.outcomes[command] = Outcome(text, time.time(), is_fault)


def _describe(answer: HookAnswer) -> str:
    """Return in a few words what a hook said."""
    words = {"": "", "allow": "allowed", "ask": "asked for approval", "deny": "blocked"}[answer.verdict]
    parts = [
        words,
        "changed the input" if answer.changed is not None or answer.laid_over is not None else "",
        "added context" if answer.context else "",
        "asked for a compaction" if answer.focus is not None else "",
        "ended the turn" if answer.ends else "",
    ]
    return ", ".join(part for part in parts if part) or "nothing to say"
