"""Whatever fails behind a task's end, its finished event and `TaskSettledEvent` come (reliability.md S1, cause b)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from tenuto.core.state.live import LiveSession
from tenuto.protocol.event import (
    AnyEvent,
    CompactionEndEvent,
    NoticeEvent,
    StepStartedEvent,
    TaskFinishedEvent,
    TaskSettledEvent,
    ToolStartedEvent,
)
from tenuto.protocol.operation import CompactSessionOperation, InterruptOperation, RunShellOperation
from tenuto.session.session import Session
from tests.core.harness import Agent, agent
from tests.server import Call, Hang, HttpError, Reply

FAULT = "no such luck"
LIMIT = 20


def fail(*_: object, **__: object) -> NoReturn:
    raise RuntimeError(FAULT)


class UnspeakableError(Exception):
    """Even its text fails."""

    def __str__(self) -> str:
        return fail()


async def settled(running: Agent) -> TaskSettledEvent:
    return await asyncio.wait_for(running.runtime.wait_settled(), LIMIT)


def told(running: Agent) -> list[str]:
    return [event.text for event in running.of(NoticeEvent) if FAULT in event.text]


WAYS = {
    "completed": [Reply("done")],
    "failed": [HttpError(400, "that is not possible")],
    "interrupted": [Hang()],
}


async def run_to(running: Agent, outcome: str) -> TaskSettledEvent:
    await running.send("go")
    if outcome == "interrupted":
        await running.until(StepStartedEvent)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
    return await settled(running)


@pytest.mark.parametrize("outcome", list(WAYS))
@pytest.mark.parametrize(
    ("owner", "name"),
    [(Session, "save_meta"), (LiveSession, "publish_queue")],
)
async def test_s1_a_fault_in_what_belongs_to_the_end_is_told_and_the_session_settles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str, outcome: str
) -> None:
    async with agent(tmp_path, WAYS[outcome]) as running:

        def begin_to_fail(event: AnyEvent) -> None:
            if event.__struct_config__.tag == "step_started":
                monkeypatch.setattr(owner, name, fail)

        running.runtime.subscribe(begin_to_fail)
        end = await run_to(running, outcome)
        monkeypatch.undo()
        assert end.outcome == outcome, "the task's own outcome stays"
        assert told(running)
        assert [event.outcome for event in running.of(TaskFinishedEvent)] == [outcome]
        assert running.events[-1] == end
        assert any(FAULT in getattr(entry, "text", "") for entry in running.session.path()), "the log has it as well"


@pytest.mark.parametrize("outcome", list(WAYS))
async def test_s1_a_listener_that_fails_at_every_event_stops_nothing_and_nobody(tmp_path: Path, outcome: str) -> None:
    """daily-user.md F1: print mode's own listener failed, because standard output was closed."""
    async with agent(tmp_path, WAYS[outcome]) as running:
        later: list[AnyEvent] = []
        running.runtime.subscribe(fail)
        running.runtime.subscribe(later.append)
        end = await run_to(running, outcome)
        assert end.outcome == outcome
        assert later[-1] == end
        assert len(told(running)) == 1, "it is said once, not for each event"


async def test_s1_a_listener_that_fails_costs_no_call_its_result(tmp_path: Path) -> None:
    script = [Reply(tool_calls=[Call("bash", {"command": "echo hello"})]), Reply("done")]
    async with agent(tmp_path, script) as running:
        running.runtime.subscribe(lambda event: fail() if isinstance(event, ToolStartedEvent) else None)
        assert (await running.ask("go")).outcome == "completed"
        assert "hello" in running.server.requests[1].items[-1].text


@pytest.mark.parametrize("error", [RuntimeError(FAULT), SystemExit(FAULT), UnspeakableError()])
async def test_s1_whatever_a_task_raises_it_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    async with agent(tmp_path, [Reply("done")]) as running:

        def raise_it(_live: LiveSession) -> NoReturn:
            raise error

        loop = asyncio.get_running_loop()
        unheard: list[object] = []
        loop.set_exception_handler(lambda _loop, context: unheard.append(context))
        monkeypatch.setattr("tenuto.core.agent.step.tell_pins", raise_it)
        end = await running.ask("go")
        assert (end.outcome, bool(end.error)) == ("failed", True)
        monkeypatch.undo()
        assert (await running.ask("again")).outcome == "completed", "the session can be used"


@pytest.mark.parametrize("kind", ["compaction", "shell"])
async def test_s1_tasks_of_every_kind_settle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    async with agent(tmp_path, [Reply("done")]) as running:
        await running.ask("go")
        monkeypatch.setattr(Session, "save_meta", fail)
        session_id = running.runtime.session_id
        if kind == "shell":
            await running.runtime.submit(RunShellOperation(session_id=session_id, command="echo hello"))
        else:
            await running.runtime.submit(CompactSessionOperation(session_id=session_id))
        await running.until(TaskSettledEvent, 2)
        monkeypatch.undo()
        assert running.of(TaskFinishedEvent)[-1].kind == kind
        assert kind == "shell" or running.of(CompactionEndEvent)


async def test_s1_a_prompt_that_cannot_be_taken_in_leaves_a_session_that_settles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way in failed behind a compaction: the session stayed busy for ever."""
    async with agent(tmp_path, lambda _request: Reply("done")) as running:

        async def compact_then_fail(executor: object, live: LiveSession, queued: object) -> bool:
            operation = CompactSessionOperation(session_id=live.id)
            await running.runtime.wait_for(await running.runtime.submit(operation))
            fail()

        monkeypatch.setattr("tenuto.core.submit._is_ready", compact_then_fail)
        with pytest.raises(RuntimeError, match=FAULT):
            await running.send("go")
        monkeypatch.undo()
        await settled(running)
        assert not running.server.requests, "what was refused is not sent behind the user's back"
        assert running.session.state.queue, "and not lost"
        assert (await running.ask("")).outcome == "completed"


async def test_s1_a_queue_that_cannot_be_gone_on_with_settles_and_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with agent(tmp_path, lambda _request: Reply("done")) as running:
        live = running.runtime.live
        with running.runtime.executor.holding(live):
            await running.send("typed while something was on its way in")
            await running.runtime.executor.stop(live)
            live.task.queue_waiting, live.task.settled = False, False
            monkeypatch.setattr("tenuto.core.executor.AgentTask", fail)
        assert await settled(running)
        assert told(running)
        monkeypatch.undo()
        assert live.task.queue_waiting
