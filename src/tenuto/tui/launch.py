"""What both screens need at their beginning and their end: the agent, what is said afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tenuto import heap
from tenuto.command.outcome import Say
from tenuto.config.settings import Settings, UiSettings
from tenuto.exit_codes import BAD_USAGE, FAILED
from tenuto.guard.terminal import write_text
from tenuto.protocol.event import AnyEvent, TaskSettledEvent
from tenuto.tui.editor_services import keep_unopened
from tenuto.tui.render.options import motion_of
from tenuto.tui.runner import LateRuntime
from tenuto.tui.state.intents import Intent, KeyboardKnown
from tenuto.tui.state.item import WELCOME, is_welcome
from tenuto.tui.state.state import StatusLine, UiState
from tenuto.tui.terminal.emulator import ask_tmux, is_xterm, recognise
from tenuto.tui.terminal.modified_keys import TELLING

if TYPE_CHECKING:
    from tenuto.api.agent import Agent
    from tenuto.core.start import Start
    from tenuto.protocol.entry import Mode
    from tenuto.tool.run.registry import ToolRegistry

NOISE_FILE = "stderr.log"
HINT_SECONDS = 1.0


class Ended(Struct, frozen=True):
    """How it ended: the exit code, what to print afterwards, and the error that ended it.

    `parting` is the end of the conversation, as it is written to the terminal.
    """

    code: int
    hint: str
    failure: BaseException | None
    parting: str = ""

    def report(self, noise: Path) -> int:
        """Say on the normal screen what there is to say; return the exit code. `noise` takes the traceback."""
        code = self.code if self.failure is None else explain(self.failure, noise)
        if not takes_text():
            return code
        if self.parting and self.failure is None:
            write_text(self.parting, painted=True)
        if self.hint:
            write_text(self.hint)
        return code


def first_state(ui: UiSettings, theme: str, mode: Mode | None) -> UiState:
    """Return the machine's state before anything has happened, as the settings want it; `theme` is a name.

    `mode` is the one that the session is going to have, `None` where only the session knows.
    """
    presses = 2 if ui.interrupt == "esc-esc" else 1
    status = StatusLine(mode=mode)
    return UiState(theme=theme, second_step=motion_of(ui).step, interrupt_presses=presses, status=status)


def first_mode(start: Start, settings: Settings) -> Mode | None:
    """Return the mode of the session that is going to be opened; an earlier one has its own."""
    return start.mode or (None if start.resume or start.resume_latest else settings.mode)


class Opening:
    """Makes the agent and opens its session while the screen is up already. `texts` are sent first.

    `greets`: a new session begins with what runs here. Plain lines say that themselves.
    """

    def __init__(self, start: Start, late: LateRuntime, texts: list[str], *, greets: bool = True) -> None:
        self._greets = greets
        self._start = start
        self._late = late
        self._texts = texts
        self._agent: Agent | None = None

    def take_texts(self) -> list[str]:
        """Return what is to be sent first, once: it keeps its place before what was typed while nothing was there."""
        texts, self._texts = self._texts, []
        return texts

    async def open(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Open the session, then send the texts that are to be sent first. Raises what the agent raises."""
        gc.disable()  # until everything is there: it would find some two hundred objects, and keys would wait for it
        try:
            # The core is imported beside the loop: keys are echoed meanwhile.
            agent_class = await asyncio.to_thread(_import_agent)
            agent = self._agent = agent_class.of(self._start)
            agent.subscribe(partial(_let_go, agent))
            self._late.attach(agent.runtime)
            await agent.open()
            self._late.ready()
            await self._greet(agent)
            for text in self.take_texts():
                await send(text)
            await asyncio.to_thread(warm_up, agent.runtime.live.tools)
        finally:
            heap.settle()

    async def _greet(self, agent: Agent) -> None:
        """Say on a new session's first screen what runs here; nobody who has sent something already needs that."""
        live = agent.runtime.live
        state = live.session.state
        if not self._greets or self._texts or state.messages or state.queue or live.session.is_read_only:
            return
        from tenuto.tui.welcome import next_tip, welcome_text

        tip = await asyncio.to_thread(next_tip, self._start.home) if agent.runtime.settings.ui.tips else ""
        home = self._start.environ.get("HOME", "")
        live.notify(welcome_text(live.facts.id, str(live.session.cwd), home, tip), kind=WELCOME)

    async def close(self, state: UiState) -> str:
        """Close the agent, if there is one; return how to go on, or what it wants said in its place (R-067)."""
        hint = hint_after(state, temporary=self._start.temporary)
        if not state.session_id and not self._start.temporary:
            keep_unopened(self._start.home, self._start.cwd, state)
        if self._agent is None:
            return hint
        await self._agent.close()
        return self._agent.parting or hint


