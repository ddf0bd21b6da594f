"""The user's own status command: it runs when something changed, one at a time, and never while nothing happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tenuto.text.writable import to_json
from tenuto.tui.machine.state import UiState
from tenuto.tui.render.ansi import ansi_lines
from tenuto.tui.render.line import Span

OUTPUT_BYTES = 16_384
"""More of what it prints is not read."""


class Ran(Struct, frozen=True):
    """What it printed, at most `OUTPUT_BYTES`, and why that does not count (empty: it does)."""

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


SECONDS = 5.0
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
        self._command = UserCommand("ui.status_command", command, seconds=SECONDS, complain=complain)
        self._interval = interval
        self._spawn = spawn
        self._show = show
        self._clock = clock
        self._wanted: Mapping[str, Any] = {}
        self._told: Mapping[str, Any] = {}
        self._began = float("-inf")
        self._running = False

    def follow(self, state: UiState) -> None:
        """Run soon, if what the command is told is not what it was told last. Before there is a session it does not."""
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
    """Return what the command is told, as JSON. Tokens; `cost` is US dollars; `null` is what is not known."""
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
