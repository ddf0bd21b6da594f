"""What reaches the user beyond the screen: the terminal's title and progress, a call, the clipboard, a status command.

Shared by both screens. Everything here is written in order with what is painted.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from tenuto.config.settings import UiSettings
from tenuto.guard.terminal import sanitize_line
from tenuto.text.figures import format_seconds
from tenuto.text.writable import to_json
from tenuto.tui.chrome import describe_unknown, unknown_items
from tenuto.tui.render.line import Span, ansi_lines
from tenuto.tui.state.effects import Bell, BellReason
from tenuto.tui.state.item import AssistantItem, CompactionItem, NoticeItem
from tenuto.tui.state.state import UiState
from tenuto.tui.terminal.clipboard import copy_text
from tenuto.tui.terminal.emulator import (
    NotificationForm,
    ask_outer,
    in_multiplexer,
    in_screen,
    notification_form,
    recognise,
    shows_progress,
    wrap,
)

BEL = "\x07"
NAME = "Tenuto"
NOTICE_CHARACTERS, BODY_CHARACTERS = 80, 160
QUIET_SECONDS = 3.0
"""After a notification, none of the same or of lesser urgency for so long."""
URGENCY: dict[BellReason, int] = {"finished": 0, "failed": 1, "compaction": 1, "approval": 2}
WAITING: frozenset[BellReason] = frozenset({"approval"})
"""What stops until the user answers: called for even where nobody knows whether the terminal is looked at."""


class Notification(Struct, frozen=True):
    """One line that says where, one that says what; safe to print (R-088)."""

    title: str
    body: str


class CallFilter:
    """Decides whether the user is called. `after` is the seconds from which a finished run is worth it."""

    def __init__(self, after: float) -> None:
        self._after = after
        self._last = -1
        self._at = float("-inf")
        self.has_focus: bool | None = None

    def wanted(self, bell: Bell, now: float) -> bool:
        """Say whether this is worth a call now, and remember it if so."""
        if self.has_focus or (self.has_focus is None and bell.reason not in WAITING):
            return False
        if bell.reason == "finished" and bell.seconds < self._after:
            return False
        urgency = URGENCY[bell.reason]
        if now - self._at < QUIET_SECONDS and urgency <= self._last:
            return False
        self._last, self._at = urgency, now
        return True


def describe_bell(bell: Bell, state: UiState) -> Notification:
    """Return what to tell somebody who does not see the screen."""
    where = state.status.title or state.status.cwd.rstrip("/").rpartition("/")[2]
    title = f"{NAME}: {where}" if where else NAME
    return Notification(_cut(title, NOTICE_CHARACTERS), _cut(_what(bell, state), BODY_CHARACTERS))


def _what(bell: Bell, state: UiState) -> str:
    match bell.reason:
        case "approval":
            request = state.approvals.requests[-1] if state.approvals.requests else None
            if request is not None and request.tool == "plan":
                return "A plan waits for your answer"
            if request is not None and request.kind == "question":
                return f"An MCP server asks you: {request.summary}"
            asked = f"{request.tool} {request.summary}".strip() if request is not None else ""
            return f"Approval needed: {asked}" if asked else "Approval needed"
        case "failed":
            return f"Failed: {_last_error(state)}"
        case "compaction":
            return f"Compaction failed: {_last_error(state)}"
        case "finished":
            answer = _last_answer(state)
            took = f"Finished in {format_seconds(bell.seconds)}"
            return f"{took}: {answer}" if answer else took


def _last_answer(state: UiState) -> str:
    for item in reversed(state.transcript.items.values()):
        if isinstance(item, AssistantItem) and not item.piece:
            return next((line.strip("#*> -`") for line in item.text.splitlines() if line.strip()), "")
    return ""


def _last_error(state: UiState) -> str:
    for item in reversed(state.transcript.items.values()):
        if isinstance(item, NoticeItem) and item.level == "error":
            return item.text
        if isinstance(item, CompactionItem) and item.error:
            return item.error
    return "see the session"


def notification_sequence(notification: Notification, form: NotificationForm) -> str:
    """Return what asks the terminal for a desktop notification. Ends in BEL where screen is to pass it through."""
    title, body = notification.title, notification.body
    match form:
        case "osc9":
            return f"\x1b]9;{title}: {body}{BEL}"
        case "osc777":
            return f"\x1b]777;notify;{title.replace(';', ',')};{body.replace(';', ',')}{BEL}"
        case "osc99":
            # o=unfocused: the terminal knows best whether the user looks.
            return f"\x1b]99;i=tenuto:d=0:o=unfocused;{title}\x1b\\\x1b]99;i=tenuto:p=body;{body}\x1b\\"
        case "":
            return ""


def _cut(text: str, characters: int) -> str:
    line = sanitize_line(text)
    return line if len(line) <= characters else line[: characters - 1].rstrip() + "…"


TITLE_CHARACTERS = 120
NO_TITLE = frozenset({"linux", "dumb", "unknown", ""})
"""Values of `TERM` that have none."""
SAVE_TITLE = "\x1b[22;0t"
RESTORE_TITLE = "\x1b]0;\x07\x1b[23;0t"
"""Empty first: terminals that cannot restore one go back to their own."""
COMMAND_SECONDS = 10.0
PROGRESS_SECONDS = 8.0
"""Some terminals take a progress that is not told again for one whose program is gone (ghostty: 15 seconds)."""

Progress = Literal["", "running", "waiting", "failed"]
_PROGRESS = {"": "0", "running": "3", "waiting": "4;100", "failed": "2;100"}


class Alerts:
    """`write` takes control sequences; `spawn` runs work beside everything else; `clock` is seconds.

    `toast(text, style)` shows a line for a few seconds, `show_command` what the user's status command printed.
    `copied` is the last text that was copied.
    """

    def __init__(
        self,
        state: Callable[[], UiState],
        write: Callable[[str], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        toast: Callable[[str, str], None],
        show_command: Callable[[Sequence[Span]], None],
        *,
        ui: UiSettings,
        environ: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._state = state
        self._write = write
        self._spawn = spawn
        self._toast = toast
        self._ui = ui
        self._environ = environ
        self._clock = clock
        self._filter = CallFilter(ui.notification_seconds)
        self._command = StatusCommand(
            ui.status_command,
            ui.status_interval,
            spawn=spawn,
            show=show_command,
            complain=self._warn,
            clock=clock,
        )
        self._notifier = UserCommand(
            "ui.notification_command", ui.notification_command, seconds=COMMAND_SECONDS, complain=self._warn
        )
        self._has_title = ui.title and environ.get("TERM", "") not in NO_TITLE
        self._has_progress = shows_progress(recognise(environ)) if ui.progress == "auto" else ui.progress
        self._title = ""
        self._withheld = False
        self._progress: Progress = ""
        self._progress_at = float("-inf")
        self._failed = False
        self._begun = False
        self.copied = ""

    # --- life ---

    def begin(self) -> None:
        """Remember what the user will want back; the terminal is ours from now on."""
        self._begun = True
        self._write(SAVE_TITLE if self._has_title else "")
        unknown = unknown_items(self._ui.status_items)
        if unknown:
            self._warn(describe_unknown(unknown))

    def end(self) -> None:
        """Give it back, once."""
        self._write(self.owed)
        self._begun = False
        self._progress = ""

    @contextlib.contextmanager
    def withheld(self) -> Generator[None]:
        """Leave the title to a program that has the terminal meanwhile; then it is ours again."""
        self._withheld = True
        try:
            yield
        finally:
            self._withheld = False
            self._write(self._title)

    @property
    def owed(self) -> str:
        """What ends everything that was begun here: also for ends that do not go through `end`."""
        title = RESTORE_TITLE if self._begun and self._has_title else ""
        return (progress_sequence("") if self._progress else "") + title

    # --- what happens ---

    def set_focus(self, has_focus: bool) -> None:
        """Note whether the terminal has the focus."""
        self._filter.has_focus = has_focus
        if has_focus and self._failed:
            self._failed = False
            self.follow()

    def set_title(self, text: str) -> None:
        """Set the terminal's title; later, while another program has the terminal."""
        self._title = title_sequence(self._titled(text)) if self._has_title else ""
        self._write("" if self._withheld else self._title)

    def _titled(self, text: str) -> str:
        """Return a title as what is in between takes it: GNU screen makes control characters of some letters."""
        return in_ascii(text) if in_screen(self._environ) else text

    def follow(self) -> None:
        """The state may have changed: tell the user's status command, and the terminal what goes on."""
        self._command.follow(self._state())
        if self._has_progress:
            self._show_progress(self._state(), self._clock())

    def _show_progress(self, state: UiState, now: float) -> None:
        self._failed = self._failed and not state.running
        wanted: Progress = "waiting" if state.approvals.requests else "running" if state.running else ""
        wanted = wanted or ("failed" if self._failed else "")
        if wanted != self._progress or (wanted and now - self._progress_at >= PROGRESS_SECONDS):
            self._progress, self._progress_at = wanted, now
            self._write(progress_sequence(wanted))

    # --- calls ---

    def call(self, bell: Bell) -> None:
        """Call the user, who may be elsewhere."""
        self._failed = bell.reason == "failed" and self._filter.has_focus is False
        way = self._ui.notifications
        if way is True:
            way = "command" if self._notifier.given else "terminal"
        if way in (False, "off") or not self._filter.wanted(bell, self._clock()):
            return
        notification = describe_bell(bell, self._state())
        if way == "command" and self._notifier.given:
            self._spawn(self._run_command(bell, notification))
            return
        self._write(BEL)
        if way == "terminal":
            self._notify(notification)

    def _notify(self, notification: Notification) -> None:
        if in_multiplexer(self._environ):
            self._spawn(self._notify_through(notification))
        else:
            self._write(notification_sequence(notification, notification_form(recognise(self._environ))))

    async def _notify_through(self, notification: Notification) -> None:
        outer = await ask_outer(self._environ)
        if outer.reachable:
            sequence = notification_sequence(notification, notification_form(outer.emulator))
            self._write(wrap(sequence, self._environ) if sequence else "")

    async def _run_command(self, bell: Bell, notification: Notification) -> None:
        state = self._state()
        facts = {
            "reason": bell.reason,
            "title": notification.title,
            "body": notification.body,
            "seconds": round(bell.seconds, 1),
            "session_id": state.session_id,
            "cwd": state.status.cwd,
        }
        await self._notifier.run(facts)

    def _warn(self, problem: str) -> None:
        self._toast(problem, "warning")

    # --- the clipboard ---

    def copy(self, text: str) -> None:
        """Put a text on the clipboard, and say how that went."""
        self.copied = text
        self._spawn(self._copy(text))

    async def _copy(self, text: str) -> None:
        result = await copy_text(text, self._environ)
        self._write(result.sequence)
        self._toast(result.message, "dim" if result.sent else "warning")


