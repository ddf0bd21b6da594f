"""The processes of a job: a shell line that is run to its end, or until its time is over, with nothing left of it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from msgspec import Struct

from tenuto.guard.sandbox.sandbox import Confined
from tenuto.text.bounding import shorten
from tenuto.tool.process.process import Collector, CommandLimits, start_command

PARTING_SECONDS = 1.6
"""How long a child has to end in order. Less than the program itself has after a signal (`ending.py`)."""


class Ended(Struct, frozen=True):
    """How a child ended. `code` is `None` where it took too long; over 128 a signal has ended it."""

    code: int | None
    output: bytes

    @property
    def last_line(self) -> str:
        """The last line of what it printed, shortened."""
        return last_line(self.output)

    def describe(self, seconds: float) -> str:
        """Return how it ended and what it said last; `seconds` is the time that it had."""
        how = f"ended with {self.code}" if self.code is not None else f"took more than {seconds:g} s"
        return f"{how}: {self.last_line}" if self.last_line else how


async def run_child(
    line: str,
    cwd: Path,
    environ: Mapping[str, str],
    scratch: Path,
    seconds: float | None,
    *,
    reads: IO[bytes] | None = None,
    errors: IO[bytes] | None = None,
    confined: Confined | None = None,
) -> Ended:
    """Run a shell line to its end, or until its time is over; nothing that it started is left.

    It ends when what started it does, however suddenly. Files of the program's own go to `scratch`.
    """
    collector = Collector(lambda: Path(tempfile.mkdtemp(dir=scratch)) / "output")
    command = start_command(
        line,
        cwd,
        environ,
        collector,
        scratch / "running",
        confined=confined,
        limits=CommandLimits(0, 0),
        reads=reads.fileno() if reads else None,
        errors=errors.fileno() if errors else None,
    )
    try:
        await asyncio.wait({command.exited}, timeout=seconds)
        code = command.exited.result() if command.exited.done() else None
        await command.settle()
    finally:
        await command.end(PARTING_SECONDS)
        command.close()
    return Ended(code, collector.path.read_bytes() if collector.path else collector.kept)


def last_line(output: bytes) -> str:
    """Return the last line of what a program printed, shortened."""
    lines = output.decode("utf-8", "replace").strip().split("\n")
    return shorten(lines[-1].removeprefix("tenuto: "), 300)
