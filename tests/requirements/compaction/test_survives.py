"""What survives a compaction: the last instruction, the will to go on, what waits for an answer (R-034 to R-040)."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.protocol.event import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CompactionEndEvent,
    NoticeEvent,
    StepStartedEvent,
    TaskFinishedEvent,
    ToolResultEvent,
    UserMessageEvent,
)
from tenuto.protocol.operation import AnswerApprovalOperation
from tests.core.harness import PROTOCOLS, agent
from tests.examples import one_of
from tests.requirements.compaction.support import (
    LONG_ANSWER,
    SUMMARY,
    begin_compaction,
    compact,
    compactions,
    ends,
    fill,
    in_turn,
    last_instruction,
    reads,
    starts,
    step_requests,
    summary_requests,
    talk,
    until,
    write_big_file,
)
from tests.server import Call, Reply

# --- R-034 ---


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS))
async def test_r034_in_mid_task_the_request_stays_word_for_word_and_last(tmp_path, protocol):
    """Several compactions inside one turn: the request is in every later one, once, and nothing is asked after it."""
    write_big_file(tmp_path)
    prompt = "Rename `frobnicate` to `adjust`: keep\n\tthe   odd spacing — and “these” quotes."
    script = talk(reads(40))
    async with agent(tmp_path, script, model=f"{protocol}/test", options={"window": 16_000}) as running:
        await fill_with_answers(running)
        settled = await running.ask(prompt, timeout=60)
        assert settled.outcome == "completed", settled.error
        assert len(compactions(running)) >= 3
        of_the_task = step_requests(running)[-41:]
        for request in of_the_task:
            users = [item.text for item in request.items if item.kind == "user" and "frobnicate" in item.text]
            assert len(users) == 1
            assert last_instruction(request) == prompt, "nothing is asked after it"


@pytest.mark.parametrize("words", [1_600, 3_200, 4_800])
async def test_r034_a_long_request_stays_word_for_word_at_the_cost_of_everything_else(tmp_path, words):
    """Up to 9 600 of the 16 000 usable tokens."""
    write_big_file(tmp_path, 1_500)
    prompt = "BEGIN " + "because " * words + "END"
    async with agent(tmp_path, talk(reads(12)), options={"window": 32_000}) as running:
        settled = await running.ask(prompt, timeout=60)
        assert settled.outcome == "completed", settled.error
        assert len(compactions(running)) >= 2
        assert all(last_instruction(request) == prompt for request in step_requests(running))
        assert not running.server.refusals


async def fill_with_answers(running) -> None:
    """Talk without reading: the scripts of this page count their steps from the next prompt on."""
    script, running.server.script = running.server.script, talk(Reply(LONG_ANSWER))
    await fill(running, 3)
    running.server.script = script


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r034_at_rest_the_last_message_is_kept_and_the_next_one_is_the_last_instruction(tmp_path, protocol):
    """T-09: plan A is cancelled, B is begun."""
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options={"window": 64_000}) as running:
        await fill(running, 8)
        await running.ask("Do plan A: move everything into one file. " + "because " * 300)
        await running.ask("Stop plan A. Do plan B: split it by topic; keep ‘legacy.py’ as it is.")
        await fill(running, 1, words=2_000)
        await compact(running)
        last_words = "Stop plan A. Do plan B: split it by topic; keep ‘legacy.py’ as it is."
        assert sum(last_words in str(message) for message in running.session.get_llm_history()) == 1
        await running.ask("now go on")
        request = step_requests(running)[-1]
        assert last_instruction(request) == "now go on"


# --- R-038, R-039 ---

RESTARTING = ("from the beginning", "from scratch", "startup", "start again", "begin anew", "introduce yourself")


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 2))
async def test_r038_what_the_model_reads_after_a_compaction_never_tells_it_to_start_over(tmp_path, protocol):
    write_big_file(tmp_path)
    async with agent(tmp_path, talk(reads(12)), model=f"{protocol}/test", options={"window": 16_000}) as running:
        await fill_with_answers(running)
        await running.ask("read all of it", timeout=60)
        assert compactions(running)
        for entry in compactions(running):
            said = str(entry.replacement)
            assert "Go on with the present task" in said
            assert "do not start over" in said.lower()
            assert not any(word in said.lower() for word in RESTARTING)
        typed = [event for event in running.of(UserMessageEvent) if event.origin == "typed"]
        assert len(typed) == len(running.of(UserMessageEvent)), "no message is made up"


async def test_r039_in_mid_task_it_goes_on_by_itself(tmp_path):
    write_big_file(tmp_path)
    async with agent(tmp_path, talk(reads(30)), options={"window": 16_000}) as running:
        settled = await running.ask("read all of it", timeout=60)
        assert settled.outcome == "completed", settled.error
        assert {entry.reason for entry in compactions(running)} == {"threshold"}
        assert len(step_requests(running)) == 31
        assert len(running.of(UserMessageEvent)) == 1
        assert len(running.of(TaskFinishedEvent)) == 1, "the compactions are part of the task"


async def test_r039_after_a_manual_one_at_rest_nothing_goes_on(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running)
        steps = len(step_requests(running))
        await compact(running)
        await asyncio.wait_for(running.runtime.wait_settled(), 30)
        await asyncio.sleep(0.2)
        assert len(step_requests(running)) == steps
        assert len(running.of(UserMessageEvent)) == 6


async def test_r039_after_a_manual_one_in_mid_task_it_stops_and_says_how_to_go_on(tmp_path):
    slow = Reply("step", tool_calls=[Call("bash", {"command": "sleep 600"})])
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 6, slow))
    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        await running.send("work")
        await running.until(StepStartedEvent, 7)
        await until(lambda: len(step_requests(running)) == 7)
        assert (await compact(running)).outcome == "completed"
        await asyncio.wait_for(running.runtime.wait_settled(), 30)
        await asyncio.sleep(0.2)
        assert len(step_requests(running)) == 7
        assert any("send a message to go on" in event.text for event in running.of(NoticeEvent))
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.refusals


# --- R-040 ---


async def ask_for_approval(running) -> ApprovalRequestedEvent:
    await fill(running)
    await running.send("clean up")
    return await running.until(ApprovalRequestedEvent)


def wanting_approval():
    call = Reply("May I?", tool_calls=[Call("bash", {"command": "touch asked-for"})])
    return talk(in_turn(*[Reply(LONG_ANSWER)] * 6, call))


async def test_r040_an_open_approval_outlives_the_wish_to_compact_unanswered(tmp_path):
    async with agent(tmp_path, wanting_approval(), mode="ask", options={"window": 32_000}) as running:
        asked = await ask_for_approval(running)
        compacting = asyncio.ensure_future(begin_compaction(running))
        await until(lambda: any("waits for your answer" in event.text for event in running.of(NoticeEvent)))
        assert not running.of(ApprovalResolvedEvent), "nobody answered for the user"
        assert not starts(running)
        assert running.runtime.live.approvals.is_open
        session_id = running.runtime.session_id
        answer = AnswerApprovalOperation(session_id=session_id, request_id=asked.request_id, decision="deny")
        await running.runtime.submit(answer)
        submission = await asyncio.wait_for(compacting, 60)
        await asyncio.wait_for(running.runtime.wait_for(submission), 60)
        assert len(compactions(running)) == 1
        assert running.of(ApprovalResolvedEvent)[0].decision == "deny"
        kinds = [type(event) for event in running.events]
        assert kinds.index(ApprovalResolvedEvent) < kinds.index(CompactionEndEvent)
        assert running.of(ToolResultEvent)[-1].message.denied or running.of(ToolResultEvent)[-1].message.interrupted


async def test_r040_asked_for_twice_while_an_approval_is_open_it_runs_once(tmp_path):
    script = wanting_approval()
    async with agent(tmp_path, script, mode="ask", options={"window": 32_000}) as running:
        asked = await ask_for_approval(running)
        twice = [asyncio.ensure_future(begin_compaction(running)) for _ in range(2)]
        await asyncio.sleep(0.2)
        answer = AnswerApprovalOperation(
            session_id=running.runtime.session_id, request_id=asked.request_id, decision="deny"
        )
        await running.runtime.submit(answer)
        for submission in await asyncio.wait_for(asyncio.gather(*twice), 60):
            await asyncio.wait_for(running.runtime.wait_for(submission), 60)
        assert len(starts(running)) == len(ends(running)) == 1
        assert not ends(running)[0].aborted
        assert len(compactions(running)) == 1
        assert len(summary_requests(running)) == 1


async def test_r040_a_threshold_compaction_never_runs_beside_an_open_approval(tmp_path):
    """A prompt typed while an approval is open joins the queue; the approval stays, and the compaction comes later."""
    async with agent(tmp_path, wanting_approval(), mode="ask", options={"window": 32_000}) as running:
        await ask_for_approval(running)
        await running.send("because " * 9_000)
        await asyncio.sleep(0.2)
        assert running.runtime.live.measure().tokens > running.runtime.live.budget().trigger
        assert not starts(running)
        assert not running.of(ApprovalResolvedEvent)
        assert running.runtime.live.approvals.is_open


async def test_r040_the_question_of_an_answer_is_still_in_the_view(tmp_path):
    """What the model asked in its last answer stays word for word, and nobody answers it."""
    question = "Shall I also rename the tests? Please answer yes or no."
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 6, Reply(question)), Reply(SUMMARY))
    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        await running.ask("what else?")
        await compact(running)
        view = running.session.get_llm_history()
        assert question in str(view[-1])
        await running.ask("yes")
        assert last_instruction(step_requests(running)[-1]) == "yes"
