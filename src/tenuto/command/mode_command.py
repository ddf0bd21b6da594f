"""/mode: show or change the approval mode."""

from __future__ import annotations

from typing import get_args

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.core.runtime import Runtime
from tenuto.protocol.entry import Mode
from tenuto.protocol.operation import ChangeModeOperation
from tenuto.text.nearest import did_you_mean

EXPLANATIONS: dict[Mode, str] = {
    "ask": "ask before each edit and each command",
    "edits": "edits in the working directory without asking",
    "auto": "edits and commands without asking",
    "plan": "only look and plan, change nothing",
}
MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)}


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Change to the mode that is named; without a name, offer all."""
    if not argument:
        present = runtime.live.mode
        rows = tuple(Choice(mode, mode, text, mode == present) for mode, text in EXPLANATIONS.items())
        return [Choose(f"Mode (now {present})", "mode", rows)]
    mode = MODES.get(argument)
    if mode is None:
        return [
            Say(
                f"There is no mode “{argument}”: there are {', '.join(MODES)}{did_you_mean(argument, MODES)}", "warning"
            )
        ]
    await runtime.submit(ChangeModeOperation(session_id=runtime.session_id, mode=mode))
    return []
