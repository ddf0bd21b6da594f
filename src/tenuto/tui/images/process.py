"""Running a small helper program of the system: bounded in time, its output taken as bytes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

TIMEOUT = 5.0
"""Seconds that a program has to answer."""


Which = Callable[[str], str | None]
"""What finds a program."""


def find_program(name: str) -> str | None:
    """Return where a program of the system is, `None` where there is none."""
    from shutil import which  # with all that compresses: 2 ms that no start has to wait for

    return which(name)


async def run_helper(command: Sequence[str], environ: Mapping[str, str], timeout: float = TIMEOUT) -> bytes | None:
    """Return what the program printed; `None` when it cannot be run, fails, or takes longer than `timeout` seconds."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environ),
        )
    except (OSError, ValueError):
        return None
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            return None
        raise
    return output if process.returncode == 0 else None
