"""Sessions that need compacting, the ways to bring a compaction about, and what must hold whatever came of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.event import CompactionProgressEvent, NoticeEvent
from tenuto.protocol.message import AssistantMessage, CompactionEntry, SystemMessage, ToolResultMessage, UserMessage
from tenuto.protocol.model import ModelRequest
from tenuto.protocol.operation import ChangeModelOperation
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.session.session import Session
from tests.core.harness import Agent, reopened
from tests.model.bodies import Recording
from tests.model.views import PROVIDERS, facts
from tests.requirements.compaction.support import (
    NOTE,
    begin_compaction,
    compact,
    interrupt,
    last_instruction,
    write_settings,
)
from tests.server import Call, Reply, Request, ScriptedServer
from tests.server.anthropic_rules import check as check_anthropic
from tests.server.openai_rules import check_chat, check_responses
from tests.server.options import Options
from tests.server.reply import AnyReply

STORED_REASONS = {
    "manual": "manual",
    "threshold before a prompt": "threshold",
    "threshold between steps": "threshold",
    "overflow": "overflow",
    "switch to a smaller model": "model_switch",
}
REASONS = tuple(STORED_REASONS)
"""The ways in which a compaction comes about."""
SUMMARISED = {"same prefix", "serialised"}
"""The rungs on which a model wrote the summary."""
MODEL = "openai-chat/test"
RULES = {"anthropic": check_anthropic, "openai": check_responses, "openai-chat": check_chat}
Answering = Callable[[Request], AnyReply]


def asks_for_summary(request: Request) -> bool:
    """Say whether a request asks for a summary: without tools, or in place, behind the conversation."""
    return not request.body.get("tools") or "## Goal\n" in request.items[-1].text


def summary_requests(server: ScriptedServer) -> list[Request]:
    return [request for request in server.requests if asks_for_summary(request)]


def step_requests(server: ScriptedServer) -> list[Request]:
    return [request for request in server.requests if not asks_for_summary(request)]


def answering(step: AnyReply | Answering, summary: AnyReply | Answering) -> Answering:
    """Answer every step with `step`, every request for a summary with `summary`."""

    def script(request: Request) -> AnyReply:
        chosen = summary if asks_for_summary(request) else step
        return chosen(request) if callable(chosen) else chosen

    return script


def words(tokens: int) -> str:
    """Return prose of about this many estimated tokens."""
    return ("word and " * (tokens * 4 // 9 + 1))[: tokens * 4]


def write_history(tmp_path: Path, turns: int, *, size: int = 400, model: str = MODEL, working: bool = False) -> None:
    """Leave a session of so many turns, each about `size` × 2 tokens, for the next process to resume.

    Turns of talk, or of work: two steps of two calls each.
    """
    (tmp_path / "work").mkdir(exist_ok=True)
    session = Session.create(tmp_path / "home", (tmp_path / "work").resolve(), durability="none")
    session.append(SystemMessage(text="You are an agent."))
    for number in range(turns):
        text = words(size // 3 if working else size)
        session.append(UserMessage(parts=(TextPart(text=f"QUESTION-{number} {text}"),)))
        for step in range(2 if working else 0):
            append_step(session, f"{number}-{step}", size // 3, model)
        session.append(AssistantMessage(parts=(TextPart(text=f"ANSWER-{number} {text}"),), model=model))
    session.close()


def append_step(session: Session, name: str, size: int, model: str) -> None:
    """Append two parallel calls and their results, one of them an error."""
    calls = [
        ToolCallPart(id=f"call-{name}-{place}", name="read", arguments=f'{{"path": "part-{name}-{place}.py"}}')
        for place in range(2)
    ]
    session.append(AssistantMessage(parts=(TextPart(text="I look."), *calls), model=model, stop_reason="tool_use"))
    for place, call in enumerate(calls):
        text = f"RESULT-{name}-{place} {words(size)}"
        is_error = place == 1
        session.append(ToolResultMessage(call_id=call.id, name="read", parts=(TextPart(text=text),), is_error=is_error))


@asynccontextmanager
async def with_history(
    tmp_path: Path,
    script: Answering,
    turns: int,
    *,
    size: int = 400,
    working: bool = False,
    options: dict,
    **changes,
) -> AsyncIterator[Agent]:
    """Resume a session of so many turns against a server with these options."""
    settings = tmp_path / "home" / "settings.toml"
    if not settings.exists():
        lines = (f'[models."{name}/test-small"]\ncontext_window = {SMALL_WINDOW}\n' for name in PROVIDERS)
        write_settings(tmp_path, "".join(lines))
    write_history(tmp_path, turns, size=size, model=changes.get("model", MODEL), working=working)
    async with ScriptedServer(script, **options) as server:
        async with reopened(tmp_path, server, resume_latest=True, **changes) as running:
            yield running


# --- the ways ---

HISTORY = {"overflow": 24}
"""Turns of the session; 12 where nothing else is said."""
OPTIONS: dict[str, dict] = {"overflow": {"window": 20_000, "listed_window": 200_000}}
WINDOW, SMALL_WINDOW = 21_334, 10_667


def options_for(reason: str) -> dict:
    return OPTIONS.get(reason, {"window": WINDOW})


def step_answer(reason: str) -> Answering:
    """Answer steps; between two of them the context comes over its trigger where that is the reason."""

    def answer(request: Request) -> AnyReply:
        newest = next(item.kind for item in reversed(request.items) if NOTE.sub("", item.text).strip())
        if last_instruction(request) == "do the work" and newest == "user":
            return Reply(words(6_000), tool_calls=[Call("glob", {"pattern": "*"})], chunk_size=4_000)
        return Reply(f"ANSWERED {request.index}")

    return answer


async def begin_switch(running: Agent) -> str:
    """Change to a model with half of the window."""
    small = f"{running.runtime.live.facts.provider}/test-small"
    return await running.runtime.submit(ChangeModelOperation(session_id=running.runtime.session_id, model=small))


async def provoke(running: Agent, reason: str) -> str:
    """Bring the compaction about and wait until everything has settled; returns the outcome."""
    if reason == "manual":
        return (await compact(running)).outcome
    if reason == "switch to a smaller model":
        finished = await asyncio.wait_for(running.runtime.wait_for(await begin_switch(running)), 60)
        assert finished is not None, "it was compacted first"
        return finished.outcome
    prompt = {
        "threshold before a prompt": "a long prompt " + words(6_000),
        "threshold between steps": "do the work",
        "overflow": "and now?",
    }[reason]
    return (await running.ask(prompt)).outcome


async def provoke_and_cancel(running: Agent, reason: str) -> None:
    """Bring the compaction about, press Esc while the summary is waited for, and wait until all has settled."""
    begin = {"manual": begin_compaction, "switch to a smaller model": begin_switch}.get(reason)
    sending = asyncio.ensure_future(begin(running) if begin else provoke(running, reason))
    await running.until(CompactionProgressEvent)
    async with asyncio.timeout(60):
        while not summary_requests(running.server):
            await asyncio.sleep(0.005)
    await interrupt(running)
    await asyncio.wait_for(sending, 60)
    await asyncio.wait_for(running.runtime.wait_settled(), 60)


# --- what must hold ---


def made_smaller(running: Agent) -> list[CompactionEntry | ViewEditEntry]:
    """The entries that changed the view."""
    return [entry for entry in running.session.entries() if isinstance(entry, CompactionEntry | ViewEditEntry)]


def told(running: Agent) -> list[str]:
    """What the user was told about compacting, beside the block that shows it."""
    return [event.text for event in running.of(NoticeEvent) if "ompact" in event.text or "condensed" in event.text]


async def check_all_providers(running: Agent) -> None:
    """The view as it is now, encoded for every provider, passes its rules."""
    view = running.session.get_llm_history()
    view = view if isinstance(view[-1], UserMessage) else [*view, UserMessage(parts=(TextPart(text="go on"),))]
    options = Options(one_system=True, alternate=True)
    for provider in PROVIDERS:
        request = ModelRequest(
            model=facts(provider), messages=tuple(view), tools=running.runtime.live.tool_schemas(), cache_key="s"
        )
        body = await Recording(provider).body(request)
        RULES[provider](body, {"anthropic-version": "2023-06-01"}, options, 0, counting=False)


async def check_usable(running: Agent, reason: str) -> None:
    """A following prompt is answered; its request is under the window and under nobody's refusal."""
    refused = len(running.server.refusals)
    settled = await running.ask("and what comes next?")
    assert settled.outcome == "completed", settled.error
    last = step_requests(running.server)[-1]
    assert last_instruction(last).endswith("and what comes next?")
    assert last.tokens <= (SMALL_WINDOW if last.body["model"] == "test-small" else options_for(reason)["window"])
    assert len(running.server.refusals) == refused
    assert not running.server.faults
    await check_all_providers(running)
