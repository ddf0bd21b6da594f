"""Running one command from start to end: for the `bash` tool and for the user's own `!command`."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.session.store import RunningCommand
from tenuto.text.bounding import cut_tail
from tenuto.tool.output import format_size
from tenuto.tool.process.process import (
    DRAIN_SECONDS,
    Collector,
    Command,
    find_shell,
    shell_environment,
    start_command,
)
from tenuto.tool.run.context import ToolContext
from tenuto.tool.run.editor import Editor, EditorError, HostedCommand

if TYPE_CHECKING:
    from tenuto.guard.sandbox.sandbox import Confined

_FLUSH_SECONDS = 0.1
_FLUSH_BYTES = 16_384
"""Characters of one flush: the screen shows the end of a flood, the file has all of it."""
_LONGEST_SEQUENCE = 256


class LiveOutput:
    """Gathers chunks and hands their text to `emit` about ten times a second."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = bytearray()
        self._unfinished = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._pending += chunk
        if len(self._pending) > 2 * _FLUSH_BYTES:
            del self._pending[:-_FLUSH_BYTES]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._flush)

    def close(self) -> None:
        """Hand over what is left and fall silent."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        self._emit = _discard

    def _flush(self) -> None:
        self._timer = None
        text = self._unfinished + self._decoder.decode(bytes(self._pending))
        self._pending.clear()
        # A sequence that the flush cut in two must not lose its beginning and show its end.
        escape = text.rfind("\x1b", max(len(text) - _LONGEST_SEQUENCE, 0))
        self._unfinished = text[escape:] if escape >= 0 and _is_unfinished(text[escape:]) else ""
        text = cut_tail(text[: len(text) - len(self._unfinished)], _FLUSH_BYTES)
        safe = sanitize_for_terminal(text.replace("\r\n", "\n").replace("\r", "\n"))
        if safe:
            self._emit(safe)


def _is_unfinished(sequence: str) -> bool:
    """Whether a text that begins with ESC has not reached the end of its sequence."""
    if len(sequence) == 1:
        return True
    if sequence[1] == "[":
        return not any("@" <= char <= "~" for char in sequence[2:])
    if sequence[1] in "]PX^_":
        return not any(char in "\x07\x9c\n" for char in sequence)
    return False


def _discard(_: str) -> None:
    """The call is over."""


_REPORT_CHARS, _REPORT_LINES = 1_000, 6
"""Room that is left in a result for the notice and the lines that say how the command ended."""
HOSTED_BYTES = 1_000_000
"""Bytes of its output that a terminal of an editor is asked to keep."""
_NOTE_SECONDS = 0.2
"""A command that takes longer is written down beside the log, and its output goes to a file as it comes."""


class ShellRun(Struct):
    """A command and what became of it; the fields after `timeout` are filled in by `run_shell`, also when cancelled.

    `timeout` is seconds, `None` for no limit. `exit_code` is 128 + n for a shell that signal n ended, `None` when the
    command was killed or could not be started (then `problem` says why). `interrupted` says that it was cancelled, and
    `lines` how many it had written. `left_behind` names the process group of what still runs, `moved_to` the job that
    the user made of it. `noted` is the name
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
    moved_to: str = ""
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


async def run_shell(
    run: ShellRun,
    context: ToolContext,
    environ: Mapping[str, str],
    emit: Callable[[str], None],
    note: RunningCommand,
    *,
    confined: Confined | None = None,
    may_move: bool = False,
) -> None:
    """Run the command in `environ` to its end, its time limit or its cancellation; `emit` gets live output.

    With `may_move` the user can make a background job of it meanwhile.

    `confined` is how the sandbox holds it, `None` for a command of the user or one that runs outside.

    `note` stands beside the log while it runs, for the next open after a `kill -9`; `ShellRun.forget` removes it.
    Returns when the shell ends, whatever holds its pipe (R-077). A time limit or a cancellation ends the whole
    process tree first (R-078).
    """
    collector = Collector(partial(_noted_path, run, context, note), spool_limit=context.spool_room())
    live = LiveOutput(emit)
    try:
        process = start_command(
            *(run.command, run.cwd, environ, collector, context.processes),
            confined=confined,
            limits=context.limits,
        )
    except (OSError, ValueError) as error:
        run.problem = not_started(error, run.cwd)
        return
    process.on_output = live.add
    loop = asyncio.get_running_loop()
    noting = loop.call_later(_NOTE_SECONDS, collector.spool)
    moved: asyncio.Future[None] = loop.create_future()
    if may_move:
        context.waited_for.add(moved)
    try:
        await asyncio.wait({process.exited, moved}, timeout=run.timeout, return_when=asyncio.FIRST_COMPLETED)
        if process.exited.done():
            run.exit_code = process.exited.result()
        elif moved.done():
            run.moved_to = context.jobs.add(run.command, process, asked_for=True).id
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
        context.waited_for.discard(moved)
        noting.cancel()
        process.read_rest()
        process.on_output = None
        live.close()
        _finish(run, process, context)


async def run_in_editor(run: ShellRun, context: ToolContext, editor: Editor) -> None:
    """Run the command in a terminal of the editor, which the user watches; for one that no sandbox holds.

    It gets the environment that commands get here; the secrets that are left out of it are empty in the editor's.
    """
    collector = Collector(context.new_output_path, spool_limit=context.spool_room())
    environ = shell_environment(context.command_environ)
    left_out = {name: "" for name in context.environ if name not in environ}  # a terminal cannot be told to unset it
    command = HostedCommand(
        call_id=context.call_id,
        words=(find_shell(), "-c", run.command),
        cwd=run.cwd,
        environ={**environ, **left_out},
        timeout=run.timeout,
        max_bytes=HOSTED_BYTES,
    )
    try:
        end = await editor.run(command)
    except EditorError as error:
        run.problem = f"the editor's terminal could not run it: {error}"
        return
    except asyncio.CancelledError:
        run.interrupted = True
        raise
    collector.add(end.output.encode("utf-8", "replace"))
    run.exit_code, run.timed_out = end.exit_code, end.timed_out
    collected = collector.text(context.max_chars - _REPORT_CHARS, context.settings.max_output_lines - _REPORT_LINES)
    collector.close()
    run.output, run.lines = collected.text, collector.line_count
    run.truncated, run.output_path, run.output_size = collected.truncated, collected.output_path, collected.output_size
    if end.truncated:
        run.output = f"[The terminal kept the last {format_size(HOSTED_BYTES)} of the output only.]\n{run.output}"


def not_started(error: OSError | ValueError, cwd: Path) -> str:
    """Return why a command could not be started: most often the directory that it would run in is gone."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"the command could not be started: {reason if cwd.is_dir() else 'its working directory is gone'}"


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
    job = next((job for job in context.jobs.all() if job.id == run.moved_to), None)
    if job is None and process.leaves_something():
        job = context.jobs.add(run.command, process, asked_for=False)
    if job is not None and run.moved_to:
        job.seen = process.collector.size
    elif job is not None:
        run.left_behind = job.pid
    elif not process.exited.done():
        process.kill_now()
    most_chars, most_lines = context.max_chars, context.settings.max_output_lines
    collected = process.collector.text(most_chars - _REPORT_CHARS, most_lines - _REPORT_LINES)
    if job is None:
        process.close()
    run.output = collected.text
    run.lines = process.collector.line_count
    run.truncated = collected.truncated
    run.output_path = str(job.log) if job is not None and job.log is not None else collected.output_path
    run.output_size = collected.output_size
