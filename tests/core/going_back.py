"""Conversations in which somebody goes back: what is said, and what must hold of the session afterwards."""

from __future__ import annotations

import asyncio
import re

from tenuto.command.outcome import CommandOutcome
from tenuto.protocol.message import HistoryEvent, UserMessage
from tenuto.protocol.part import text_of
from tenuto.session.view.projection import project
from tenuto.tui.machine.step import step
from tenuto.tui.state.item import BaseItem
from tenuto.tui.state.state import UiState
from tests.core.compacting import is_summary_request, log_of
from tests.core.harness import Agent
from tests.server import Call, Reply, Request
from tests.session.build import check_pairs

NOTE = re.compile(r"<harness-note>.*?</harness-note>", re.DOTALL)
NOTES = "## Goal\nNOTES-NONCE\n\n## Progress\n### Done\n- [x] tried it\n\n## Next Steps\n1. try it again"


def said(request: Request) -> str:
    """The user's last text in a request, without notes of the harness."""
    bare = (NOTE.sub("", item.text).strip() for item in reversed(request.items) if item.kind == "user")
    return next(text for text in bare if text)


def script(request: Request) -> Reply:
    """Answer what was asked: `write NAME TEXT`, `edit NAME OLD NEW`, `read NAME`; anything else is repeated."""
    if is_summary_request(request):
        return Reply(NOTES)
    if any(item.kind == "result" for item in request.turn):
        return Reply("done")
    verb, _, rest = said(request).partition(" ")
    match verb:
        case "write":
            name, _, content = rest.partition(" ")
            return Reply(tool_calls=[Call("write", {"path": name, "content": content})])
        case "edit":
            name, old, new = rest.split(" ")
            return Reply(tool_calls=[Call("edit", {"path": name, "old_string": old, "new_string": new})])
        case "read":
            return Reply(tool_calls=[Call("read", {"path": name}) for name in rest.split()])
        case _:
            return Reply(f"You said {said(request)}.")


async def command(running: Agent, line: str) -> list[CommandOutcome]:
    """Run a slash command and wait until the session is at rest."""
    outcomes = await asyncio.wait_for(running.runtime.run_command(line), 30)
    await asyncio.wait_for(running.runtime.wait_settled(), 30)
    return outcomes


def message(running: Agent, text: str) -> UserMessage:
    """The newest message of the user that begins with a text, on whatever branch."""
    found = [
        entry
        for entry in running.session.entries()
        if isinstance(entry, UserMessage) and text_of(entry.parts).startswith(text)
    ]
    return found[-1]


def texts(entries: list[HistoryEvent]) -> list[str]:
    """What the user said among some entries, without notes of the harness."""
    return [text_of(entry.parts).split("\n")[0] for entry in entries if isinstance(entry, UserMessage)]


def view_texts(running: Agent) -> list[str]:
    return texts(list(running.session.get_llm_history()))


def check(running: Agent, before: bytes = b"") -> bytes:
    """The view is the projection, calls have results, and the log was only appended to; return the log."""
    session = running.session
    assert session.get_llm_history() == project(list(session.path()), session.state.model)
    check_pairs(session.get_llm_history())
    log = log_of(running)
    assert log.startswith(before)
    return log


def transcript(running: Agent) -> list[BaseItem]:
    """What the screen shows after all events so far, without the ids."""
    state = UiState()
    for event in running.events:
        state, _ = step(state, event, 0.0, 80)
    items = state.transcript.ordered()
    for item in items:
        item.id = item.version = 0
    return items
