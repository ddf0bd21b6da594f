"""Commands on hooks: which there are, where they stand, what they did last."""

from __future__ import annotations

import time

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.runtime import Runtime
from tenuto.text.bounding import shorten
from tenuto.text.figures import format_seconds

COMMAND_CHARS = 80
NONE = "No hooks. docs/hooks.md says how to have a command asked before a call, at a prompt or at the end of a turn."


async def run_hooks(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List them with their file and what became of the last call of each."""
    del argument
    hooks = runtime.live.hooks
    if hooks is None:
        return [Say(NONE)]
    from tenuto.extension.hooks.files import EVENTS
    from tenuto.extension.hooks.trusting import STATES

    await hooks.ready()
    await hooks.judge()
    rows: list[str] = []
    for command in sorted(hooks.read.commands, key=lambda one: EVENTS.index(one.event)):
        outcome = hooks.outcomes.get(command)
        if state := STATES[hooks.verdicts[command]]:
            last = f"{state}; /trust decides"
        elif outcome is None:
            last = "not asked yet"
        else:
            last = f"{outcome.text}, {format_seconds(time.time() - outcome.when)} ago"
        which = f" {command.matcher}" if command.matcher not in ("", "*") else ""
        rows.append(f"{command.event}{which}: {shorten(command.command, COMMAND_CHARS)}")
        rows.append(f"  {command.file.path} · {last}")
    rows += [f"Left out: {problem}" for problem in hooks.read.problems]
    return [Say("\n".join(rows) or NONE)]
