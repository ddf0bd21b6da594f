"""The `bash` tool."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tenuto.guard.subject import ApprovalSubject, SimpleCommand
from tenuto.protocol.message import ShellView
from tenuto.protocol.part import TextPart
from tenuto.session.store import RunningCommand
from tenuto.session.view.pairing import interruption
from tenuto.text.bounding import shorten
from tenuto.tool.output import ToolOutput
from tenuto.tool.process.process import Collector, find_shell, shell_environment, start_command
from tenuto.tool.run.confining import HeldCommand, hold_command
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError
from tenuto.tool.shell import ShellRun, not_started, run_in_editor, run_shell

if TYPE_CHECKING:
    from tenuto.tool.process.job_table import Job
    from tenuto.tool.run.arguments import BashArguments

_JOB = (
    "{job.id}, process {job.pid}. Its output goes to {job.log}. The jobs tool waits for it, reads on in its output and "
    "stops it; it ends with the session."
)
_SUMMARY_CHARS = 200
_FIRST_LOOK_SECONDS = 0.5
"""How long a background job is watched before the call returns: long enough to see it fail at once."""


class BashTool(BuiltinTool):
    """Runs commands; never two at the same time that change something: they may depend on each other."""

    name = "bash"
    parallel = False

    def may_share(self, arguments: BashArguments) -> bool:
        """A background job may not: what comes behind it may be about it."""
        return not arguments.background

    def subject(self, arguments: BashArguments, context: ToolContext) -> ApprovalSubject:
        """Return the command, with what is known of it: where its words lead is looked up here."""
        if not arguments.command.strip():
            raise ToolError("The command is empty; nothing was run.")
        if "\0" in arguments.command:
            raise ToolError("The command contains a NUL byte; nothing was run.")
        subject = command_subject(arguments.command, context.cwd, context.places, context.command_environ)
        return msgspec.structs.replace(
            subject, reads=subject.reads and not arguments.background, **_sandbox_facts(arguments, context)
        )

    async def run(self, arguments: BashArguments, context: ToolContext) -> ToolOutput:
        """Run the command, or start it as a background job."""
        if arguments.background:
            return await _start_job(arguments, context)
        limit = min(arguments.timeout or context.settings.bash_timeout, context.settings.bash_max_timeout)
        run = ShellRun(arguments.command, context.cwd, limit)
        held = _hold(arguments, context)
        context.when_stored[context.call_id] = partial(run.forget, context)
        note = RunningCommand(call_id=context.call_id, command=arguments.command)
        try:
            if context.editor is not None and context.editor.has_terminals and held.confined is None:
                await run_in_editor(run, context, context.editor)
            else:
                await run_shell(
                    run, context, context.command_environ, context.emit, note, confined=held.confined, may_move=True
                )
        except asyncio.CancelledError:
            if not run.lines:
                held.report("", None)
                raise
        if run.problem:
            raise ToolError(f"{run.problem} (working directory {context.cwd})")
        if run.moved_to:
            return _moved(run, context, held, arguments)
        ending = "" if run.interrupted or run.timed_out else _ending(run)
        said = held.report(run.output, run.exit_code)
        return ToolOutput(
            parts=(TextPart(text="\n".join((_report(run, is_held=held.confined is not None), *said))),),
            ui=(ShellView(command=run.command, exit_code=run.exit_code, ending=ending),),
            is_error=run.exit_code != 0,
            interrupted=run.interrupted,
            truncated=run.truncated,
            output_path=run.output_path if run.truncated else "",
            output_size=run.output_size if run.truncated else 0,
        )


def _sandbox_facts(arguments: BashArguments, context: ToolContext) -> dict[str, Any]:
    """Return what the guard has to know: whether the sandbox holds the command, or why it is to run outside."""
    if context.sandbox is None or not context.sandbox.holds:
        return {}
    reason = " ".join(arguments.outside.split())
    return {"leaves_sandbox": shorten(reason, _SUMMARY_CHARS)} if reason else {"confined": True}


def _hold(arguments: BashArguments, context: ToolContext) -> HeldCommand:
    try:
        return hold_command(context, outside=bool(arguments.outside.strip()))
    except (OSError, ValueError) as error:
        raise ToolError(f"the sandbox could not be made, so nothing was run: {error}") from error


def command_subject(command: str, cwd: Path, places: Sequence[str], environ: Mapping[str, str]) -> ApprovalSubject:
    """Return what a command line amounts to in a directory; `places` are the workspace's, its own one first."""
    from tenuto.guard.examine import examine_line  # brings the parser, which no start needs
    from tenuto.guard.readers.places import Place

    place = Place(
        root=places[0],
        added=tuple(places[1:]),
        cwd=os.path.realpath(cwd),
        environ=shell_environment(environ),
        is_bash=find_shell().endswith("bash"),
    )
    facts = examine_line(command, place)
    return ApprovalSubject(
        kind="execute",
        tool=BashTool.name,
        summary=shorten(command, _SUMMARY_CHARS),
        detail=command,
        paths=_named_paths(facts.commands, cwd),
        reads=facts.reads,
        reason=facts.reason,
        commands=facts.commands,
        problem=facts.problem,
        writes=facts.writes,
    )


