"""The user's own programs, editor and pager: which they are, and how they get the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import FrameType


def find_program(environ: Mapping[str, str], variables: Sequence[str], usual: Sequence[str]) -> list[str]:
    """Return the command that the first of these variables has, else the first usual program there is, else nothing."""
    import shutil

    for variable in variables:
        if environ.get(variable, "").strip():
            try:
                return shlex.split(environ[variable])
            except ValueError:
                return [environ[variable]]
    return [name for name in usual if shutil.which(name)][:1]


async def run_program(
    command: Sequence[str], environ: Mapping[str, str] | None = None, stdin: int | None = None
) -> int:
    """Run a command until it ends; return its exit code. Raises `OSError` when it cannot be run.

    `environ` is its environment, `stdin` what it reads from (`None`: ours). It has the terminal: somebody has lent it.
    """
    # Standard error of this process is not the terminal while the app runs.
    terminal = os.open(os.ctermid(), os.O_RDWR)
    try:
        with _keys_are_its_own():
            process = await asyncio.create_subprocess_exec(*command, stdin=stdin, stderr=terminal, env=environ)
            return await process.wait()
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _keys_are_its_own() -> Generator[None]:
    """Not be ended by Ctrl+C and Ctrl+backslash, which the terminal tells all of the job, when a pager takes them."""
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGQUIT") if hasattr(signal, name)]
    # Not SIG_IGN: the program would have that from us.
    before = [signal.signal(number, _do_nothing) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """It is not for us."""


def could_not_run(command: Sequence[str], error: OSError) -> str:
    """Return the line that says so."""
    return f"{command[0]} could not be run: {error}"


def write_passing(text: str, suffix: str) -> Path:
    """Put a text into a new file that only the user can read; the caller removes it. Raises `OSError`."""
    import tempfile

    handle, name = tempfile.mkstemp(prefix="tenuto-", suffix=suffix)
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return Path(name)
