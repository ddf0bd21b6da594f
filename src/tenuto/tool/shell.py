"""Running one command from start to end: for the `bash` tool and for the person's own `!command`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from tenuto.tool.collector import Collector
from tenuto.tool.context import ToolContext
from tenuto.tool.live import LiveOutput
from tenuto.tool.process import DRAIN_SECONDS, Command, start_command

_REPORT_CHARS, _REPORT_LINES = 1_000, 6
"""Room that is left in a result for the notice and the lines that say how the command ended."""


class ShellRun(Struct):
    """A command and what became of it; the fields after `timeout` are filled in by `run_shell`, also when cancelled.

    `timeout` is seconds, `None` for no limit. `exit_code` is 128 + n for a shell that signal n ended, `None` when the
    command was killed or could not be started (then `problem` says why). `left_behind` names the process group of
    what still runs.
    """

    command: str
    cwd: Path
    timeout: float | None = None
    output: str = ""
    exit_code: int | None = None
    timed_out: bool = False
    truncated: bool = False
    output_path: str = ""
    output_size: int = 0
    left_behind: int = 0
    problem: str = ""


async def run_shell(run: ShellRun, context: ToolContext, emit: Callable[[str], None]) -> None:
    """Run the command to its end, its time limit or its cancellation; `emit` gets live output.

    Returns when the shell ends, whatever holds its pipe (R-077). A time limit or a cancellation ends the whole
    process tree first (R-078).
    """
    collector = Collector(context.new_output_path)
    live = LiveOutput(emit)
    try:
        process = start_command(run.command, run.cwd, context.environ, collector)
    except (OSError, ValueError) as error:
        run.problem = f"the command could not be started: {error}"
        return
    process.on_output = live.add
    try:
        await asyncio.wait({process.exited}, timeout=run.timeout)
        if process.exited.done():
            run.exit_code = process.exited.result()
        else:
            run.timed_out = True
            await process.end()
        await _drain(process)
    except asyncio.CancelledError:
        await process.end()
        await _drain(process)
        raise
    finally:
        process.on_output = None
        live.close()
        _finish(run, process, context)


async def _drain(process: Command) -> None:
    """Wait for the rest of the output, but not for a background child that keeps the pipe open."""
    try:
        await asyncio.wait_for(process.drained.wait(), DRAIN_SECONDS)
    except TimeoutError:
        return


def _finish(run: ShellRun, process: Command, context: ToolContext) -> None:
    """Take over the output, and hand what still runs to the job table."""
    job = context.jobs.add(run.command, process, asked_for=False) if process.leaves_something() else None
    if job is not None:
        run.left_behind = job.pid
    elif not process.exited.done():
        process.kill_now()
    limits = context.settings
    collected = process.collector.text(limits.max_output_chars - _REPORT_CHARS, limits.max_output_lines - _REPORT_LINES)
    if job is None:
        process.close()
    run.output = collected.text
    run.truncated = collected.truncated
    run.output_path = str(job.log) if job is not None and job.log is not None else collected.output_path
    run.output_size = collected.output_size
