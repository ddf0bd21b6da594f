"""`/compact` while a task runs: what was allowed runs to its end, and nothing is stopped for nothing.

seeds-000-003.md, defects 2 and 2b.
"""

from __future__ import annotations

import asyncio

import pytest

from tenuto.protocol.event import ApprovalRequestedEvent, CompactionEndEvent, NoticeEvent, ToolResultEvent
from tenuto.protocol.operation import AnswerApprovalOperation, InterruptOperation
from tests.core.harness import PROTOCOLS, agent
from tests.examples import one_of
from tests.requirements.compaction.support import (
    DONE,
    LONG_ANSWER,
    begin_compaction,
    compactions,
    ends,
    fill,
    in_turn,
    starts,
    step_requests,
    talk,
    until,
)
from tests.server import Call, Reply

SLOW = "echo begun >> steps; sleep 0.6; echo ended >> steps"


def steps(tmp_path) -> list[str]:
    file = tmp_path / "work" / "steps"
    return file.read_text().split() if file.exists() else []


async def answer(running, number: int, decision: str) -> None:
    asked = await running.until(ApprovalRequestedEvent, number)
    operation = AnswerApprovalOperation(
        session_id=running.runtime.session_id, request_id=asked.request_id, decision=decision
    )
    await running.runtime.submit(operation)


async def wait_for_compaction(running, compacting) -> None:
    submission = await asyncio.wait_for(compacting, 60)
    await asyncio.wait_for(running.runtime.wait_for(submission), 60)
    await asyncio.wait_for(running.runtime.wait_settled(), 60)


@pytest.mark.parametrize("decisions", [("once",), ("session",), ("once", "deny"), ("deny", "once"), ("once", "once")])
@pytest.mark.parametrize("protocol", one_of(PROTOCOLS))
async def test_d2_what_was_allowed_runs_to_its_end_before_the_compaction(tmp_path, protocol, decisions):
    calls = [Call("bash", {"command": f"{SLOW}; : {number}"}) for number in range(len(decisions))]
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 6, Reply("May I?", tool_calls=calls)))
    options = {"window": 32_000}
    async with agent(tmp_path, script, mode="ask", model=f"{protocol}/test", options=options) as running:
        await fill(running)
        await running.send("clean up")
        await running.until(ApprovalRequestedEvent)
        compacting = asyncio.ensure_future(begin_compaction(running))
        await until(lambda: any("waits for your answer" in event.text for event in running.of(NoticeEvent)))
        for number, decision in enumerate(decisions, 1):
            await answer(running, number, decision)
        await wait_for_compaction(running, compacting)
        allowed = sum(decision != "deny" for decision in decisions)
        assert steps(tmp_path) == ["begun", "ended"] * allowed
        results = [event.message for event in running.of(ToolResultEvent)]
        assert [(one.denied, one.interrupted) for one in results] == [(one == "deny", False) for one in decisions]
        kinds = [type(event) for event in running.events]
        last_result = len(kinds) - 1 - kinds[::-1].index(ToolResultEvent)
        assert last_result < kinds.index(CompactionEndEvent)
        assert len(compactions(running)) == 1
        assert len(step_requests(running)) == 7, "the task stopped at the boundary"
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.refusals


@pytest.mark.parametrize("decision", ["once", "deny"])
async def test_d2b_with_an_open_question_and_nothing_to_compact_the_task_goes_on(tmp_path, decision):
    script = talk(in_turn(Reply("May I?", tool_calls=[Call("bash", {"command": SLOW})])))
    async with agent(tmp_path, script, mode="ask", options={"window": 32_000}) as running:
        await running.send("clean up")
        await running.until(ApprovalRequestedEvent)
        await asyncio.wait_for(begin_compaction(running), 60)
        (end,) = ends(running)
        assert end.needless
        assert "nothing to compact" in (end.error or "")
        assert running.runtime.live.approvals.is_open, "the question stands"
        await answer(running, 1, decision)
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert settled.outcome == "completed"
        assert steps(tmp_path) == (["begun", "ended"] if decision == "once" else [])
        assert len(step_requests(running)) == 2
        assert len(starts(running)) == 1


async def test_d2b_a_running_command_is_not_stopped_for_nothing(tmp_path):
    script = talk(in_turn(Reply("I work.", tool_calls=[Call("bash", {"command": SLOW})])))
    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await running.send("work")
        await until(lambda: steps(tmp_path) == ["begun"])
        await begin_compaction(running)
        assert ends(running)[0].needless
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert settled.outcome == "completed"
        assert steps(tmp_path) == ["begun", "ended"]
        assert not any("was stopped" in event.text for event in running.of(NoticeEvent))


async def test_d2_an_interrupt_ends_the_waiting_and_the_compaction_follows(tmp_path):
    call = Reply("May I?", tool_calls=[Call("bash", {"command": SLOW})])
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 6, call, then=DONE))
    async with agent(tmp_path, script, mode="ask", options={"window": 32_000}) as running:
        await fill(running)
        await running.send("clean up")
        await running.until(ApprovalRequestedEvent)
        compacting = asyncio.ensure_future(begin_compaction(running))
        await asyncio.sleep(0.1)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await wait_for_compaction(running, compacting)
        assert len(compactions(running)) == 1
        assert steps(tmp_path) == []
        assert (await running.ask("go on")).outcome == "completed"
