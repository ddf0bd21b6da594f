"""A plan: handed over, answered by the user, followed, kept over a compaction, replayed."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tenuto.protocol.entry import ModeEntry, PlanEntry, TodoEntry
from tenuto.protocol.event import ApprovalRequestedEvent, ModeChangedEvent, TaskSettledEvent, ToolResultEvent
from tenuto.protocol.message import PlanView, ToolResultMessage
from tenuto.protocol.operation import AnswerApprovalOperation, InterruptOperation
from tenuto.protocol.part import text_of
from tests.core.compacting import compact, compactions, fill, is_summary_request, talk
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.examples import one_of
from tests.server import Call, Reply, ScriptedServer

PLAN = "# Make it quick\n\n1. Measure `start.py`.\n2. Import later.\n3. Measure again."
HAND_OVER = Reply("Here is what I would do.", tool_calls=[Call("plan", {"plan": PLAN})])
WAITED = 3600.0
"""Seconds that the user takes to read a plan."""
WRITE = Reply(tool_calls=[Call("write", {"path": "done.txt", "content": "done\n"})])


async def answer(running, request, **changes) -> None:
    operation = AnswerApprovalOperation(
        session_id=running.runtime.session_id, request_id=request.request_id, **{"decision": "once", **changes}
    )
    await running.runtime.submit(operation)


async def settled(running) -> TaskSettledEvent:
    return await asyncio.wait_for(running.runtime.wait_settled(), 20)


def plan_result(running) -> ToolResultMessage:
    return next(event.message for event in running.of(ToolResultEvent) if event.message.name == "plan")


def plan_view(running) -> PlanView:
    (view,) = plan_result(running).ui
    assert isinstance(view, PlanView)
    return view


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mode", ["edits", "auto"])
async def test_an_approved_plan_switches_the_mode_and_the_turn_goes_on(tmp_path, protocol, mode):
    script = [WRITE, HAND_OVER, WRITE, Reply("All done.")]
    async with agent(tmp_path, script, model=f"{protocol}/test", mode="plan") as running:
        await running.send("make it quick")
        request = await running.until(ApprovalRequestedEvent)
        assert (request.kind, request.detail, request.session_pattern) == ("plan", PLAN, "")
        assert not (tmp_path / "work" / "done.txt").exists(), "plan mode refuses changes"
        await answer(running, request, mode=mode)
        assert (await settled(running)).outcome == "completed"
        assert (tmp_path / "work" / "done.txt").read_text() == "done\n"
        assert running.of(ModeChangedEvent)[-1].mode == mode
        assert running.runtime.live.mode == mode
        assert plan_view(running) == PlanView(text=PLAN, outcome="approved", mode=mode)
        told = [item.text for item in running.server.requests[2].items]
        assert any(f"approval mode is now {mode}" in text for text in told)
        assert f"Approval mode: {mode}" in "".join(text for text in told if "Approval mode: " in text)[-400:]
        assert len(running.of(TaskSettledEvent)) == 1, "one task, one turn"
        assert not any(request.refused for request in running.server.requests)


async def test_ask_before_each_change_asks_before_the_next_one(tmp_path):
    async with agent(tmp_path, [HAND_OVER, WRITE, Reply("Done.")], mode="plan") as running:
        await running.send("go")
        await answer(running, await running.until(ApprovalRequestedEvent), mode="ask")
        request = await running.until(ApprovalRequestedEvent, 2)
        assert (request.kind, request.tool) == ("call", "write")
        await answer(running, request)
        await settled(running)
        assert (tmp_path / "work" / "done.txt").exists()


class Clock:
    """Stands for the module `time` where seconds are counted."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


async def test_the_edited_plan_is_the_one_that_the_model_gets_and_the_log_keeps(tmp_path, monkeypatch):
    clock = Clock()
    for counting in ("tenuto.core.agent.calls.time", "tenuto.tool.run.runner.time"):
        monkeypatch.setattr(counting, clock)
    edited = f"{PLAN}\n4. Tell </plan> the team."
    async with agent(tmp_path, [HAND_OVER, Reply("Off I go.")], mode="plan") as running:
        await running.send("go")
        request = await running.until(ApprovalRequestedEvent)
        clock.now += WAITED
        await answer(running, request, mode="edits", plan=edited)
        await settled(running)
        assert plan_result(running).duration == 0, "waiting for the user is no running time"
        told = running.server.requests[1].items[-1].text
        assert "changed it first" in told and "4. Tell" in told
        assert told.count("</plan>") == 1
        assert [entry.text for entry in running.session.entries() if isinstance(entry, PlanEntry)] == [edited]
        assert plan_view(running) == PlanView(text=edited, outcome="approved", mode="edits", edited=True)


async def test_going_on_planning_changes_nothing_and_tells_the_model_why(tmp_path):
    async with agent(tmp_path, [HAND_OVER, WRITE, HAND_OVER, Reply("Then not.")], mode="plan") as running:
        await running.send("go")
        await answer(running, await running.until(ApprovalRequestedEvent), decision="deny", feedback="use lazy imports")
        await answer(running, await running.until(ApprovalRequestedEvent, 2), decision="deny")
        assert "use lazy imports" in text_of(plan_result(running).parts)
        await settled(running)
        assert running.runtime.live.mode == "plan"
        assert not (tmp_path / "work" / "done.txt").exists()
        assert plan_view(running) == PlanView(text=PLAN, outcome="continued", feedback="use lazy imports")
        assert not plan_result(running).is_error and not plan_result(running).denied
        assert not any(isinstance(entry, PlanEntry) for entry in running.session.entries())