def in_ascii(text: str) -> str:
    """Return a title of ours, and as much of its words as there is, in the plainest of characters."""
    import unicodedata

    decomposed = unicodedata.normalize("NFKD", text.replace("—", "-").replace("✳", "*"))
    plain = "".join(one for one in decomposed if not unicodedata.combining(one))
    return plain.encode("ascii", "replace").decode("ascii")


def title_sequence(text: str) -> str:
    """Return what sets the terminal's title; the text may be anything (R-088)."""
    return f"\x1b]0;{sanitize_line(text)[:TITLE_CHARACTERS]}\x07"


def progress_sequence(progress: Progress) -> str:
    """Return what shows the progress on the terminal's tab or in its task bar (OSC 9;4)."""
    return f"\x1b]9;4;{_PROGRESS[progress]}\x07"


# --- the user's own commands ---


OUTPUT_BYTES = 16_384
"""More of what it prints is not read."""


class Ran(Struct, frozen=True):
    """What a command printed, at most `OUTPUT_BYTES`, and why the run failed (empty: it did not)."""

    output: bytes
    problem: str = ""


class UserCommand:
    """The command of a setting. `complain` is called when a run fails for the first time.

    `seconds` is how long one run may take.
    """

    def __init__(self, setting: str, command: str, *, seconds: float, complain: Callable[[str], None]) -> None:
        self._setting = setting
        self._command = command
        self._seconds = seconds
        self._complain = complain
        self._complained = False

    @property
    def given(self) -> bool:
        """Whether the setting names one."""
        return bool(self._command)

    async def run(self, facts: Mapping[str, Any], *, cwd: str = "") -> bytes | None:
        """Run it with `facts` as JSON; return what it printed, at most `OUTPUT_BYTES`, `None` when it failed."""
        ran = await run_user_command(self._command, facts, seconds=self._seconds, cwd=cwd)
        if not ran.problem:
            return ran.output
        if not self._complained:
            self._complained = True
            self._complain(f"{self._setting} {ran.problem}")
        return None