def _named_paths(commands: Sequence[SimpleCommand], cwd: Path) -> tuple[str, ...]:
    """Return where the words of commands lead that name something on disk: rules on paths may deny them."""
    words = dict.fromkeys(word for each in commands for word in each.words[1:] if word)
    found = (os.path.join(cwd, os.path.expanduser(word)) for word in words)  # noqa: PTH111, PTH118 - many words
    return tuple(os.path.realpath(path) for path in found if os.path.lexists(path))


def _ending(run: ShellRun) -> str:
    ending = f"Exit code {run.exit_code}"
    if run.timed_out:
        ending = f"Stopped after {run.timeout:g} s (time limit): the command and everything it had started was killed."
    return f"[{ending} · {run.cwd}]"


def _report(run: ShellRun, *, is_held: bool) -> str:
    """Return the output and a last line that says how it ended and where it ran; of an interrupted one a first line."""
    if run.interrupted:
        return interruption(run.output, run.lines)
    lines = [run.output.rstrip("\n") or "(no output)", _ending(run)]
    if run.left_behind:
        log = f" Its output goes on in {run.output_path}." if run.output_path else ""
        lines.append(
            f"[Something it started still runs in the background (process group {run.left_behind}).{log} "
            f"To stop it: {'the jobs tool' if is_held else f'kill -- -{run.left_behind}'}]"
        )
    return "\n".join(lines)


def _moved(run: ShellRun, context: ToolContext, held: HeldCommand, arguments: BashArguments) -> ToolOutput:
    """Return the result of a command that the user has moved to the background."""
    job = next(job for job in context.jobs.all() if job.id == run.moved_to)
    _note_job(job, context, held, arguments)
    so_far = f"\nOutput so far:\n{run.output.rstrip()}" if run.output.strip() else ""
    text = f"The user moved this command to the background: {_JOB.format(job=job)}{so_far}"
    return ToolOutput(
        parts=(TextPart(text=text),), ui=(ShellView(command=run.command, exit_code=None, background=True),)
    )


def _note_job(job: Job, context: ToolContext, held: HeldCommand, arguments: BashArguments) -> None:
    job.is_confined = held.confined is not None
    job.is_outside = "leaves_sandbox" in _sandbox_facts(arguments, context)
    job.process.exited.add_done_callback(lambda _exited: job.remarks.extend(held.remarks()))


async def _start_job(arguments: BashArguments, context: ToolContext) -> ToolOutput:
    command = arguments.command
    held = _hold(arguments, context)
    collector = Collector(lambda: context.new_output_path("log"), spool_limit=context.spool_room())
    try:
        process = start_command(
            *(command, context.cwd, context.command_environ, collector, context.processes),
            stdin=arguments.stdin,
            confined=held.confined,
            limits=context.limits,
        )
    except (OSError, ValueError) as error:
        raise ToolError(not_started(error, context.cwd)) from error
    job = context.jobs.add(command, process, asked_for=True)
    _note_job(job, context, held, arguments)
    is_interrupted = False
    try:
        await asyncio.wait({process.exited}, timeout=_FIRST_LOOK_SECONDS)
    except asyncio.CancelledError:
        is_interrupted = True
        await context.jobs.end(job)
        if not collector.size:
            raise
    output = collector.text(context.max_chars, context.settings.max_output_lines).text.rstrip("\n")
    job.seen = collector.size
    view = ShellView(command=command, exit_code=job.exit_code, background=True)
    if is_interrupted:
        job.reported = True
        text = interruption(output, collector.line_count, str(job.log or ""))
        return ToolOutput(parts=(TextPart(text=text),), ui=(view,), is_error=True, interrupted=True)
    so_far = f"\nOutput so far:\n{output}" if output else ""
    if job.exit_code is not None and not job.is_running:
        job.reported = True
        said = "".join(f"\n{line}" for line in held.report(output, job.exit_code))
        text = f"The background command ended at once with exit code {job.exit_code}.{so_far}{said}"
    else:
        text = f"Running in the background as {_JOB.format(job=job)}{so_far}"
    return ToolOutput(parts=(TextPart(text=text),), ui=(view,), is_error=bool(job.exit_code))
