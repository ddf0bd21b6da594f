"""Running one command from start to end: for the `bash` tool and for the user's own `!command`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from tenuto.session.running import RunningCommand
from tenuto.tool.collector import Collector
from tenuto.tool.context import ToolContext
from tenuto.tool.live import LiveOutput
from tenuto.tool.process import DRAIN_SECONDS, Command, start_command

_REPORT_CHARS, _REPORT_LINES = 1_000, 6
"""Room that is left in a result for the notice and the lines that say how the command ended."""
_NOTE_SECONDS = 0.2
"""A command that takes longer is written down beside the log, and its output goes to a file as it comes."""


class ShellRun(Struct):
    """A command and what became of it; the fields after `timeout` are filled in by `run_shell`, also when cancelled.

    `timeout` is seconds, `None` for no limit. `exit_code` is 128 + n for a shell that signal n ended, `None` when the
    command was killed or could not be started (then `problem` says why). `interrupted` says that it was cancelled, and
    `lines` how many it had written. `left_behind` names the process group of what still runs. `noted` is the name
    under which it is written down beside the log until `forget`, empty for one that was too short.
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
    interrupted: bool = False
    lines: int = 0
    noted: str = ""

    def forget(self, context: ToolContext) -> None:
        """The outcome is in the log: remove what was written down beside it, with a file that nothing names."""
        if not self.noted:
            return
        if not self.output_path:
            with contextlib.suppress(OSError):
                (context.outputs / self.noted).unlink(missing_ok=True)
        context.session.store.running.forget(self.noted)


async def run_shell(run: ShellRun, context: ToolContext, emit: Callable[[str], None], note: RunningCommand) -> None:
    """Run the command to its end, its time limit or its cancellation; `emit` gets live output.

    `note` is written down while it runs, for whoever opens the session after a `kill -9`; `ShellRun.forget` removes it.
    Returns when the shell ends, whatever holds its pipe (R-077). A time limit or a cancellation ends the whole
    process tree first (R-078).
    """
    collector = Collector(partial(_noted_path, run, context, note))
    live = LiveOutput(emit)
    try:
        process = start_command(run.command, run.cwd, context.environ, collector, context.processes)
    except (OSError, ValueError) as error:
        run.problem = f"the command could not be started: {error}"
        return
    process.on_output = live.add
    noting = asyncio.get_running_loop().call_later(_NOTE_SECONDS, collector.spool)
    try:
        await asyncio.wait({process.exited}, timeout=run.timeout)
        if process.exited.done():
            run.exit_code = process.exited.result()
        else:
            run.timed_out = True
            await process.end()
        await _drain(process)
    except asyncio.CancelledError:
        run.interrupted = True
        await process.end()
        await _drain(process)
        raise
    finally:
        noting.cancel()
        process.read_rest()
        process.on_output = None
        live.close()
        _finish(run, process, context)


def _noted_path(run: ShellRun, context: ToolContext, note: RunningCommand) -> Path:
    """Return a path for the output, and write down that the command runs and writes there."""
    path = context.new_output_path()
    run.noted = path.name
    context.session.store.running.note(run.noted, msgspec.structs.replace(note, output=path.name))
    return path


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
    run.lines = process.collector.line_count
    run.truncated = collected.truncated
    run.output_path = str(job.log) if job is not None and job.log is not None else collected.output_path
    run.output_size = collected.output_size
