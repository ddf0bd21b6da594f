"""Every way in which a summary can fail, for every reason to compact: the session goes on (R-003, R-010, R-046)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent, PromptReturnedEvent
from tenuto.protocol.message import CompactionEntry
from tests.core.harness import PROTOCOLS, Agent, reopened
from tests.requirements.compaction.support import SUMMARY, ends, log_of, starts, until
from tests.requirements.recovery.ladder import (
    HISTORY,
    REASONS,
    STORED_REASONS,
    SUMMARISED,
    answering,
    check_usable,
    made_smaller,
    options_for,
    provoke,
    provoke_and_cancel,
    step_answer,
    summary_requests,
    told,
    with_history,
    write_history,
)
from tests.server import Call, Cut, Hang, HttpError, RawStream, Reply, ScriptedServer, StreamError
from tests.server.reply import AnyReply

FAULTS: dict[str, AnyReply] = {
    "quota": HttpError(429, "You exceeded your current quota, please check your plan and billing details."),
    "500": HttpError(500, "The server had an error", headers={"retry-after-ms": "5"}),
    "empty": Reply(""),
    "truncated": Reply("## Goal\nMend the", stop="max_tokens"),
    "tool call": Reply("I will look", tool_calls=[Call("read", {"path": "x"})]),
    "refusal": Reply("I can't help with that.", stop="refusal"),
    "inflated": Reply("## Goal\n" + "longer than all that it stands for " * 6_000, chunk_size=60_000),
    "summariser overflow": HttpError(400, "Your input exceeds the context window of this model."),
    "overflow in the stream": StreamError(4, "context_length_exceeded", Reply(SUMMARY)),
    "no such model": HttpError(404, "The model does not exist or you do not have access to it."),
    "auth": HttpError(401, "Incorrect API key provided."),
    "413": HttpError(413),
    "rate limit for an hour": HttpError(429, "Rate limit reached, try again later.", headers={"retry-after": "3600"}),
}
PLACES = list(FAULTS)
TOO_LONG = {"summariser overflow", "overflow in the stream"}
BROKEN: dict[str, AnyReply] = {
    "cut": Cut(Reply(SUMMARY), 4),
    "a page of a proxy": RawStream([b"<html>502 Bad Gateway</html>"], content_type="text/html"),
}
DIGESTED = "without a model"


async def check_digest(running: Agent, reason: str, *, window_shrank: bool = False) -> None:
    """The digest stands in the log with its reason, it was told once, and the session goes on with it alone.

    A model that refused its summary as too long is believed: its window is smaller for the session's requests as well,
    and the next prompt may need one more digest to fit it.
    """
    (entry,) = made_smaller(running)
    assert isinstance(entry, CompactionEntry)
    assert (entry.rung, entry.reason) == ("digest", STORED_REASONS[reason])
    assert entry.tokens_after < entry.tokens_before
    assert len(starts(running)) == len(ends(running)) == 1
    (end,) = ends(running)
    assert (end.aborted, end.error) == (False, None)
    assert [DIGESTED in text for text in told(running)] == [True], told(running)
    await check_usable(running, reason)
    first, *more = made_smaller(running)
    assert first == entry
    if window_shrank and more:
        assert running.runtime.live.facts.source == "learned"
        assert [(second.rung, second.reason) for second in more] == [("digest", "threshold")]
        assert more[0].tokens_after < more[0].tokens_before
    else:
        assert not more, "once was enough"


def protocol_for(fault: str, reason: str) -> str:
    """Rotate, so that every fault meets every protocol; the Responses API is the one that refuses the input first."""
    return "openai" if reason == "overflow" else PROTOCOLS[(PLACES.index(fault) + REASONS.index(reason)) % 3]


def in_every_run(fault: str, reason: str, working: bool) -> bool:
    """Every fault meets every reason, and half of them the other history: all three together wait for `--full`."""
    return (PLACES.index(fault) + REASONS.index(reason)) % 2 == working


CASES = [
    pytest.param(fault, reason, working, marks=() if in_every_run(fault, reason, working) else pytest.mark.full)
    for fault in FAULTS
    for reason in REASONS
    for working in (False, True)
]


@pytest.mark.parametrize(("fault", "reason", "working"), CASES)
async def test_whatever_the_summariser_does_the_session_goes_on(tmp_path, fault, reason, working):
    script, model = answering(step_answer(reason), FAULTS[fault]), f"{protocol_for(fault, reason)}/test"
    turns, options = HISTORY.get(reason, 12), options_for(reason)
    async with with_history(tmp_path, script, turns, options=options, working=working, model=model) as running:
        assert await provoke(running, reason) == "completed"
        assert summary_requests(running.server), "a model was asked first"
        await check_digest(running, reason, window_shrank=fault in TOO_LONG)


def leave(server: ScriptedServer) -> None:
    """Stop listening and break what is open, as when the network goes."""
    assert server._server is not None
    server._server.close()
    for connection in list(server._connections):
        if connection.transport is not None:
            connection.transport.abort()


async def run_without_network(tmp_path: Path, reason: str) -> None:
    """The server is away for as long as the compaction takes: connections are refused."""
    tmp_path.mkdir()
    returning: list[asyncio.Task[None]] = []
    script = answering(step_answer(reason), Reply(SUMMARY))
    async with with_history(tmp_path, script, HISTORY.get(reason, 12), options=options_for(reason)) as running:

        def listen(event: object) -> None:
            if isinstance(event, CompactionStartEvent):
                leave(running.server)
            elif isinstance(event, CompactionEndEvent):
                returning.append(asyncio.ensure_future(running.server.start()))

        running.runtime.subscribe(listen)
        assert await provoke(running, reason) == "completed"
        assert not summary_requests(running.server)
        await check_digest(running, reason)


ATTEMPTS = {"cut": 3, "a page of a proxy": 1}
"""Of each kind of summary request: what passes is tried again, a page that stands in the way does not pass."""


async def run_with_broken_streams(tmp_path: Path, reason: str, broken: AnyReply, attempts: int) -> None:
    """Every stream of a summary breaks in the middle, or never was one."""
    tmp_path.mkdir()
    script = answering(step_answer(reason), broken)
    async with with_history(tmp_path, script, HISTORY.get(reason, 12), options=options_for(reason)) as running:
        assert await provoke(running, reason) == "completed"
        kinds = 1 if reason == "overflow" else 2
        assert len(summary_requests(running.server)) == attempts * kinds, "passing failures alone are tried again"
        await check_digest(running, reason)


async def test_a_network_that_breaks_or_is_gone_for_every_reason(tmp_path):
    """Side by side, because what is waited for between the attempts is real time; a change of model waits longest."""
    async with asyncio.TaskGroup() as group:
        for reason in REASONS[:-1]:
            group.create_task(run_without_network(tmp_path / f"gone {reason}", reason), name=f"gone, {reason}")
            for name, broken in BROKEN.items():
                place = tmp_path / f"{name} {reason}"
                group.create_task(
                    run_with_broken_streams(place, reason, broken, ATTEMPTS[name]), name=f"{name}, {reason}"
                )


async def test_r055_a_resumed_transcript_tells_it_once_too(tmp_path):
    write_history(tmp_path, 12)
    async with ScriptedServer(answering(Reply("fine"), FAULTS["quota"]), window=21_334) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await provoke(running, "manual")
            live = told(running)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert told(running) == live
            (end,) = ends(running)
            assert end.entry is not None
            assert end.entry.rung == "digest"


LINES_OF_THE_PROMPT = ["QueuedEntry", *3 * ["DeveloperMessage"], "UserMessage"]
APPENDED = {
    "manual": [],
    "threshold before a prompt": ["QueuedEntry", "DequeuedEntry"],
    "threshold between steps": [*LINES_OF_THE_PROMPT, "DeveloperMessage", "AssistantMessage", "ToolResultMessage"],
    "overflow": [*LINES_OF_THE_PROMPT, "NoticeEntry"],
    "switch to a smaller model": [],
}
"""What a cancelled compaction leaves in the log: the prompt and the step before it (a note says how full it is), and
the window that was learned."""


HOLDING: dict[str, AnyReply] = {
    "no answer": Hang(),
    "between attempts": HttpError(429, "Rate limit reached, try again later.", headers={"retry-after": "20"}),
}


@pytest.mark.parametrize("holding", HOLDING)
@pytest.mark.parametrize("reason", REASONS)
async def test_r046_cancelled_nothing_is_appended_and_the_session_goes_on(tmp_path, reason, holding):
    hanging = [True]
    script = answering(step_answer(reason), lambda _request: HOLDING[holding] if hanging else Reply(SUMMARY))
    async with with_history(tmp_path, script, HISTORY.get(reason, 12), options=options_for(reason)) as running:
        before, seen = log_of(running), len(list(running.session.entries()))
        await provoke_and_cancel(running, reason)
        assert ["The model stays" in text for text in told(running)] == [True] * (reason == "switch to a smaller model")
        assert [end.aborted for end in ends(running)] == [True]
        await until(lambda: all(request.aborted or request.ended for request in summary_requests(running.server)))
        assert log_of(running).startswith(before)
        assert [type(entry).__name__ for entry in running.session.entries()][seen:] == APPENDED[reason]
        assert bool(running.of(PromptReturnedEvent)) == (reason == "threshold before a prompt")
        hanging.clear()
        await check_usable(running, reason)
        assert {entry.rung for entry in made_smaller(running)} <= SUMMARISED