async def run_user_command(command: str, facts: Mapping[str, Any], *, seconds: float, cwd: str = "") -> Ran:
    """Run `command` in the shell with `facts` as one line of JSON on its standard input."""
    try:
        process = await asyncio.create_subprocess_shell(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd or None,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return Ran(b"", f"could not be run: {error}")
    try:
        async with asyncio.timeout(seconds):
            output = await _talk(process, to_json(facts) + b"\n")
            code = await process.wait()
    except TimeoutError:
        return Ran(b"", f"took longer than {seconds:g} seconds")
    finally:
        _end(process)
    return Ran(output, f"ended with exit code {code}" if code else "")


async def _talk(process: asyncio.subprocess.Process, data: bytes) -> bytes:
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(OSError):  # one that does not read is no fault
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()
    output = b""
    while len(output) < OUTPUT_BYTES and (chunk := await process.stdout.read(OUTPUT_BYTES)):
        output += chunk
    if len(output) >= OUTPUT_BYTES:
        _end(process)
    return output[:OUTPUT_BYTES]


def _end(process: asyncio.subprocess.Process) -> None:
    """End it with everything that it started, if it still runs."""
    if process.returncode is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)


STATUS_SECONDS = 5.0
"""How long one run may take."""


class StatusCommand:
    """`show` gets what its first line says. When a run fails, what showed stays, and `complain` is called once.

    `interval` is the seconds between the beginnings of two runs; `spawn` runs work beside everything else.
    """

    def __init__(
        self,
        command: str,
        interval: float,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        show: Callable[[Sequence[Span]], None],
        complain: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._command = UserCommand("ui.status_command", command, seconds=STATUS_SECONDS, complain=complain)
        self._interval = interval
        self._spawn = spawn
        self._show = show
        self._clock = clock
        self._wanted: Mapping[str, Any] = {}
        self._told: Mapping[str, Any] = {}
        self._began = float("-inf")
        self._running = False

    def follow(self, state: UiState) -> None:
        """Run the command soon if its facts have changed since the last run, once there is a session."""
        if not self._command.given or not state.session_id:
            return
        self._wanted = session_facts(state)
        if self._wanted != self._told and not self._running:
            self._running = True
            self._spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._wanted != self._told:
                wait = self._began + self._interval - self._clock()
                if wait > 0:
                    await asyncio.sleep(wait)
                self._told, self._began = self._wanted, self._clock()
                output = await self._command.run(self._told, cwd=str(self._told["cwd"]))
                if output is not None:
                    self._show(first_line(output))
        finally:
            self._running = False


def first_line(output: bytes) -> list[Span]:
    """Return the first line of what a command printed: colours stay, nothing else that a terminal would act on."""
    text = output.decode("utf-8", "replace").lstrip("\r\n").split("\n", 1)[0].rstrip().replace("\t", " ")
    return ansi_lines(text, "status")[0]


def session_facts(state: UiState) -> dict[str, Any]:
    """Return the facts for the command, as JSON. Tokens; `cost` is US dollars; `null` is what is not known."""
    status, total = state.status, state.status.total
    return {
        "session_id": state.session_id,
        "title": status.title,
        "model": status.model,
        "effort": status.effort,
        "mode": status.mode,
        "cwd": status.cwd,
        "branch": status.branch,
        "dirty": status.dirty,
        "running": state.running,
        "queued": len(state.queue),
        "jobs": status.jobs,
        "tokens": status.tokens,
        "window": status.window,
        "trigger": status.trigger,
        "usage": {
            "input": total.input,
            "output": total.output,
            "cache_read": total.cache_read,
            "cache_write": total.cache_write,
        },
        "cost": status.cost,
    }
