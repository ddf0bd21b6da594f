"""The `jobs` tool: wait for background jobs, read on in their output, type into them, stop them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import ShellView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import shorten
from tenuto.text.matching import did_you_mean
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.tool.process.job_table import Job
    from tenuto.tool.run.arguments import JobsArguments

_SUMMARY_CHARS = 120
_ANSWER_SECONDS = 0.5
"""How long a job has to answer what was typed into it."""


class JobsTool(BuiltinTool):
    """Looks after what bash started in the background."""

    name = "jobs"
    parallel = False

    def subject(self, arguments: JobsArguments, context: ToolContext) -> ApprovalSubject:
        """Return what is typed, judged as a command is; all else concerns the session's own jobs and needs no leave."""
        if arguments.action != "write":
            return ApprovalSubject(kind="none", tool=self.name, summary=f"{arguments.action} {arguments.job}".strip())
        job = _find(arguments.job, context)
        summary = shorten(f"{job.id} < {arguments.text!r}", _SUMMARY_CHARS)
        detail = f"into {job.id} ({job.text}):\n{arguments.text}"
        leaves = f"types into {job.id}, which runs there" if job.is_outside else ""
        return ApprovalSubject(
            kind="execute",
            tool=self.name,
            summary=summary,
            detail=detail,
            confined=job.is_confined,
            leaves_sandbox=leaves,
        )

    async def run(self, arguments: JobsArguments, context: ToolContext) -> ToolOutput:
        """Do what was asked for; all but a list answers with what the job wrote since it was last looked at."""
        if arguments.action == "list":
            jobs = context.jobs.all()
            return _output("\n".join(job.describe() for job in jobs) or "There are no background jobs.")
        job = _find(arguments.job, context, waits=arguments.action == "wait")
        match arguments.action:
            case "wait":
                await _wait(job, arguments.seconds)
            case "stop":
                await context.jobs.end(job)
            case "write":
                await _type(job, arguments.text)
            case "output":
                pass
        job.reported = job.reported or not job.is_running
        news = job.take_news(context.max_chars, context.settings.max_output_lines)
        text = f"{job.describe()}\n{news}" if news else f"{job.describe()}\n(nothing new)"
        view = ShellView(command=job.text, exit_code=None if job.is_running else job.exit_code, background=True)
        return ToolOutput(parts=(TextPart(text=text),), ui=(view,))


def _output(text: str) -> ToolOutput:
    return ToolOutput(parts=(TextPart(text=text),))


def _find(name: str, context: ToolContext, *, waits: bool = False) -> Job:
    """Return the job of that name, or the only one there is. Raises `ToolError`."""
    jobs = context.jobs.all()
    if not jobs:
        raise ToolError("There are no background jobs; bash starts one with background.")
    candidates = [job for job in jobs if job.is_running] or jobs[-1:] if waits else jobs
    if not name and len(candidates) == 1:
        return candidates[0]
    names = [job.id for job in jobs]
    found = next((job for job in jobs if name in (job.id, job.id.rpartition("-")[2])), None)
    if found is None:
        said = f"There is no job “{name}”" if name else "Name the job"
        raise ToolError(f"{said}; there are {', '.join(names)}{did_you_mean(name, names)}.")
    return found


async def _wait(job: Job, seconds: float) -> None:
    """Wait for a job's end, or so long; a cancellation leaves the job running."""
    if not job.process.exited.done():
        await asyncio.wait({job.process.exited}, timeout=seconds)
    await job.process.settle()


async def _type(job: Job, text: str) -> None:
    """Type into a job and give it a moment to answer; no text is the end of its input. Raises `ToolError`."""
    if not job.is_running:
        raise ToolError(f"{job.id} has ended; nothing was typed.")
    try:
        job.process.type(text)
    except BlockingIOError:
        raise ToolError(f"{job.id} does not read what was typed before; nothing more was typed.") from None
    except OSError as error:
        raise ToolError(f"{job.id} takes no input ({error.strerror or error}); start it with stdin.") from None
    await asyncio.wait({job.process.exited}, timeout=_ANSWER_SECONDS)
