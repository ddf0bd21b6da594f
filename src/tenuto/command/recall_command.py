"""/recall: find what was said or done in this session, however long ago."""

from __future__ import annotations

import asyncio

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.protocol.entry import SEARCHING_KIND
from tenuto.tool.errors import ToolError
from tenuto.tool.output import clean_text
from tenuto.tool.recalling import Question, Span, recall
from tenuto.tool.search import run_stoppable

PATIENCE = 0.5
"""Seconds of a search after which it is said to go on."""


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Search the active path for words or a `/regular expression/`, or show entries by their `#seq`."""
    if not argument:
        return [Say("Say what to look for: /recall WORDS, /recall /REGEX/, or /recall #120-140.", "warning")]
    session = runtime.live.session
    entries, outputs = session.path(), session.store.outputs
    try:
        question = parse_question(argument)
        search = asyncio.ensure_future(run_stoppable(lambda stop: recall(question, entries, outputs, stop)))
        text = await _wait_for(search, runtime)
    except ToolError as error:
        raise UsageError(str(error)) from error
    return [Say(clean_text(text))]


async def _wait_for(search: asyncio.Future[str], runtime: Runtime) -> str:
    """Return what was found; a search that takes its time is said to go on."""
    try:
        if not (await asyncio.wait({search}, timeout=PATIENCE))[0]:
            count = runtime.live.session.highest_seq
            runtime.live.notify(f"Searching {count:,} entries of the session …", kind=SEARCHING_KIND)
        return await search
    except asyncio.CancelledError:
        search.cancel()
        raise


def parse_question(argument: str) -> Question:
    """Return what the user asks for. Raises `ToolError`."""
    if argument.startswith("#"):
        return Question(span=Span.parse(argument), private=True)
    if len(argument) > 2 and argument.startswith("/") and argument.endswith("/"):
        return Question(query=argument[1:-1], regex=True, private=True)
    return Question(query=argument, private=True)
