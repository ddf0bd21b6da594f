"""Conversations that need compacting, what a server answers to them, and what must hold of every request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tenuto.compaction.summary.prompts import SAME_PREFIX
from tenuto.protocol.message import CompactionEntry, SystemMessage, UserMessage
from tenuto.protocol.model import ModelFacts
from tenuto.protocol.operation import CompactSessionOperation, InterruptOperation
from tenuto.protocol.part import TextPart
from tenuto.session.session import Session
from tests.core.harness import Agent
from tests.server import Call, Reply, Request, ScriptedServer
from tests.server.reply import AnyReply

SUMMARY = """## Goal
Keep the tests green.

## Constraints & Preferences
- none

## Progress
### Done
- [x] looked around

### In Progress
- [ ] the rest

### Blocked

## Key Decisions
- **small steps**: easier to check

## Next Steps
1. go on

## Critical Context
- what was learned on the way: the first tests were slow because of the large files
- the others are quick, and nobody else works on this part at the moment
- so nothing has to be agreed with others before it is changed, and the work can go on at once"""
TURN_PREFIX = """## Original Request
mend it

## Progress So Far
- looked

## Context Needed to Continue
- what was learned on the way: the first tests were slow because of the large files
- the others are quick, and nobody else works on this part at the moment
- so nothing has to be agreed with others before it is changed, and the work can go on at once"""
IN_PLACE = SAME_PREFIX.partition("\n")[0][:60]
FROM_A_TRANSCRIPT = {"TENUTO_COMPACTION__SAME_PREFIX": "false"}
"""For what is asked of a summary that is made from a transcript (rung 4)."""
LONG_ANSWER = "fine " * 600
"""About 750 tokens."""

Answer = AnyReply | Callable[[Request], AnyReply]


def words(tokens: int) -> str:
    """Return prose of about this many tokens."""
    return ("word and " * (tokens * 4 // 9 + 1))[: tokens * 4]


def is_summary_request(request: Request) -> bool:
    """Summary requests carry no tools, or are a step's request with one message more."""
    return not request.body.get("tools") or is_in_place(request)


def is_in_place(request: Request) -> bool:
    """Say whether the model is asked to summarise what it has before it."""
    return any(IN_PLACE in item.text for item in request.items[-3:] if item.kind == "user")


def is_prefix_request(request: Request) -> bool:
    """Say whether a summary request is for the first part of a split turn."""
    return is_summary_request(request) and "## Original Request" in request.items[-1].text


def summary_requests(server: ScriptedServer) -> list[Request]:
    return [request for request in server.requests if is_summary_request(request)]


def step_requests(server: ScriptedServer) -> list[Request]:
    return [request for request in server.requests if not is_summary_request(request)]


def talk(answer: Answer | str = LONG_ANSWER, summary: Answer | str = SUMMARY):
    """Answer every step with `answer`, every summary request with `summary`."""

    def script(request: Request) -> AnyReply:
        chosen = summary if is_summary_request(request) else answer
        if isinstance(chosen, str):
            return Reply(chosen)
        return chosen(request) if callable(chosen) else chosen

    return script


def reads(count: int, *, width: int = 1, summary: Answer | str = SUMMARY):
    """Read another part of a file in each of `count` steps, `width` calls at once; then finish."""
    taken = 0

    def answer(_request: Request) -> AnyReply:
        nonlocal taken
        taken += 1
        if taken > count:
            return Reply("done")
        calls = [Call("read", {"path": "big.txt", "offset": 1 + (taken * width + n) % 200}) for n in range(width)]
        return Reply(f"step {taken}", tool_calls=calls)

    return talk(answer, summary)


def write_big_file(tmp_path: Path, lines: int = 400) -> None:
    """Put a file of `lines` lines, 5 tokens each, into the working directory."""
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "big.txt").write_text("some words in a line\n" * lines)


def compactions(running: Agent) -> list[CompactionEntry]:
    return [entry for entry in running.session.entries() if isinstance(entry, CompactionEntry)]


def log_of(running: Agent) -> bytes:
    return (running.session.directory / "events.jsonl").read_bytes()


async def fill(running: Agent, turns: int = 6, size: int = 300) -> None:
    """Have a conversation; a turn is about `size` × 2 tokens and the answer."""
    for number in range(turns):
        settled = await running.ask(f"question {number} " + "because " * size)
        assert settled.outcome == "completed", settled.error


async def begin_compaction(running: Agent, focus: str | None = None) -> str:
    operation = CompactSessionOperation(session_id=running.runtime.session_id, reason="manual", focus=focus)
    return await running.runtime.submit(operation)


async def compact(running: Agent, focus: str | None = None):
    finished = await asyncio.wait_for(running.runtime.wait_for(await begin_compaction(running, focus)), 60)
    assert finished is not None
    return finished


async def interrupt(running: Agent) -> None:
    await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))


async def until(condition: Callable[[], object], timeout: float = 60) -> None:
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.005)


def check_requests(server: ScriptedServer, window: int) -> None:
    """No request was refused, and none was larger than the window."""
    assert [request.refused for request in server.requests if request.refused] == []
    assert max(request.tokens for request in server.requests) <= window
    assert not server.faults


def seeded_session(tmp_path: Path, model: str, *entries: object) -> Session:
    """Write a session as an earlier run left it, to be resumed: system prompt, then `entries`. It has to be closed."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    session = Session.create(tmp_path / "home", work.resolve(), durability="none")
    session.append(SystemMessage(text="You are an agent."))
    for entry in entries:
        session.append(entry)
    return session


def user(text: str, **more: object) -> UserMessage:
    return UserMessage(parts=(TextPart(text=text),), **more)


def facts_of(running: Agent) -> ModelFacts:
    return running.runtime.live.facts
