"""A plan: handed over, answered by the user, followed, kept over a compaction, replayed."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import ModeEntry, PlanEntry, TodoEntry
from tenuto.protocol.event import (
    ApprovalRequestedEvent,
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    ModeChangedEvent,
    TaskSettledEvent,
    ToolCallDeltaEvent,
    ToolResultEvent,
)
from tenuto.protocol.message import AssistantMessage, DeveloperMessage, PlanMark, PlanView, ToolResultMessage
from tenuto.protocol.operation import AnswerApprovalOperation, ChangeModeOperation, InterruptOperation
from tenuto.protocol.part import TextPart, ToolCallPart, text_of
from tenuto.session.plans import (
    CLOSE_TAG,
    OPEN_TAG,
    PLAN_CALL,
    Piece,
    PlanReader,
    proposed_plan,
    shown_answer,
    unfinished_plan,
    with_mark,
)
from tenuto.text.writable import to_json
from tests.core.compacting import compact, compactions, fill, is_summary_request, seeded_session, talk, user, words
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.examples import one_of
from tests.server import Call, Reply, ScriptedServer

PLAN = "# Make it quick\n\n1. Measure `start.py`.\n2. Import later.\n3. Measure again."
HAND_OVER = Reply(f"Here is what I would do.\n\n<proposed_plan>\n{PLAN}\n</proposed_plan>", chunk_size=9)
LINES = [
    "<proposed_plan>",
    " </proposed_plan> ",
    "</proposed_plan>",
    "<prop",
    "<proposed_plan> x",
    "",
    "  ",
    "# Plan",
    "a\r",
]
WRITE = Reply(tool_calls=[Call("write", {"path": "done.txt", "content": "done\n"})])


async def answer(running, request, **changes) -> None:
    operation = AnswerApprovalOperation(
        session_id=running.runtime.session_id, request_id=request.request_id, **{"decision": "once", **changes}
    )
    await running.runtime.submit(operation)


async def settled(running) -> TaskSettledEvent:
    return await asyncio.wait_for(running.runtime.wait_settled(), 60)


def plan_result(running) -> ToolResultMessage:
    """Return what is shown as the result of the first plan."""
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
        assert (request.kind, request.detail, request.kinds) == ("plan", PLAN, ())
        assert not (tmp_path / "work" / "done.txt").exists(), "plan mode refuses changes"
        await answer(running, request, mode=mode)
        assert (await settled(running)).outcome == "completed"
        assert (tmp_path / "work" / "done.txt").read_text() == "done\n"
        assert running.of(ModeChangedEvent)[-1].mode == mode
        assert running.runtime.live.mode == mode
        assert plan_view(running) == PlanView(text=PLAN, outcome="approved", mode=mode)
        streamed = "".join(event.text for event in running.of(AssistantTextDeltaEvent))
        assert streamed == "Here is what I would do.\n\nAll done."
        assert PLAN_CALL in {event.name for event in running.of(ToolCallDeltaEvent)}
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


async def test_the_edited_plan_is_the_one_that_the_model_gets_and_the_log_keeps(tmp_path):
    edited = f"{PLAN}\n4. Tell </plan> the team."
    async with agent(tmp_path, [HAND_OVER, Reply("Off I go.")], mode="plan") as running:
        await running.send("go")
        request = await running.until(ApprovalRequestedEvent)
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


async def test_b15_a_plan_that_is_complete_when_plan_mode_was_left_is_asked_about_no_more(tmp_path):
    slow = replace(HAND_OVER, delay_per_event=0.05)
    async with agent(tmp_path, [slow, Reply("On it.")], mode="plan") as running:
        await running.send("go")
        await running.until(ToolCallDeltaEvent)
        await running.runtime.submit(ChangeModeOperation(session_id=running.runtime.session_id, mode="edits"))
        assert (await settled(running)).outcome == "completed"
        assert not running.of(ApprovalRequestedEvent)
        assert plan_view(running) == PlanView(text=PLAN)
        assert "Plan mode is off (mode edits)" in running.server.requests[1].items[-1].text


async def test_b15_an_interrupt_in_the_middle_of_a_plan_keeps_its_words_and_shows_no_tag(tmp_path):
    text = f"So:\n<proposed_plan>\n{PLAN}\n{words(2_000)}\n</proposed_plan>"
    script = [Reply(text, chunk_size=40, delay_per_event=0.05), Reply("Yes?")]
    async with agent(tmp_path, script, mode="plan") as running:
        await running.send("go")
        await running.until(ToolCallDeltaEvent, 4)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        assert (await settled(running)).outcome == "interrupted"
        assert PLAN in "".join(shown_of(running))
        assert not any("proposed_plan" in shown for shown in shown_of(running))
        await running.ask("go on")
        assert not running.of(ApprovalRequestedEvent)
        assert not any(request.refused for request in running.server.requests)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b15_outside_plan_mode_a_block_is_just_text(tmp_path, protocol):
    async with agent(tmp_path, [HAND_OVER], model=f"{protocol}/test", mode="edits") as running:
        assert (await running.ask("go")).outcome == "completed"
        assert not running.of(ApprovalRequestedEvent) and not running.of(ToolResultEvent)
        (answer,) = (event.message for event in running.of(AssistantMessageEvent))
        assert text_of(answer.parts) == HAND_OVER.text
        assert "".join(event.text for event in running.of(AssistantTextDeltaEvent)) == HAND_OVER.text
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


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 1))
async def test_r032_what_the_user_said_to_a_plan_is_not_lost_to_a_compaction_right_behind_it(tmp_path, protocol):
    large = f"<proposed_plan>\n{PLAN}\n{words(3_000)}\n</proposed_plan>"
    others = talk()

    def script(request):
        is_asked = any("plan it" in item.text for item in request.items[-2:]) and not is_summary_request(request)
        return Reply(large) if is_asked else others(request)

    async with ScriptedServer(script, window=32_000) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", mode="plan") as running:
            live = running.runtime.live
            while live.measure().tokens < live.budget().trigger - 2_000:
                await running.ask("question " + words(600))
            assert not compactions(running)
            await running.send("plan it")
            request = await running.until(ApprovalRequestedEvent)
            await answer(running, request, decision="deny", feedback="use lazy imports")
            await settled(running)
            assert len(compactions(running)) == 1
            assert "use lazy imports" in server.requests[-1].items[-1].text
            assert not any(request.refused for request in server.requests)


async def test_the_folded_plan_is_the_same_however_the_path_is_read(tmp_path):
    from tenuto.session.view.state import SessionState, apply_path_entry, reset_path_state

    done = TodoEntry(items=())
    entries = [PlanEntry(seq=1, text="one"), done, PlanEntry(seq=3, text="two"), ModeEntry(seq=4, mode="edits")]
    grown, read = SessionState(), SessionState()
    for entry in entries:
        apply_path_entry(grown, entry)
    reset_path_state(read, entries)
    assert grown.plan == read.plan == "two"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b15_the_mode_alone_says_how_a_plan_is_handed_over_so_that_the_prefix_stays(tmp_path, protocol):
    async with agent(tmp_path, [Reply("a"), Reply("b")], model=f"{protocol}/test", mode="edits") as running:
        await running.ask("one")
        await running.runtime.submit(ChangeModeOperation(session_id=running.runtime.session_id, mode="plan"))
        await running.ask("two")
        first, second = running.server.requests
        assert "plan" not in second.tool_names
        assert "proposed_plan" not in "\n".join(item.text for item in first.items), "it costs nothing elsewhere"
        assert second.prefix_items[: len(first.prefix_items)] == first.prefix_items
        assert "<proposed_plan>" in "\n".join(item.text for item in second.items)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b15_what_was_sent_of_a_plan_never_changes(tmp_path, protocol):
    script = [HAND_OVER, WRITE, Reply("All done."), Reply("yes")]
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", mode="plan") as running:
            await running.send("make it quick")
            await answer(running, await running.until(ApprovalRequestedEvent), mode="auto")
            assert (await settled(running)).outcome == "completed"
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            await running.ask("is it?")
        for before, after in itertools.pairwise(server.requests):
            assert after.prefix_items[: len(before.prefix_items)] == before.prefix_items
        sent = [item.text for item in server.requests[-1].items if item.kind == "assistant"]
        assert sent[0] == HAND_OVER.text, "the model gets back what it wrote"
        assert not any(request.refused for request in server.requests)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("cut", [3, 20, len("<proposed_plan>"), 40, len(f"<proposed_plan>\n{PLAN}\n</prop")])
async def test_b15_a_plan_that_was_cut_off_goes_on_by_itself_and_is_one_plan(tmp_path, protocol, cut):
    block = f"<proposed_plan>\n{PLAN}\n</proposed_plan>\n"
    script = [Reply(f"So:\n{block[:cut]}", stop="max_tokens"), Reply(block[cut:]), Reply("Fine.")]
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", mode="plan") as running:
            await running.send("go")
            request = await running.until(ApprovalRequestedEvent)
            assert request.detail == PLAN
            await answer(running, request, decision="deny")
            await settled(running)
            assert plan_view(running).text == PLAN
            shown = shown_of(running)
            assert not any("proposed_plan" in text or "</" in text for text in shown)
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert [text for text in shown_of(running) if text] == [text for text in shown if text]
        assert not any(request.refused for request in server.requests)


async def test_b15_of_several_blocks_the_last_one_counts_and_no_tag_is_shown(tmp_path):
    text = "<proposed_plan>\n# First\n</proposed_plan>\nNo, better:\n<proposed_plan>\n# Second\n</proposed_plan>\nDone."
    async with agent(tmp_path, [Reply(text), Reply("Fine.")], mode="plan") as running:
        await running.send("go")
        request = await running.until(ApprovalRequestedEvent)
        assert request.detail == "# Second"
        await answer(running, request, decision="deny")
        await settled(running)
        assert not any("proposed_plan" in shown for shown in shown_of(running))
        assert "# First" in "".join(shown_of(running)) and "Done." in "".join(shown_of(running))


async def test_b15_a_plan_beside_calls_is_not_handed_over_and_its_tags_are_not_shown(tmp_path):
    script = [Reply(HAND_OVER.text, tool_calls=[Call("todo", {"items": [{"text": "look"}]})]), Reply("Well.")]
    async with agent(tmp_path, script, mode="plan") as running:
        assert (await running.ask("go")).outcome == "completed"
        assert not running.of(ApprovalRequestedEvent)
        assert not any("proposed_plan" in shown for shown in shown_of(running))
        assert PLAN in "".join(shown_of(running))


async def test_b15_a_call_of_the_tool_that_was_there_once_gets_a_clear_answer(tmp_path):
    script = [Reply(tool_calls=[Call("plan", {"plan": PLAN})]), HAND_OVER, Reply("Fine.")]
    async with agent(tmp_path, script, mode="plan") as running:
        await running.send("go")
        request = await running.until(ApprovalRequestedEvent)
        assert request.detail == PLAN
        assert "no tool named plan any more" in running.server.requests[1].items[-1].text
        assert "<proposed_plan>" in running.server.requests[1].items[-1].text
        await answer(running, request, decision="deny")
        await settled(running)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b15_an_older_log_with_a_call_of_plan_is_shown_and_sent_as_ever(tmp_path, protocol):
    call = ToolCallPart(id="call_old1", name="plan", arguments=to_json({"plan": PLAN}).decode())
    view = PlanView(text=PLAN, outcome="approved", mode="auto")
    old = ToolResultMessage(call_id="call_old1", name="plan", parts=(TextPart(text="Approved."),), ui=(view,))
    seeded = (user("plan it"), AssistantMessage(parts=(call,), model=f"{protocol}/test", stop_reason="tool_use"), old)
    seeded_session(tmp_path, f"{protocol}/test", *seeded, PlanEntry(text=PLAN)).close()
    async with ScriptedServer([Reply("On it.")]) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", mode="auto", resume_latest=True) as running:
            assert plan_view(running) == view
            assert running.session.state.plan == PLAN
            assert (await running.ask("go on")).outcome == "completed"
            assert any(item.name == "plan" for item in server.requests[0].items)
            assert not server.requests[0].refused


async def test_b15_killed_while_it_waits_nobody_approved_it_and_the_model_is_told(tmp_path):
    mark = PlanMark(state="proposed")
    asked = AssistantMessage(parts=(TextPart(text=HAND_OVER.text),), model="openai-chat/test", plan=mark)
    seeded_session(tmp_path, "openai-chat/test", ModeEntry(mode="plan"), user("plan it"), asked).close()
    async with ScriptedServer([Reply("Well."), Reply("Yes.")]) as server:
        async with reopened(tmp_path, server, mode=None, resume_latest=True) as running:
            await running.ask("go on")
            (view,) = [e.plan for e in running.session.path() if isinstance(e, DeveloperMessage) and e.plan is not None]
            assert isinstance(view, PlanView) and view.outcome == "interrupted"
            assert all(event.message.name != "plan" for event in running.of(ToolResultEvent)), (
                "a screen shows it closed"
            )
            await running.ask("and now?")
            sent = [item.text for item in server.requests[-1].items]
            assert sum("the plan is not approved" in text for text in sent) == 1


@given(st.lists(st.sampled_from(LINES), max_size=8), st.data())
def test_b15_however_a_stream_is_cut_it_shows_the_same_and_no_tag(lines, data):
    text = "\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    bounds = [0, *cuts, len(text)]
    whole = PlanReader()
    expected = joined([*whole.feed(text), *whole.finish()])
    reader = PlanReader()
    pieces = [piece for start, stop in itertools.pairwise(bounds) for piece in reader.feed(text[start:stop])]
    assert joined([*pieces, *reader.finish()]) == expected
    assert (reader.begun, reader.complete, reader.is_inside) == (whole.begun, whole.complete, whole.is_inside)
    kept = "".join(shown for shown, _ in expected)
    assert not any(line.strip() in {OPEN_TAG, CLOSE_TAG} for line in kept.split("\n")) or OPEN_TAG not in text
    others = [line for line in text.split("\n") if line.strip() not in {OPEN_TAG, CLOSE_TAG}]
    assert [line for line in kept.split("\n") if line] == [line for line in others if line]


@given(st.lists(st.sampled_from(LINES), max_size=8), st.integers(0, 200), st.sampled_from(["max_tokens", "pause"]))
def test_b15_a_cut_anywhere_makes_the_plan_that_the_whole_answer_has(lines, place, stop):
    text = "\n".join([*lines, OPEN_TAG, "# It", "1. one", CLOSE_TAG, "so"])
    at = min(place, len(text))
    whole = with_mark(AssistantMessage(parts=(TextPart(text=text),), seq=7), "")
    first = with_mark(AssistantMessage(parts=(TextPart(text=text[:at]),), seq=5, stop_reason=stop), "")
    second = with_mark(AssistantMessage(parts=(TextPart(text=text[at:]),), seq=7), unfinished_plan(first))
    last = first if proposed_plan(first) else second
    if at > len(text) - len(CLOSE_TAG) - 20 or last is second:
        assert proposed_plan(last) == proposed_plan(whole) == "# It\n1. one"
        (call,) = shown_answer(last).tool_calls
        assert call.arguments == shown_answer(whole).tool_calls[0].arguments
    for shown in map(shown_answer, (first, second)):
        for line in text_of(shown.parts).split("\n"):
            assert line.strip() not in {OPEN_TAG, CLOSE_TAG}


def joined(pieces: list[Piece]) -> list[tuple[str, int]]:
    """Return pieces with neighbours of one block as one."""
    groups = itertools.groupby(pieces, key=lambda piece: piece.block)
    return [("".join(piece.text for piece in group), block) for block, group in groups]


def shown_of(running) -> list[str]:
    """Return the texts of answers, the plans and the notes on them that front-ends were told."""
    texts: list[str] = []
    for event in running.events:
        match event:
            case AssistantMessageEvent(message=message):
                texts += [part.text if isinstance(part, TextPart) else part.arguments for part in message.parts]
            case ToolResultEvent(message=message):
                texts.append(text_of(message.parts))
    return [text.strip() for text in texts]
