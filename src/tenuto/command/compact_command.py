"""/compact: summarise the older part of the conversation now, look at that first, or undo it."""

from __future__ import annotations

import re

from tenuto.command.outcome import CommandOutcome
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import CompactSessionOperation

UNDO = re.compile(r"(?:undo|redo|undo fork|undo drop|undo up-to(?: #?\d+)?)\Z")
CHOSEN = re.compile(r"(up-to|from)(?:\s+#?(\d+)(?:\s+(.*))?)?\Z", re.DOTALL)
"""A focus may begin with these words as well; with a number behind it, or nothing, it is a message that is meant."""
PROPOSED = re.compile(r"(accept|edit|drop)(?:\s+(.*))?\Z", re.DOTALL)


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Start a compaction; the argument is extra guidance for the summary, unless it is a word that means more."""
    words = " ".join(argument.lower().split())
    if UNDO.match(words):
        from tenuto.command.compact_undo import run_undo

        return await run_undo(runtime, words)
    if argument == "--preview" or argument.startswith("--preview "):
        from tenuto.command.compact_preview import run_preview

        return await run_preview(runtime, argument.removeprefix("--preview").strip())
    proposed = PROPOSED.match(argument)
    if proposed is not None and (runtime.live.pending is not None or not proposed[2]):
        from tenuto.command.compact_preview import run_answer

        return await run_answer(runtime, proposed[1], proposed[2] or "")
    chosen = CHOSEN.match(argument)
    if chosen is not None:
        from tenuto.command.compact_choose import run_chosen

        return await run_chosen(runtime, chosen[1], int(chosen[2] or 0), chosen[3] or "")
    if runtime.executor.tasks.running(runtime.session_id) is None and not runtime.live.submissions:
        from tenuto.command.compact_choose import ask_about_gain

        question = await ask_about_gain(runtime, argument)
        if question is not None:
            return [question]
    await runtime.submit(
        CompactSessionOperation(session_id=runtime.session_id, reason="manual", focus=argument or None)
    )
    return []
