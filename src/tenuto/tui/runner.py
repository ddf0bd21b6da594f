"""Between the core and a screen: events and intents go into the machine, effects come out to where they belong.

One input at a time, in order; nothing else changes the state. A stream's deltas are joined and let through at most 15
times a second; everything else goes through at once (anchors: tui 6), and `can_wait` says whether it has to be seen so.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from tenuto.command.outcome import (
    ChangeTheme,
    Choice,
    CommandOutcome,
    EditFile,
    EditKeys,
    Leave,
    ReadOwnFiles,
    Say,
    ShowKeys,
)
from tenuto.command.registry import Command
from tenuto.guard.secrets import mask_likely, masked_copy
from tenuto.guard.subject import MCP_PREFIX
from tenuto.protocol.event import (
    AnyEvent,
    ApprovalRequestedEvent,
    ReplayFinishedEvent,
    SessionOpenedEvent,
    TaskFinishedEvent,
    ToolResultEvent,
    TrustWaitingEvent,
)
from tenuto.protocol.operation import AnyOperation, RunShellOperation
from tenuto.protocol.part import ContentPart, ImagePart, TextPart
from tenuto.tui.editor_services import Desk, Timer
from tenuto.tui.keys.key_file import OwnKeys
from tenuto.tui.machine.prompt import WHOLE_CHARACTERS
from tenuto.tui.machine.step import FOREIGN, DeltaBuffer, step
from tenuto.tui.state import intents
from tenuto.tui.state.effects import (
    Complete,
    CoreEffect,
    Effect,
    Remember,
    RunCommand,
    ScreenEffect,
    StopCommands,
    Submit,
    SubmitPrompt,
)
from tenuto.tui.state.intents import Intent
from tenuto.tui.state.state import UiState

Listener = Callable[[AnyEvent], None]


class LateRuntime:
    """What is asked for waits until `attach`; listeners hear the runtime's first event."""

    def __init__(self, home: Path, *, temporary: bool = False) -> None:
        self.home = home
        self.temporary = temporary
        self._runtime: RuntimePort | None = None
        self._opened = asyncio.Event()
        self._turn = asyncio.Lock()
        self._listeners: list[Listener] = []
        self._unsubscribers: dict[Listener, Callable[[], None]] = {}

    def attach(self, runtime: RuntimePort) -> None:
        """The runtime is built; it may open its session now. `ready` must follow."""
        self._runtime = runtime
        for listener in self._listeners:
            self._unsubscribers[listener] = runtime.subscribe(listener)

    def ready(self) -> None:
        """Its session is open: let through what waited."""
        self._opened.set()

    def note_user(self) -> None:
        """The user does something; nothing that could wait is done before there is a runtime."""
        if self._runtime is not None:
            self._runtime.note_user()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` for every event; returns what ends that."""
        self._listeners.append(listener)
        if self._runtime is not None:
            self._unsubscribers[listener] = self._runtime.subscribe(listener)
        return lambda: self._unsubscribe(listener)

    async def submit(self, operation: AnyOperation) -> str:
        """Hand over an operation."""
        return await (await self._wait()).submit(operation)

    async def submit_prompt(self, parts: tuple[ContentPart, ...], *, steer: bool = False, before: int = 0) -> str:
        """Hand over a prompt."""
        return await (await self._wait()).submit_prompt(parts, steer=steer, before=before)

    async def run_command(self, line: str) -> list[CommandOutcome]:
        """Run a slash command."""
        return await (await self._wait()).run_command(line)

    async def own_commands(self) -> tuple[Command, ...]:
        """Return what users and projects bring to be typed as `/name`."""
        return await (await self._wait()).own_commands()

    async def complete_argument(self, name: str, typed: str) -> tuple[Choice, ...]:
        """Return what may stand behind a command."""
        return await (await self._wait()).complete_argument(name, typed)

    async def resources(self) -> tuple[Choice, ...]:
        """Return what MCP servers have to be mentioned."""
        return await (await self._wait()).resources()

    async def _wait(self) -> RuntimePort:
        # One after the other: who comes while the first ones are being let through must not overtake them.
        async with self._turn:
            await self._opened.wait()
        assert self._runtime is not None, "ready comes after attach"
        return self._runtime

    def _unsubscribe(self, listener: Listener) -> None:
        self._listeners.remove(listener)
        unsubscribe = self._unsubscribers.pop(listener, None)
        if unsubscribe is not None:
            unsubscribe()


QUIET = 1.0
"""Seconds in which nothing has happened."""
LEAST_NEW = 500
"""With fewer new objects there is nothing worth the while."""
ALL_AFTER = 10
"""Every so many times the old objects are looked through as well: it would be done in the middle of a key, some day."""


class RestingCollector:
    """Collects once after each stretch of work. At rest there is no timer; `clock` is seconds."""

    def __init__(self, clock: Callable[[], float], call_later: Callable[[float, Callable[[], None]], Timer]) -> None:
        self._clock = clock
        self._call_later = call_later
        self._timer: Timer | None = None
        self._last = 0.0

    def note(self) -> None:
        """Something has happened."""
        self._last = self._clock()
        if self._timer is None:
            self._timer = self._call_later(QUIET, self._due)

    def close(self) -> None:
        """Collect nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _due(self) -> None:
        self._timer = None
        rest = self._last + QUIET - self._clock()
        if rest > 0:
            self._timer = self._call_later(rest, self._due)
        elif gc.isenabled():
            collect_now()


def collect_now() -> None:
    """Collect what is new; now and then, what is old."""
    new, middle, old = gc.get_count()
    if old >= ALL_AFTER:
        gc.collect()
    elif new >= LEAST_NEW or middle:
        gc.collect(1)


FLUSH_INTERVAL = 1 / 15
MAX_FLUSH_INTERVAL = 0.5
COST_FACTOR = 4
"""A screen that is slow to take effects gets them less often: at most a quarter of the time goes into them."""
COMMAND_PATIENCE = 0.7
"""Seconds after which the screen says that a command is still at work."""
CLOSE_PATIENCE = 2.0
"""Seconds that closing waits for prompts on their way to the history file."""


class RuntimePort(Protocol):
    """What the runner needs of `core/runtime.py Runtime`."""

    @property
    def home(self) -> Path:
        """Tenuto's own directory."""
        ...

    @property
    def temporary(self) -> bool:
        """Whether nothing of what is said may stay on the disk (`--no-session`)."""
        ...

    def note_user(self) -> None:
        """The user does something."""
        ...

    def subscribe(self, listener: Callable[[AnyEvent], None]) -> Callable[[], None]:
        """Call `listener` for every event, on the loop; returns what ends that."""
        ...

    async def submit(self, operation: AnyOperation) -> str:
        """Hand over an operation."""
        ...

    async def submit_prompt(self, parts: tuple[ContentPart, ...], *, steer: bool = False, before: int = 0) -> str:
        """Hand over a prompt, to be queued in front of `before`; no parts go on with what is queued."""
        ...

    async def run_command(self, line: str) -> list[CommandOutcome]:
        """Run a slash command."""
        ...

    async def own_commands(self) -> tuple[Command, ...]:
        """Return what users and projects bring to be typed as `/name`."""
        ...

    async def complete_argument(self, name: str, typed: str) -> tuple[Choice, ...]:
        """Return what may stand behind a command, of which `typed` is there."""
        ...

    async def resources(self) -> tuple[Choice, ...]:
        """Return what MCP servers have to be mentioned as `@server:uri`."""
        ...


CallLater = Callable[[float, Callable[[], None]], Timer]
_AT_ONCE = ApprovalRequestedEvent | ReplayFinishedEvent | SessionOpenedEvent | TaskFinishedEvent
"""What somebody waits for; of all else the screen shows many at a time when they come faster than one can read."""


class Runner:
    """Feeds the machine and carries out what it asks of the core.

    `apply_effects` gets the effects that are the screen's, after the state has changed. `clock` is monotonic seconds,
    `call_later(seconds, function)` the scheduler (the running loop's unless given), `flush_interval` the seconds
    between two paints of a stream at least, `mask_secrets` whether what looks like a secret is masked.
    """

    def __init__(
        self,
        runtime: RuntimePort,
        apply_effects: Callable[[list[ScreenEffect]], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        call_later: CallLater | None = None,
        flush_interval: float = FLUSH_INTERVAL,
        state: UiState | None = None,
        columns: int = 80,
        own_keys: OwnKeys | None = None,
        mask_secrets: bool = True,
    ) -> None:
        self.state = state or UiState()
        self.columns = columns
        self._runtime = runtime
        self._apply_effects = apply_effects
        self._clock = clock
        self._call_later = call_later
        self._inbox: deque[AnyEvent | Intent] = deque()
        self._working = False
        self._buffer = DeltaBuffer()
        self._timer: Timer | None = None
        self._flushed_at = float("-inf")
        self._least_interval = self._interval = flush_interval
        self._tasks: set[asyncio.Task[None]] = set()
        self._stoppable: set[asyncio.Task[Any]] = set()
        self._desk = Desk(
            runtime.home,
            self.state,
            self.handle,
            keeps_texts=not runtime.temporary,
            spawn=self._spawn,
            clock=clock,
            call_later=self._later,
            arguments=runtime.complete_argument,
            own_commands=runtime.own_commands,
            resources=runtime.resources,
        )
        self._resting = RestingCollector(clock, self._later)
        self._unsubscribe: Callable[[], None] | None = None
        self._mask_secrets = mask_secrets
        self.can_wait = False
        """Whether what is applied now comes from the core, and is one of many."""
        self._own_keys = own_keys or OwnKeys(runtime.home)
        self._key_problems: tuple[str, ...] = ()

    def start(self) -> None:
        """Listen to the runtime from now on; call it before the session is opened, whose events are the first."""
        self._unsubscribe = self._runtime.subscribe(self._take)
        self._key_problems = self._own_keys.read(self.handle)

    async def close(self) -> None:
        """Stop listening; wait a moment for prompts that are being written to the history."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        if self._timer is not None:
            self._timer.cancel()
        self._resting.close()
        writing = [task for task in self._tasks if task.get_name() == "remember"]
        if writing:
            await asyncio.wait(writing, timeout=CLOSE_PATIENCE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._desk.close()

    # --- input ---

    def handle(self, intent: Intent) -> None:
        """Take in what the user did; it does not wait for the stream, nor the stream for it.

        May be called from within `apply_effects`: it then comes next.
        """
        if not isinstance(intent, intents.Tick):
            self._runtime.note_user()
        self._feed(intent)

    async def submit_user_input(self, text: str, images: Sequence[ImagePart] = ()) -> None:
        """Send a prompt, a `/command`, `!command` or `!!command`, and return when the core has it.

        What cannot be handed over is back in the editor afterwards, with the reason on the screen.
        """
        before = set(self._tasks)
        self.handle(intents.SendText(text, tuple(images)))
        await asyncio.gather(*(self._tasks - before), return_exceptions=True)

    def warn(self, problems: Sequence[str]) -> None:
        """Tell the user what is wrong with a file of theirs."""
        for problem in problems:
            self.handle(Say(problem, "warning"))

    def fold_paste(self, text: str) -> str:
        """Return what the editor is to insert for a paste: the text, or a mark that stands for all of it (R-099)."""
        return self.state.pastes.fold(text)

    def fold_edited(self, text: str) -> str:
        """Return what the editor is to show for a text from elsewhere: pastes that are still in it as their marks."""
        shown = self.state.pastes.fold_again(text)
        return shown if len(shown) <= WHOLE_CHARACTERS else self.state.pastes.fold(shown)

    def take_images(self, text: str, insert: Callable[[str], None]) -> bool:
        """Attach the images whose paths were pasted; `False` when it is text. `insert` gets it if it is, after all."""
        return self._desk.images.take_dropped(text, insert)

    def paste_clipboard(self, insert: Callable[[str], None], otherwise: str = "") -> None:
        """Attach the image on the system's clipboard, or insert its text, or `otherwise`."""
        self._desk.images.take_clipboard(insert, otherwise)

    def keep_draft(self) -> None:
        """Write the draft to disk now: the user may be gone for long."""
        self._desk.keep_draft()

    def resize(self, columns: int) -> None:
        """The screen is now so many cells wide."""
        self.columns = columns

    # --- events ---

    def _take(self, event: AnyEvent) -> None:
        """Take in an event: deltas wait for their turn, everything else goes through, behind them."""
        if self._mask_secrets and isinstance(event, FOREIGN):
            event = masked_copy(event, mask_likely)
        if self._buffer.add(event):
            self._schedule_flush()
            return
        self.can_wait = not isinstance(event, _AT_ONCE)
        try:
            self._flush()
            self._feed(event)
        finally:
            self.can_wait = False
        match event:
            case SessionOpenedEvent(session_id=session_id, cwd=cwd, missing=missing, locked=locked):
                self._desk.enter(session_id, Path(cwd), is_read_only=event.read_only)
                for problem in self._key_problems:
                    self.handle(Say(problem, "warning"))
                self._key_problems = ()
                if locked:  # with the picker closed it is looked at
                    self._spawn(self._run_command(f"/resume {session_id}"), "resume")
                if missing:  # asked once: with the picker closed the session can be looked at as it is
                    self._spawn(self._run_command("/move"), "move")
            case TrustWaitingEvent():
                self._spawn(self._run_command("/trust ask"), "trust")
            case TaskFinishedEvent():
                self._desk.read_branch()
            case ToolResultEvent() if not self.state.replaying:
                self._desk.glance_at_branch()
            case _:
                pass

    def _schedule_flush(self) -> None:
        if self._timer is not None:
            return
        wait = self._flushed_at + self._interval - self._clock()
        if wait <= 0:
            self._flush()
            return
        self._timer = self._later(wait, self._flush)

    def _later(self, seconds: float, function: Callable[[], None]) -> Timer:
        call_later = self._call_later or asyncio.get_running_loop().call_later
        return call_later(seconds, function)

    def _flush(self) -> None:
        """Let the joined deltas through."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._buffer:
            return
        started = self._clock()
        for event in self._buffer.drain():
            self._feed(event)
        self._flushed_at = self._clock()
        self._interval = min(max(self._least_interval, COST_FACTOR * (self._flushed_at - started)), MAX_FLUSH_INTERVAL)

    def painted(self, seconds: float) -> None:
        """Say what a frame cost that was painted after its flush: the next flush waits in proportion."""
        self._interval = min(max(self._interval, COST_FACTOR * seconds), MAX_FLUSH_INTERVAL)

    def _feed(self, input: AnyEvent | Intent) -> None:
        """Step through everything that has come in, in order."""
        self._inbox.append(input)
        if self._working:
            return
        self._working = True
        try:
            while self._inbox:
                _, effects = step(self.state, self._inbox.popleft(), self._clock(), self.columns)
                self._carry_out(effects)
        finally:
            self._working = False
        self._desk.note_draft()
        self._resting.note()

    def _carry_out(self, effects: list[Effect]) -> None:
        for_screen: list[ScreenEffect] = []
        for effect in effects:
            if isinstance(effect, CoreEffect):
                self._act(effect)
            else:
                for_screen.append(effect)
        if for_screen:
            self._apply_effects(for_screen)

    # --- effects of the core side ---

    def _act(self, effect: CoreEffect) -> None:
        match effect:
            case Submit(operation=operation):
                self._spawn(self._submit(operation), "submit")
            case SubmitPrompt():
                self._spawn(self._submit_prompt(effect), "prompt")
            case RunCommand(line=line):
                self._spawn(self._run_command(line), "command")
            case StopCommands():
                for task in self._stoppable:
                    task.cancel()
            case Remember():
                self._desk.remember(effect)
            case Complete():
                self._desk.complete(effect)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run `work` beside everything else. Tasks begin in the order in which they are made."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _submit(self, operation: AnyOperation) -> None:
        text = ""
        if isinstance(operation, RunShellOperation):
            text = f"{'!!' if operation.excluded else '!'}{operation.command}"
        await self._try(self._runtime.submit(operation), text)

    async def _submit_prompt(self, effect: SubmitPrompt) -> None:
        parts: tuple[ContentPart, ...] = (TextPart(text=effect.text),) if effect.text else ()
        work = self._runtime.submit_prompt(parts + effect.images, steer=effect.steer, before=effect.before)
        await self._try(work, effect.text, effect.images)

    async def _run_command(self, line: str) -> None:
        from tenuto.command.registry import find_command

        name = line.split(maxsplit=1)[0]
        word = name.removeprefix("/")
        command = find_command(word) or next((one for one in self.state.own_commands if one.name == word), None)
        # A prompt of a server that was not there yet when commands were listed.
        can_stop = command.stoppable if command is not None else word.startswith(MCP_PREFIX)
        lasting = self._later(COMMAND_PATIENCE, lambda: self.handle(intents.CommandLasts(name, can_stop)))
        task = asyncio.current_task()
        if can_stop and task is not None:
            self._stoppable.add(task)
        try:
            await self._try(self._show_outcomes(line), line)
        finally:
            lasting.cancel()
            if task is not None:
                self._stoppable.discard(task)
            self.handle(intents.CommandLasts(""))

    async def _show_outcomes(self, line: str) -> None:
        for outcome in await self._runtime.run_command(line):
            match outcome:
                case ChangeTheme(name=name):
                    await self._change_theme(name)
                case ShowKeys() | EditKeys() | ReadOwnFiles():
                    self._mind_keys(outcome)
                case Leave():
                    self.handle(intents.LeaveAsked(line.split(maxsplit=1)[0]))
                case _:
                    self.handle(outcome)

    async def _change_theme(self, name: str) -> None:
        from tenuto.tui.themes import answer_theme

        status, home = self.state.status, self._runtime.home
        for answer in await asyncio.to_thread(
            answer_theme, name, self.state.theme, home, Path(status.cwd or "."), os.environ
        ):
            self.handle(answer)

    async def _try(self, work: Awaitable[object], text: str, images: tuple[ImagePart, ...] = ()) -> None:
        """Do it; an error ends here, as words on the screen, and the text goes back into the editor."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the user must see it, and the front-end must live on
            reason = str(error) or type(error).__name__
            back = intents.SendFailed(text, reason, images) if text or images else intents.Failed(reason)
            self.handle(back)

    # --- keys ---

    def read_own_files(self) -> None:
        """Read the user's keys, and say what is wrong with them."""
        for problem in self._own_keys.read(self.handle):
            self.handle(Say(problem, "warning"))

    def _mind_keys(self, outcome: ShowKeys | EditKeys | ReadOwnFiles) -> None:
        match outcome:
            case ShowKeys():
                self.handle(Say(self._own_keys.describe(self.state.keys)))
            case EditKeys():
                self._edit_keys()
            case ReadOwnFiles():
                self.read_own_files()

    def _edit_keys(self) -> None:
        try:
            self._own_keys.prepare()
        except OSError as error:
            self.handle(Say(f"{self._own_keys.path} cannot be written: {error.strerror}", "error"))
        else:
            self.handle(EditFile(str(self._own_keys.path)))
