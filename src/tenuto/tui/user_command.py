"""Runs a command from the user's own settings: what it is about goes in as JSON, never into the command line.

It gets a session of its own, so that neither a key nor a stopped terminal reaches it, and ends with its time limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from tenuto.text.writable import to_json

OUTPUT_BYTES = 16_384
"""More of what it prints is not read."""


class Ran(Struct, frozen=True):
    """What it printed, at most `OUTPUT_BYTES`, and why that does not count (empty: it does)."""

    output: bytes
    problem: str = ""


class UserCommand:
    """The command of a setting. When a run fails, `complain` hears of it, the first time.

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