def _import_agent() -> type[Agent]:
    from tenuto.api.agent import Agent

    return Agent


def _let_go(agent: Agent, event: AnyEvent) -> None:
    """Forget what a run has come to: a screen has drawn it, and its session goes on for days."""
    if isinstance(event, TaskSettledEvent):
        agent.result.begin()


def opening_texts(prompt: str, *, choose: bool) -> list[str]:
    """Return what is to be sent first: the choice of an earlier session, the prompt."""
    return [*(["/resume"] if choose else []), *([prompt] if prompt.strip() else [])]


def takes_text(descriptor: int = 1) -> bool:
    """Say whether the terminal takes what is written to it; one that does not would keep us here for ever."""
    try:
        return bool(select.select([], [descriptor], [], HINT_SECONDS)[1])
    except (OSError, ValueError):
        return False


def explain(failure: BaseException, noise: Path) -> int:
    """Say what ended the program. A fault of ours leaves its traceback, without the values in it, in the file."""
    from tenuto.core.errors import EXPECTED_FAILURES, describe_failure

    write_text(f"tenuto: {describe_failure(failure)}", to_errors=True)
    if not isinstance(failure, EXPECTED_FAILURES):
        import traceback

        if noise == Path(os.devnull):
            write_text("".join(traceback.format_exception(failure)).rstrip(), to_errors=True)
            return 1
        with contextlib.suppress(OSError), noise.open("a", encoding="utf-8", errors="replace") as file:
            traceback.print_exception(failure, file=file)
            write_text(f"tenuto: the details are in {noise}", to_errors=True)
    return BAD_USAGE if isinstance(failure, EXPECTED_FAILURES) else FAILED


def noise_file(home: Path) -> Path:
    """Return where standard error goes while the app runs; a home that cannot be written to stops nothing."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(home / NOISE_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return Path(os.devnull)
    return home / NOISE_FILE


def warm_up(tools: ToolRegistry) -> None:
    """Import what the first answer and the first tool call will need, before they come: it would be felt then."""
    from tenuto.tui.render.live import warm_up as warm_up_rendering

    warm_up_rendering()
    tools.warm_up()


def hint_after(state: UiState, *, temporary: bool) -> str:
    """Return what to print when this is the last state."""
    spoken = any(not is_welcome(item) for item in state.transcript.ordered())
    return resume_hint(state.session_id, spoken=spoken, temporary=temporary)


def resume_hint(session_id: str, *, spoken: bool, temporary: bool) -> str:
    """Return the line that says how to come back, empty where there is nothing to come back to."""
    return f"Resume this session: tenuto --resume {session_id}" if session_id and spoken and not temporary else ""


# --- whether Shift+Enter arrives ---


TOLD_FILE = Path("told") / "tmux-extended-keys"
ADVICE = (
    "tmux keeps Shift+Enter to itself, because its extended-keys is off: Ctrl+J, or \\ and Enter, begin a new line. To "
    "have Shift+Enter as well:  set -s extended-keys on  in ~/.tmux.conf. This is said once."
)


async def learn_keyboard(home: Path, environ: Mapping[str, str], handle: Callable[[Intent], None]) -> None:
    """Find out whether Shift+Enter arrives here, and say once what tmux needs for it."""
    if not environ.get("TMUX"):
        handle(KeyboardKnown(is_xterm(environ) or recognise(environ) in TELLING))
        return
    setting = (await ask_tmux("show-options", "-sv", "extended-keys")).strip()  # empty: a tmux without it
    handle(KeyboardKnown(setting in ("on", "always")))
    if setting == "off" and _tell_first_time(home / TOLD_FILE):
        handle(Say(ADVICE))


def _tell_first_time(mark: Path) -> bool:
    """Leave the mark; return whether it was not there. Where nothing can be written, nothing is said each time."""
    try:
        mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark.touch(mode=0o600, exist_ok=False)
    except OSError:
        return False
    return True
