"""One hook command from start to end: JSON on its standard input, both outputs bounded, everything it started ended."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tenuto.extension.hooks.answers import Finished
from tenuto.guard.secrets import KNOWN, Secrets
from tenuto.guard.terminal import sanitize_output
from tenuto.text.figures import format_bytes
from tenuto.tool.process.process import Collector, Command, start_command

MAX_BYTES = 400_000
"""Of one output of a command; one that writes more is ended. It is less than a collector keeps in memory."""
_CHUNK = 65_536


async def run_hook(
    text: str,
    given: bytes,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    records: Path,
    timeout: float,
    secrets: Secrets = KNOWN,
) -> Finished:
    """Run a command to its end, its time limit (seconds), the limit of its outputs or its cancellation.

    Whatever ends it, everything that it started is ended too. `secrets` are masked in its standard output.
    """
    output, errors = Collector(None, secrets=secrets), _Errors()
    with tempfile.TemporaryFile() as file:
        try:
            file.write(given)
            file.seek(0)
            command = start_command(text, cwd, environ, output, records, reads=file.fileno(), errors=errors.writing)
        except (OSError, ValueError) as error:
            errors.close()
            return Finished(problem=f"it could not be started: {error}")
        finally:
            errors.close_writing()
    errors.begin()
    flooded = asyncio.Event()
    for collector, watch in ((output, command), (errors.collected, errors)):
        watch.on_output = partial(_check, collector, flooded)
    try:
        return await _wait(command, flooded, errors, timeout)
    finally:
        command.kill_now()
        command.close()
        errors.close()


async def _wait(command: Command, flooded: asyncio.Event, errors: _Errors, timeout: float) -> Finished:
    flood = asyncio.ensure_future(flooded.wait())
    try:
        await asyncio.wait((command.exited, flood), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        is_in_time = command.exited.done()
        await command.settle()
        errors.read_rest()
    finally:
        flood.cancel()
        if not command.exited.done() or command.leaves_something():
            await command.end()
    if flooded.is_set():
        return Finished(problem=f"it wrote more than {format_bytes(MAX_BYTES)}, so it was ended")
    if not is_in_time:
        return Finished(problem=f"no answer within {timeout:g} seconds, so it was ended")
    text = sanitize_output(errors.collected.kept.decode("utf-8", "replace"))
    return Finished(exit_code=command.exited.result(), output=command.collector.kept, errors=text)


def _check(collector: Collector, flooded: asyncio.Event, _chunk: bytes) -> None:
    if collector.size > MAX_BYTES:
        flooded.set()


class _Errors:
    """The standard error of one command: a pipe that is read as it fills."""

    def __init__(self) -> None:
        self.collected = Collector(None)
        self.on_output: Callable[[bytes], None] | None = None
        self._reading, self.writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._loop = asyncio.get_running_loop()

    def begin(self) -> None:
        """Read from now on: the command has its end of the pipe."""
        self._loop.add_reader(self._reading, self._read)

    def read_rest(self) -> None:
        """Take what stands in the pipe now."""
        for _ in range(2):  # a pipe holds one chunk
            if self._reading >= 0:
                self._read()

    def close_writing(self) -> None:
        """Let go of the end that the command has."""
        os.close(self.writing)

    def close(self) -> None:
        """Stop reading."""
        if self._reading >= 0:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            self._reading = -1

    def _read(self) -> None:
        try:
            chunk = os.read(self._reading, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        if not chunk:
            self.close()
            return
        self.collected.add(chunk)
        if self.on_output is not None:
            self.on_output(chunk)