async def test_what_was_changed_goes_along_when_planning_goes_on(tmp_path):
    edited = f"{PLAN}\n4. Tell the team."
    async with agent(tmp_path, [HAND_OVER, Reply("I see.")], mode="plan") as running:
        await running.send("go")
        request = await running.until(ApprovalRequestedEvent)
        await answer(running, request, decision="deny", feedback="and smaller steps", plan=edited)
        await settled(running)
        told = running.server.requests[1].items[-1].text
        assert "and smaller steps" in told and "4. Tell" in told
        assert running.runtime.live.mode == "plan"
        assert plan_view(running) == PlanView(
            text=edited, outcome="continued", feedback="and smaller steps", edited=True
        )


async def test_outside_plan_mode_nobody_is_asked_and_the_result_says_so(tmp_path):
    async with agent(tmp_path, [HAND_OVER, Reply("Fine.")], mode="edits") as running:
        await running.ask("go")
        assert not running.of(ApprovalRequestedEvent)
        assert "Plan mode is off (mode edits)" in text_of(plan_result(running).parts)
        assert running.runtime.live.session.state.plan == ""


async def test_without_a_user_the_plan_is_the_answer_and_the_turn_ends(tmp_path):
    async with agent(tmp_path, [HAND_OVER, Reply("never asked for")], mode="plan", interactive=False) as running:
        assert (await running.ask("go")).outcome == "completed"
        assert len(running.server.requests) == 1
        assert plan_view(running).outcome == "unasked"
        assert "Nobody can be asked" in text_of(plan_result(running).parts)
        assert running.runtime.live.mode == "plan"
        assert (await running.ask("then?")).outcome == "completed"
        assert not any(request.refused for request in running.server.requests)


async def test_an_interrupt_during_the_question_ends_it_honestly(tmp_path):
    async with agent(tmp_path, [HAND_OVER, Reply("Again.")], mode="plan") as running:
        await running.send("go")
        await running.until(ApprovalRequestedEvent)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        assert (await settled(running)).outcome == "interrupted"
        assert plan_result(running).interrupted
        assert running.runtime.live.mode == "plan"
        await running.ask("go on")
        assert not any(request.refused for request in running.server.requests)


async def test_resuming_knows_the_mode_and_the_plan(tmp_path):
    async with ScriptedServer([HAND_OVER, Reply("Working."), Reply("More.")]) as server:
        async with reopened(tmp_path, server, mode="plan") as running:
            await running.send("go")
            await answer(running, await running.until(ApprovalRequestedEvent), mode="edits")
            await settled(running)
        async with reopened(tmp_path, server, mode=None, resume_latest=True) as running:
            assert running.runtime.live.mode == "edits"
            assert running.session.state.plan == PLAN
            assert plan_view(running) == PlanView(text=PLAN, outcome="approved", mode="edits")
            await running.ask("and?")
            assert not server.requests[-1].refused


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 2))
async def test_r032_an_approved_plan_stands_in_the_view_after_every_compaction_until_its_list_is_done(
    tmp_path, protocol
):
    todo = [{"text": "measure", "status": "completed"}, {"text": "import later", "status": "in progress"}]
    others = talk()

    def script(request):
        if is_summary_request(request):
            return others(request)
        new = itertools.takewhile(lambda item: item.kind == "user", reversed(request.items))
        said = "\n".join(item.text for item in new)
        if "plan it" in said:
            return HAND_OVER
        if "todo " in said:
            return Reply(tool_calls=[Call("todo", {"items": todo})])
        return others(request)

    async with ScriptedServer(script, window=32_000) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", mode="plan") as running:
            await running.send("plan it")
            await answer(running, await running.until(ApprovalRequestedEvent), mode="auto")
            await settled(running)
            await running.ask("todo now")
            for _ in range(2):
                await fill(running, 4)
                await compact(running)
            for entry in compactions(running):
                assert PLAN in entry.replacement[0].text
                assert entry.replacement[0].text.count("<approved-plan>") == 1
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert running.session.state.plan == PLAN
            todo[1]["status"] = "finished"
            await running.ask("todo again")
            assert running.session.state.plan == ""
            await fill(running, 4)
            await compact(running)
            assert "<approved-plan>" not in compactions(running)[-1].replacement[0].text
            assert [item.status for item in running.session.state.todo] == ["done", "done"]


async def test_the_folded_plan_is_the_same_however_the_path_is_read(tmp_path):
    from tenuto.session.view.state import SessionState, apply_path_entry, reset_path_state

    done = TodoEntry(items=())
    entries = [PlanEntry(seq=1, text="one"), done, PlanEntry(seq=3, text="two"), ModeEntry(seq=4, mode="edits")]
    grown, read = SessionState(), SessionState()
    for entry in entries:
        apply_path_entry(grown, entry)
    reset_path_state(read, entries)
    assert grown.plan == read.plan == "two"


async def test_the_tool_is_offered_in_every_mode_so_that_the_prefix_stays(tmp_path):
    async with agent(tmp_path, [Reply("a"), Reply("b")], mode="edits") as running:
        await running.ask("one")
        from tenuto.protocol.operation import ChangeModeOperation

        await running.runtime.submit(ChangeModeOperation(session_id=running.runtime.session_id, mode="plan"))
        await running.ask("two")
        first, second = running.server.requests
        assert "plan" in second.tool_names
        assert second.prefix_items[: len(first.prefix_items)] == first.prefix_items
        assert "plan tool" in "\n".join(item.text for item in second.items)
