"""The `bash` tool."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import ShellView
from tenuto.protocol.part import TextPart
from tenuto.session.store import RunningCommand
from tenuto.session.view.pairing import interruption
from tenuto.text.bounding import shorten
from tenuto.tool.output import ToolOutput
from tenuto.tool.process.process import Collector, Stdin, find_shell, shell_environment, start_command
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError
from tenuto.tool.shell import ShellRun, run_shell

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import BashArguments

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
        from tenuto.guard.examine import examine_line  # brings the parser, which no start needs
        from tenuto.guard.readers.places import Place

        place = Place(
            root=str(context.workspace),
            cwd=os.path.realpath(context.cwd),
            environ=shell_environment(context.environ),
            is_bash=find_shell().endswith("bash"),
        )
        facts = examine_line(arguments.command, place)
        return ApprovalSubject(
            kind="execute",
            tool=self.name,
            summary=shorten(arguments.command, _SUMMARY_CHARS),
            detail=arguments.command,
            pattern=arguments.command,
            reads=facts.reads and not arguments.background,
            reason=facts.reason,
            commands=facts.commands,
            problem=facts.problem,
            writes=facts.writes,
        )

    async def run(self, arguments: BashArguments, context: ToolContext) -> ToolOutput:
        """Run the command, or start it as a background job."""
        if arguments.background:
            return await _start_job(arguments.command, arguments.stdin, context)
        limit = min(arguments.timeout or context.settings.bash_timeout, context.settings.bash_max_timeout)
        run = ShellRun(arguments.command, context.cwd, limit)
        context.when_stored[context.call_id] = partial(run.forget, context)
        try:
            await run_shell(
                run, context, context.emit, RunningCommand(call_id=context.call_id, command=arguments.command)
            )
        except asyncio.CancelledError:
            if not run.lines:
                raise
        if run.problem:
            raise ToolError(f"{run.problem} (working directory {context.cwd})")
        ending = "" if run.interrupted or run.timed_out else _ending(run)
        return ToolOutput(
            parts=(TextPart(text=_report(run)),),
            ui=(ShellView(command=run.command, exit_code=run.exit_code, ending=ending),),
            is_error=run.exit_code != 0,
            interrupted=run.interrupted,
            truncated=run.truncated,
            output_path=run.output_path if run.truncated else "",
            output_size=run.output_size if run.truncated else 0,
        )


def _ending(run: ShellRun) -> str:
    ending = f"Exit code {run.exit_code}"
    if run.timed_out:
        ending = f"Stopped after {run.timeout:g} s (time limit): the command and everything it had started was killed."
    return f"[{ending} · {run.cwd}]"


def _report(run: ShellRun) -> str:
    """Return the output and a last line that says how it ended and where it ran; of an interrupted one a first line."""
    if run.interrupted:
        return interruption(run.output, run.lines)
    lines = [run.output.rstrip("\n") or "(no output)", _ending(run)]
    if run.left_behind:
        log = f" Its output goes on in {run.output_path}." if run.output_path else ""
        lines.append(
            f"[Something it started still runs in the background (process group {run.left_behind}).{log} "
            f"To stop it: kill -- -{run.left_behind}]"
        )
    return "\n".join(lines)


async def _start_job(command: str, stdin: Stdin, context: ToolContext) -> ToolOutput:
    collector = Collector(lambda: context.new_output_path("log"))
    try:
        process = start_command(command, context.cwd, context.environ, collector, context.processes, stdin=stdin)
    except (OSError, ValueError) as error:
        raise ToolError(f"the command could not be started: {error}") from error
    job = context.jobs.add(command, process, asked_for=True)
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
        text = f"The background command ended at once with exit code {job.exit_code}.{so_far}"
    else:
        text = (
            f"Running in the background as {job.id}, process {job.pid}. Its output goes to {job.log}. The jobs tool "
            f"waits for it, reads on in its output and stops it; it ends with the session.{so_far}"
        )
    return ToolOutput(parts=(TextPart(text=text),), ui=(view,), is_error=bool(job.exit_code))
