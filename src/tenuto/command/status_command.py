"""/status: where this session stands, with what, and what it was told beforehand."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.config.instructions import read_instructions
from tenuto.core.reminders import current_branch
from tenuto.core.runtime import Runtime
from tenuto.text.figures import plural
from tenuto.version import __version__


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show it as rows of a name and a value."""
    del argument
    live = runtime.live
    state, size, budget = live.session.state, live.measure(), live.budget()
    share = f", {100 * size.tokens // budget.window} % of {budget.window:,}" if budget.window else ""
    rows = [
        ("version", f"Tenuto {__version__}"),
        ("session", f"{live.id}{f' “{state.title}”' if state.title else ''}"),
        ("", f"{plural(state.messages, 'message')}, {plural(state.compactions, 'compaction')}"),
        ("saved in", "nowhere: it is gone at the end" if runtime.temporary else str(live.session.directory)),
        ("directory", _place(runtime)),
        ("model", f"{live.facts.id}{f', effort {live.effort}' if live.effort else ''}"),
        ("mode", live.mode),
        ("context", f"{'~' if size.estimated else ''}{size.tokens:,} tokens{share}"),
        ("queue", f"{len(state.queue)} waiting, {plural(len(live.tool_context.jobs.running()), 'background job')}"),
        *_instructions(runtime),
        ("home", str(runtime.home)),
    ]
    return [Say("\n".join(f"{name:<12} {value}" for name, value in rows))]


def _place(runtime: Runtime) -> str:
    cwd = runtime.live.session.cwd
    branch = current_branch(cwd)
    return f"{cwd} (git branch {branch})" if branch else str(cwd)


def _instructions(runtime: Runtime) -> list[tuple[str, str]]:
    """Return a row for each instruction file that holds here, the most general first."""
    found = read_instructions(runtime.home, runtime.live.session.cwd)
    files = found.files
    rows = [f"{file.path} ({len(file.text):,} characters{', cut' if file.truncated else ''})" for file in files]
    rows += found.problems
    names = ["instructions", *[""] * len(rows)]
    return list(zip(names, rows or ["none · /init creates AGENTS.md"], strict=False))
