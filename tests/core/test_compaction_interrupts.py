"""Esc at every point of a compaction: the log is as before, or the compaction is done; the session goes on (R-046)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tenuto.protocol.event import (
    AnyEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionStartEvent,
    PromptReturnedEvent,
    TaskFinishedEvent,
    TaskStartedEvent,
)
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import text_of
from tests.core.compacting import (
    FROM_A_TRANSCRIPT,
    LONG_ANSWER,
    SUMMARY,
    TURN_PREFIX,
    Answer,
    begin_compaction,
    compactions,
    fill,
    interrupt,
    is_prefix_request,
    log_of,
    reads,
    step_requests,
    summary_requests,
    talk,
    until,
    write_big_file,
)
from tests.core.harness import Agent, agent
from tests.server import Call, Hang, HttpError, Reply, Request
from tests.session.build import check_pairs

Condition = Callable[[Agent], bool]


@dataclass
class Point:
    """A point of the flow: how summaries are answered there, and how to tell that it is reached."""

    summary: Answer
    reached: Condition
    requests: int = 1
    """How many summary requests have been made when it is reached."""
    aborted: bool = True
    """Whether a request is on its way, and so has to be given up."""


def saw(kind: type[AnyEvent], test: Callable[[AnyEvent], bool] = lambda _event: True) -> Condition:
    return lambda running: any(test(event) for event in running.of(kind))


def stage(text: str) -> Condition:
    return saw(CompactionProgressEvent, lambda event: text in event.stage)


def asked(count: int) -> Condition:
    return lambda running: len(summary_requests(running.server)) >= count


def shows(tokens: int) -> Condition:
    return saw(CompactionProgressEvent, lambda event: event.summary_tokens >= tokens)


def history_hangs(request: Request):
    return Reply(TURN_PREFIX) if is_prefix_request(request) else Hang()


def history_streams_slowly(request: Request):
    return Reply(TURN_PREFIX) if is_prefix_request(request) else Reply(SUMMARY, delay_per_event=0.5)


def bad_first():
    given: list[Request] = []

    def answer(request: Request):
        given.append(request)
        return Reply("") if len(given) == 1 else Hang()

    return answer


SLOW = Reply(SUMMARY, delay_per_event=0.5)
POINTS = {
    "the task has begun": Point(Hang(), saw(TaskStartedEvent, lambda event: event.kind == "compaction"), 0, False),
    "the start is announced": Point(Hang(), saw(CompactionStartEvent), 0, False),
    "the request is being made": Point(Hang(), stage("summarising"), 0, False),
    "the server is silent": Point(Hang(), asked(1)),
    "the server sends nothing but its head": Point(Hang(headers_first=True), asked(1)),
    "the summary begins": Point(SLOW, shows(1)),
    "the summary is half there": Point(SLOW, shows(20)),
    "waiting to try again": Point(
        HttpError(429, "slow down", headers={"retry-after": "20"}), stage("waiting to try again"), 1, False
    ),
    "the second attempt after a bad summary": Point(bad_first(), asked(2), 2),
    "between turn and history": Point(
        history_hangs, saw(CompactionProgressEvent, lambda event: event.stage == "summarising"), 1, False
    ),
    "what came before the turn is asked for": Point(history_hangs, asked(2), 2),
    "the notes on what came before the turn stream": Point(
        history_streams_slowly,
        saw(CompactionProgressEvent, lambda event: event.stage == "summarising" and event.summary_tokens > 0),
        2,
    ),
}


@dataclass
class Trap:
    """Interrupts as soon as the point is reached, from within the event that reaches it where there is one."""

    running: Agent
    reached: Condition
    sprung: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def listen(self, _event: AnyEvent) -> None:
        self.look()

    def look(self) -> bool:
        if not self.sprung and self.reached(self.running):
            self.sprung = True
            self.tasks.append(asyncio.ensure_future(interrupt(self.running)))
        return self.sprung


async def spring(running: Agent, reached: Condition) -> None:
    """Wait for the point and interrupt there."""
    trap = Trap(running, reached)
    stop = running.runtime.subscribe(trap.listen)
    await until(trap.look)
    await asyncio.gather(*trap.tasks)
    stop()


async def converse(running: Agent) -> None:
    """Leave a conversation whose cut falls inside its last turn, so that both kinds of summary are asked for."""
    await fill(running, 4)
    settled = await running.ask("mend it")
    assert settled.outcome == "completed", settled.error
    running.events.clear()


def script(summary: Answer):
    def answer(request: Request):
        if "mend it" not in request.last_user:
            return Reply(LONG_ANSWER)
        taken = sum(item.kind == "result" for item in request.turn)
        return (
            Reply("step", tool_calls=[Call("read", {"path": "big.txt", "limit": 100})])
            if taken < 9
            else Reply("mended")
        )

    return talk(answer, summary)


@pytest.mark.parametrize("name", POINTS)
async def test_an_interrupt_at_this_point_leaves_the_log_as_it_was(tmp_path, name):
    point = POINTS[name]
    write_big_file(tmp_path)
    options = {"listed_window": 200_000}
    async with agent(tmp_path, script(point.summary), options=options, environ=FROM_A_TRANSCRIPT) as running:
        await converse(running)
        before, view = log_of(running), list(running.session.get_llm_history())
        submission = await begin_compaction(running)
        await spring(running, point.reached)
        finished = await asyncio.wait_for(running.runtime.wait_for(submission), 30)
        assert finished is not None
        assert finished.outcome == "interrupted"
        assert log_of(running) == before
        assert list(running.session.get_llm_history()) == view
        for end in running.of(CompactionEndEvent):
            assert (end.aborted, end.error, end.entry) == (True, None, None)
        assert len(running.of(CompactionEndEvent)) == len(running.of(CompactionStartEvent))
        asked_for = summary_requests(running.server)
        assert len(asked_for) == point.requests or (not point.aborted and len(asked_for) <= point.requests + 1)
        if point.aborted:
            await until(lambda: asked_for[-1].aborted, 30)
        assert (await running.ask("go on")).outcome == "completed"
        assert step_requests(running.server)[-1].raw.count(b"mend it") == 1
        assert not running.server.refusals


async def test_an_interrupt_before_the_task_has_begun_leaves_the_log_as_it_was(tmp_path):
    async with agent(tmp_path, talk(summary=Hang()), options={"window": 32_000}) as running:
        await fill(running)
        before = log_of(running)
        submission = await begin_compaction(running)
        await interrupt(running)
        finished = await asyncio.wait_for(running.runtime.wait_for(submission), 30)
        assert finished is not None
        assert finished.outcome == "interrupted"
        assert log_of(running) == before
        assert (await running.ask("go on")).outcome == "completed"


async def test_an_interrupt_before_the_agents_first_step_ends_its_task(tmp_path):
    async with agent(tmp_path, talk("fine")) as running:
        await running.send("hello")
        await interrupt(running)
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 30)
        assert settled.outcome == "interrupted"
        assert [text_of(entry.parts) for entry in running.session.state.queue] == ["hello"]
        await running.runtime.submit_prompt(())
        assert (await asyncio.wait_for(running.runtime.wait_settled(), 60)).outcome == "completed"
        assert not running.session.state.queue


@pytest.mark.parametrize("kind", [CompactionEndEvent, TaskFinishedEvent])
async def test_r047_an_interrupt_when_the_entry_is_on_disk_comes_too_late(tmp_path, kind):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running)
        running.events.clear()
        submission = await begin_compaction(running)
        await spring(running, saw(kind))
        finished = await asyncio.wait_for(running.runtime.wait_for(submission), 30)
        assert finished is not None
        assert finished.outcome == "completed"
        assert len(compactions(running)) == 1
        (end,) = running.of(CompactionEndEvent)
        assert (end.aborted, end.entry) == (False, compactions(running)[0])
        assert (await running.ask("go on")).outcome == "completed"
        assert b"Keep the tests green" in running.server.requests[-1].raw


async def test_an_interrupt_of_the_compaction_before_a_prompt_gives_the_prompt_back(tmp_path):
    async with agent(tmp_path, talk("fine " * 2500, Hang()), options={"window": 16_000}) as running:
        sending = None
        for number in range(12):
            sending = asyncio.ensure_future(running.send(f"question {number} " + "because " * 300))
            await until(lambda sending=sending: sending.done() or running.of(CompactionStartEvent))
            if running.of(CompactionStartEvent):
                break
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert sending is not None
        await spring(running, asked(1))
        await asyncio.wait_for(sending, 30)
        (returned,) = running.of(PromptReturnedEvent)
        assert text_of(returned.parts).startswith("question")
        assert not running.session.state.queue
        assert not compactions(running)


@pytest.mark.parametrize("reason", ["threshold", "overflow"])
async def test_an_interrupt_of_a_tasks_own_compaction_ends_the_task_where_it_can_be_taken_up(tmp_path, reason):
    """DESIGN section 2: one Esc, one meaning."""
    write_big_file(tmp_path)
    hanging = True

    def summary(_request: Request):
        return Hang() if hanging else Reply(SUMMARY)

    options = {"window": 16_000, "listed_window": 200_000 if reason == "overflow" else 16_000}
    async with agent(tmp_path, reads(40, summary=summary), model="openai/test", options=options) as running:
        await running.send("mend it")
        await spring(running, asked(1))
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 30)
        assert settled.outcome == "interrupted"
        assert running.of(CompactionEndEvent)[-1].aborted
        assert running.of(CompactionStartEvent)[-1].reason == reason
        assert [event.outcome for event in running.of(TaskFinishedEvent)] == ["interrupted"]
        assert not compactions(running)
        check_pairs(running.session.get_llm_history())
        hanging = False
        assert (await running.ask("go on", timeout=30)).outcome == "completed"
        # The window is not named: what is believed of it after the first refusal may still be a little too large.
        assert len(running.server.refusals) in ((1, 2) if reason == "overflow" else (0,))
        assert len([entry for entry in running.session.path() if isinstance(entry, UserMessage)]) == 2


async def test_interrupts_at_random_moments_leave_the_old_history_or_the_new_one(tmp_path):
    """T-11"""
    seed = random.randrange(1_000_000)
    print("seed", seed)
    dice = random.Random(seed)
    summary = Reply(SUMMARY, delay_per_event=0.005)
    async with agent(tmp_path, talk(summary=summary), options={"window": 32_000}) as running:
        await fill(running)
        for _ in range(10):
            await fill(running, 1)
            before, count = log_of(running), len(compactions(running))
            submission = await begin_compaction(running)
            await asyncio.sleep(dice.uniform(0, 0.12))
            await interrupt(running)
            finished = await asyncio.wait_for(running.runtime.wait_for(submission), 30)
            assert finished is not None
            if len(compactions(running)) == count:
                assert log_of(running) == before
            else:
                assert finished.outcome == "completed", "an entry on disk counts as done"
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.refusals
