"""Conversations that need compacting, and what is asked of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from tenuto.compaction.summary.prompts import SAME_PREFIX
from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent, TaskFinishedEvent
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.operation import ChangeModelOperation, CompactSessionOperation, InterruptOperation
from tests.core.harness import Agent
from tests.server import Call, Reply, Request
from tests.server.reply import AnyReply

SUMMARY = """## Goal
Keep the tests green.

## Constraints & Preferences
- none

## Progress
### Done
- [x] looked around

## Key Decisions
- **small steps**: easier to check

## Next Steps
1. go on

## Critical Context
- what was learned on the way: the first tests were slow because of the large files
- the others are quick, and nobody else works on this part at the moment
- so nothing has to be agreed with others before it is changed, and the work can go on at once"""
IN_PLACE = SAME_PREFIX.partition("\n")[0][:60]
FROM_A_TRANSCRIPT = {"TENUTO_COMPACTION__SAME_PREFIX": "false"}
"""For what is asked of a summary that is made from a transcript (rung 4)."""
LONG_ANSWER = "fine " * 600
"""About 750 tokens."""

TALKATIVE, SUMMARISED, DONE = Reply(LONG_ANSWER), Reply(SUMMARY), Reply("done")

NOTE = re.compile(r"<harness-note>.*?</harness-note>", re.DOTALL)
Answering = Callable[[Request], AnyReply]


def is_summary_request(request: Request) -> bool:
    """Summary requests carry no tools, or are a step's request with one message more."""
    return not request.body.get("tools") or is_in_place(request)


def is_in_place(request: Request) -> bool:
    """Say whether the model is asked to summarise what it has before it."""
    return any(IN_PLACE in item.text for item in request.items[-3:] if item.kind == "user")


def summary_requests(running: Agent) -> list[Request]:
    return [request for request in running.server.requests if is_summary_request(request)]


def step_requests(running: Agent) -> list[Request]:
    return [request for request in running.server.requests if not is_summary_request(request)]


def talk(answer: AnyReply | Answering = TALKATIVE, summary: AnyReply | Answering = SUMMARISED):
    """Answer every step with `answer`, every summary request with `summary`."""

    def script(request: Request) -> AnyReply:
        chosen = summary if is_summary_request(request) else answer
        return chosen(request) if callable(chosen) else chosen

    return script


def in_turn(*replies: AnyReply, then: AnyReply = DONE) -> Answering:
    """Answer with one reply after the other, then always with the last."""
    left = list(replies)
    return lambda _request: left.pop(0) if left else then


def reads(count: int, path: str = "big.txt", done: str = "done") -> Answering:
    """Read another part of a file in each of `count` steps, then finish."""
    taken = 0

    def answer(_request: Request) -> AnyReply:
        nonlocal taken
        taken += 1
        return Reply(done) if taken > count else Reply(tool_calls=[Call("read", {"path": path, "offset": taken})])

    return answer


def last_instruction(request: Request) -> str:
    """Return the newest text of a user; notes of the program (mode, date) are attached to it."""
    texts = (NOTE.sub("", item.text).strip() for item in reversed(request.items) if item.kind == "user")
    return next((text for text in texts if text), "")


def write_big_file(tmp_path: Path, lines: int = 400) -> None:
    """Put a file of `lines` lines, 5 tokens each, into the working directory."""
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "big.txt").write_text("some words in a line\n" * lines)


def write_settings(tmp_path: Path, text: str) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "settings.toml").write_text(text)


def compactions(running: Agent) -> list[CompactionEntry]:
    return [entry for entry in running.session.entries() if isinstance(entry, CompactionEntry)]


def starts(running: Agent) -> list[CompactionStartEvent]:
    return running.of(CompactionStartEvent)


def ends(running: Agent) -> list[CompactionEndEvent]:
    return running.of(CompactionEndEvent)


def log_of(running: Agent) -> bytes:
    return (running.session.directory / "events.jsonl").read_bytes()


async def fill(running: Agent, turns: int = 6, words: int = 300) -> None:
    """Have a conversation; a turn is about `words` × 2 tokens and the answer."""
    for number in range(turns):
        settled = await running.ask(f"question {number} " + "because " * words)
        assert settled.outcome == "completed", settled.error


async def begin_compaction(running: Agent, focus: str | None = None) -> str:
    return await running.runtime.submit(CompactSessionOperation(session_id=running.runtime.session_id, focus=focus))


async def compact(running: Agent, focus: str | None = None) -> TaskFinishedEvent:
    finished = await asyncio.wait_for(running.runtime.wait_for(await begin_compaction(running, focus)), 60)
    assert finished is not None
    return finished


async def interrupt(running: Agent) -> None:
    await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))


async def change_model(running: Agent, model: str) -> None:
    operation = ChangeModelOperation(session_id=running.runtime.session_id, model=model)
    await asyncio.wait_for(running.runtime.wait_for(await running.runtime.submit(operation)), 60)


async def until(condition: Callable[[], bool], timeout: float = 60) -> None:
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.005)
