"""The agent end to end, through all three protocols."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.core.state.live import LiveSession
from tenuto.protocol.entry import QueuedEntry, ShellEntry
from tenuto.protocol.event import (
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantWithdrawnEvent,
    NoticeEvent,
    PromptReturnedEvent,
    RetryEvent,
    ShellFinishedEvent,
    ShellOutputEvent,
    StepStartedEvent,
    TaskFinishedEvent,
    TaskStartedEvent,
    ToolResultEvent,
    ToolStartedEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import AssistantMessage, NoticeEntry, ToolResultMessage, UserMessage
from tenuto.protocol.operation import InterruptOperation, RunShellOperation
from tenuto.protocol.part import TextPart, text_of
from tests.core.harness import PROTOCOLS, agent, copy_sample, reopened
from tests.examples import one_of
from tests.server import Call, Cut, Hang, HttpError, Reply, ScriptedServer, StreamError
from tests.server.scripts import fix_tests

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("task_start")]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_answer_is_streamed_stored_and_settled(tmp_path, protocol):
    async with agent(tmp_path, [Reply("Good morning.")], model=f"{protocol}/test") as running:
        settled = await running.ask("hello")
        assert settled.outcome == "completed"
        assert "".join(event.text for event in running.of(AssistantTextDeltaEvent)) == "Good morning."
        stored = [entry for entry in running.session.entries() if isinstance(entry, AssistantMessage)]
        assert text_of(stored[0].parts) == "Good morning."
        assert stored[0].usage is not None
        assert any("hello" in item.text for item in running.server.requests[0].items)


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS))
async def test_main_job_a_failing_test_is_made_green(tmp_path, protocol):
    work = copy_sample(tmp_path / "repo")
    async with agent(tmp_path, fix_tests, model=f"{protocol}/test", cwd=work) as running:
        settled = await running.ask("make the tests pass", timeout=90)
        assert settled.outcome == "completed", settled.error
        names = [event.message.name for event in running.of(ToolResultEvent)]
        assert {"read", "edit", "bash"} <= set(names)
        assert not any(request.refused for request in running.server.requests)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=work, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


async def test_the_prompt_is_on_disk_before_the_request(tmp_path):
    seen = []

    def script(request):
        log = next((tmp_path / "home" / "sessions").glob("*/*/events.jsonl"))
        seen.append(log.read_text())
        return Reply("ok")

    async with agent(tmp_path, script) as running:
        await running.ask("remember me")
    assert "remember me" in seen[0]


async def test_parallel_calls_give_results_in_call_order(tmp_path):
    for name in "abc":
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "work" / f"{name}.txt").write_text(f"text of {name}")
    calls = [Call("read", {"path": f"{name}.txt"}) for name in "cab"]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("done")]) as running:
        await running.ask("read them")
        results = [event.message for event in running.of(ToolResultEvent)]
        assert [
            text_of(result.parts).count(f"text of {name}") for result, name in zip(results, "cab", strict=True)
        ] == [1, 1, 1]


async def test_a_fault_in_one_call_leaves_none_of_its_neighbours_running_or_without_a_result(tmp_path, monkeypatch):
    judge = LiveSession.judge

    def judge_or_break(live, subject, lent=()):
        if "broken.txt" in subject.summary:
            raise ZeroDivisionError("a fault of ours")
        return judge(live, subject, lent)

    monkeypatch.setattr(LiveSession, "judge", judge_or_break)
    calls = [
        Call("read", {"path": "broken.txt"}),
        Call("bash", {"command": "sleep 300"}),
        Call("bash", {"command": "pwd"}),
    ]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("on")], mode="auto") as running:
        (tmp_path / "work" / "broken.txt").write_text("x")
        await running.ask("read it")
        results = [entry for entry in running.session.path() if isinstance(entry, ToolResultMessage)]
        answer = next(entry for entry in running.session.path() if isinstance(entry, AssistantMessage))
        assert [result.call_id for result in results] == [call.id for call in answer.tool_calls]
        [finished] = running.of(TaskFinishedEvent)
        assert finished.outcome == "failed"
        assert "a fault of ours" in finished.error
        await running.ask("go on")
        assert not running.server.refusals


async def test_what_is_typed_meanwhile_is_queued_and_sent_in_order(tmp_path):
    async with agent(tmp_path, [Reply("one", delay_per_event=0.05), Reply("two"), Reply("three")]) as running:
        await running.send("first")
        await running.until(AssistantTextDeltaEvent)
        await running.send("second")
        await running.send("third")
        queued = [entry for entry in running.session.entries() if isinstance(entry, QueuedEntry)]
        assert [text_of(entry.parts) for entry in queued] == ["first", "second", "third"]
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        users = [text_of(event.parts) for event in running.of(UserMessageEvent)]
        assert users == ["first", "second", "third"]
        assert len(running.server.requests) == 3


async def test_steering_arrives_at_the_next_tool_boundary(tmp_path):
    script = [Reply(tool_calls=[Call("bash", {"command": "until [ -e go ]; do sleep 0.02; done"})]), Reply("done")]
    async with agent(tmp_path, script) as running:
        await running.send("work")
        await running.until(StepStartedEvent)
        await running.runtime.submit_prompt((TextPart(text="use tabs"),), steer=True)
        (tmp_path / "work" / "go").touch()
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert len(running.server.requests) == 2
        assert "use tabs" in running.server.requests[1].items[-1].text


async def test_an_interrupt_closes_the_stream_and_keeps_the_text(tmp_path):
    async with agent(tmp_path, [Reply("word " * 200, delay_per_event=0.05), Reply("again")]) as running:
        await running.send("go")
        await running.until(AssistantTextDeltaEvent, 3)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 30)
        assert settled.outcome == "interrupted"
        message = running.of(AssistantMessageEvent)[-1].message
        assert message.stop_reason == "interrupted"
        assert text_of(message.parts).startswith("word")
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.requests[-1].refused


async def test_an_interrupt_during_a_tool_stores_its_result(tmp_path):
    script = [Reply(tool_calls=[Call("bash", {"command": "sleep 600"})]), Reply("fine")]
    async with agent(tmp_path, script) as running:
        await running.send("go")
        await running.until(StepStartedEvent)
        await asyncio.sleep(0.5)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        result = running.of(ToolResultEvent)[-1].message
        assert result.interrupted
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.requests[-1].refused


async def test_after_an_interrupt_the_queue_waits_for_the_user(tmp_path):
    async with agent(tmp_path, [Reply("slow " * 100, delay_per_event=0.05), Reply("b"), Reply("c")]) as running:
        await running.send("first")
        await running.until(AssistantTextDeltaEvent)
        await running.send("second")
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await asyncio.wait_for(running.runtime.wait_settled(), 30)
        assert len(running.session.state.queue) == 1
        assert len(running.server.requests) == 1
        await running.runtime.submit_prompt(())
        await asyncio.wait_for(running.runtime.wait_settled(), 30)
        assert text_of(running.of(UserMessageEvent)[-1].parts) == "second"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r092_a_cut_stream_runs_no_tool_and_is_retried(tmp_path, protocol):
    whole = Reply("I will look.", tool_calls=[Call("bash", {"command": "touch ran"})])
    async with agent(tmp_path, [Cut(whole, after_events=4), Reply("done")], model=f"{protocol}/test") as running:
        settled = await running.ask("go")
        assert settled.outcome == "completed"
        assert not (tmp_path / "work" / "ran").exists()
        assert len(running.of(RetryEvent)) == 1
        assert len([entry for entry in running.session.entries() if isinstance(entry, AssistantMessage)]) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [429, 503, 529])
async def test_r093_a_refused_request_is_retried_after_what_the_server_asks(tmp_path, protocol, status):
    refusal = HttpError(status, "busy", {"retry-after": "0.05"})
    async with agent(tmp_path, [refusal, Reply("done")], model=f"{protocol}/test") as running:
        assert (await running.ask("go")).outcome == "completed"
        assert running.of(RetryEvent)[0].attempt == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r093_an_error_inside_the_stream_is_retried_and_withdrawn(tmp_path, protocol):
    async with agent(tmp_path, [StreamError(9), Reply("done")], model=f"{protocol}/test") as running:
        assert (await running.ask("go")).outcome == "completed"
        assert running.of(AssistantWithdrawnEvent)


async def test_r093_esc_ends_the_wait_before_a_retry(tmp_path):
    refusal = HttpError(429, "slow down", {"retry-after": "30"})
    async with agent(tmp_path, [refusal, Reply("done")]) as running:
        await running.send("go")
        await running.until(RetryEvent)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 30)
        assert settled.outcome == "interrupted"
        told = [event.text for event in running.of(NoticeEvent) if "nterrupted" in event.text]
        kept = [entry.text for entry in running.session.path() if isinstance(entry, NoticeEntry)]
        assert told == kept == ["Interrupted before there was an answer. Attempt 1 had failed: slow down"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_f10_an_interrupt_of_the_retries_keeps_the_reason_also_after_a_resume(tmp_path, protocol):
    """`daily-user.md` F10: waiting for the next attempt, and in the middle of one."""
    script = [HttpError(500, "The server had an error."), Hang(), HttpError(500, "It had another one.")]
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await running.send("go")
            while len(server.requests) < 2:
                await asyncio.sleep(0.01)
            await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
            await running.runtime.wait_settled()
            await running.send("again")
            await running.until(RetryEvent, 2)
            await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
            await running.runtime.wait_settled()
            told = [event.text for event in running.of(NoticeEvent) if "nterrupted" in event.text]
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as again:
            kept = [entry.text for entry in again.session.path() if isinstance(entry, NoticeEntry)]
            shown = [event.text for event in again.of(NoticeEvent) if "nterrupted" in event.text]
    assert told == kept == shown
    assert [reason in text for text, reason in zip(told, ("The server had", "It had another"), strict=True)] == [
        True
    ] * 2


async def test_an_interrupt_while_the_server_is_silent(tmp_path):
    async with agent(tmp_path, [Hang(), Reply("done")]) as running:
        await running.send("go")
        await running.server.wait_for_requests(1)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await asyncio.wait_for(running.runtime.wait_settled(), 30)


async def test_r094_bad_arguments_go_back_to_the_model(tmp_path):
    calls = [Call("read", '{"path": '), Call("read", "[1]"), Call("read", {"nope": 1}), Call("frobnicate", {})]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("sorry")]) as running:
        assert (await running.ask("go")).outcome == "completed"
        results = [event.message for event in running.of(ToolResultEvent)]
        assert len(results) == 4
        assert all(result.is_error for result in results)
        assert not running.server.requests[-1].refused


async def test_r096_the_same_failing_call_in_a_row_is_told_and_then_ends_the_task(tmp_path):
    async with agent(tmp_path, lambda request: Reply(tool_calls=[Call("read", {"path": "missing"})])) as running:
        settled = await running.ask("go")
        assert settled.outcome == "failed"
        assert "4 times in a row, also after it was told" in settled.error
        assert len(running.server.requests) == 4


async def test_r068_a_call_without_result_is_completed_on_resume(tmp_path):
    script = [Reply(tool_calls=[Call("bash", {"command": "true"})]), Reply("done"), Reply("I will check.")]
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("go")
            log = running.session.directory / "events.jsonl"
        lines = log.read_bytes().splitlines(keepends=True)
        cut = next(index for index, line in enumerate(lines) if b'"tool_result"' in line)
        log.write_bytes(b"".join(lines[:cut]))
        for extra in log.parent.glob("meta.json*"):
            extra.unlink()
        async with reopened(tmp_path, server, resume_latest=True) as running:
            result = [entry for entry in running.session.entries() if isinstance(entry, ToolResultMessage)][-1]
            assert result.interrupted
            assert "may have taken effect" in text_of(result.parts)
            assert (await running.ask("go on")).outcome == "completed"
            assert not server.requests[-1].refused


async def test_settled_is_announced_once_and_after_the_task(tmp_path):
    async with agent(tmp_path, [Reply("a")]) as running:
        await running.ask("go")
        kinds = [type(event).__name__ for event in running.events]
        assert kinds.count("TaskSettledEvent") == 1
        assert kinds.index("TaskFinishedEvent") < kinds.index("TaskSettledEvent")


async def test_wait_for_waits_for_exactly_that_submission(tmp_path):
    async with agent(tmp_path, [Reply("a")]) as running:
        submission = await running.send("go")
        finished = await asyncio.wait_for(running.runtime.wait_for(submission), 60)
        assert isinstance(finished, TaskFinishedEvent)
        assert finished.submission_id == submission
        assert await running.runtime.wait_for("unknown") is None


async def test_the_next_request_after_a_restart_is_the_one_it_would_have_been(tmp_path):
    """R-028: nothing but the new prompt is added by leaving and coming back."""
    async with ScriptedServer([Reply("one"), Reply("two"), Reply("three")]) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("first")
            await running.ask("second")
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await running.ask("third")
        before, after = server.requests[1].body["messages"], server.requests[2].body["messages"]
        assert after[: len(before)] == before
        assert server.requests[1].body["tools"] == server.requests[2].body["tools"]


async def test_user_entries_name_their_queued_entry(tmp_path):
    async with agent(tmp_path, [Reply("a")]) as running:
        await running.ask("go")
        entries = list(running.session.entries())
        queued = next(entry for entry in entries if isinstance(entry, QueuedEntry))
        user = next(entry for entry in entries if isinstance(entry, UserMessage))
        assert user.from_queued == queued.seq


async def shell(running, command: str) -> None:
    await running.runtime.submit(RunShellOperation(session_id=running.runtime.session_id, command=command))


async def test_a_command_runs_beside_the_turn_and_is_told_at_the_next_boundary(tmp_path):
    calls = [Call("bash", {"command": "while [ ! -e go ]; do sleep 0.02; done"})]
    async with agent(tmp_path, [Reply("First.", tool_calls=calls), Reply("Second."), Reply("Third.")]) as running:
        await running.send("go")
        await running.until(ToolStartedEvent)
        await shell(running, "echo from-the-person")
        assert (await running.until(ShellFinishedEvent)).entry.output.strip() == "from-the-person"
        assert not any(isinstance(entry, ShellEntry) for entry in running.session.entries()), "a call is open"
        await shell(running, "echo and-more")
        await running.until(ShellFinishedEvent, 2)
        (tmp_path / "work" / "go").touch()
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        kinds = [type(entry).__name__ for entry in running.session.entries()]
        place = kinds.index("ToolResultMessage")
        assert kinds[place : place + 4] == ["ToolResultMessage", "ShellEntry", "ShellEntry", "AssistantMessage"]
        assert b"and-more" in running.server.requests[1].raw
        await running.ask("again")
        assert [request.refused for request in running.server.requests] == ["", "", ""]
        first, second, third = (request.prefix_items for request in running.server.requests)
        assert second[: len(first)] == first and third[: len(second)] == second


async def test_a_command_that_outlasts_the_turn_is_what_runs_then_and_the_next_one_goes_back(tmp_path):
    async with agent(tmp_path, [Reply("slow " * 20, delay_per_event=0.05), Reply("Second.")]) as running:
        await running.send("go")
        await running.until(AssistantTextDeltaEvent)
        await shell(running, "echo begun; sleep 300")
        await running.until(ShellOutputEvent)
        await shell(running, "echo two")
        assert text_of(running.of(PromptReturnedEvent)[0].parts) == "!echo two"
        await running.until(TaskStartedEvent, 2)
        assert [event.kind for event in running.of(TaskStartedEvent)] == ["agent", "shell"]
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert settled.outcome == "interrupted"
        entry = next(entry for entry in running.session.entries() if isinstance(entry, ShellEntry))
        assert entry.output.strip() == "begun"
        await running.ask("still there")
        assert b"begun" in running.server.requests[1].raw


async def test_what_a_command_said_beside_the_turn_stands_before_the_next_prompt(tmp_path):
    async with agent(tmp_path, [Reply("slow " * 20, delay_per_event=0.05), Reply("Second.")]) as running:
        await running.send("go")
        await running.until(AssistantTextDeltaEvent)
        await shell(running, "echo beside")
        await running.until(ShellFinishedEvent)
        await running.send("and what did it say?")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        sent = running.server.requests[1].last_user
        assert -1 < sent.find("echo beside") < sent.find("and what did it say?")


async def test_leaving_ends_the_command_beside_the_turn(tmp_path):
    async with agent(tmp_path, [Reply("slow " * 400, delay_per_event=0.05)]) as running:
        await running.send("go")
        await running.until(AssistantTextDeltaEvent)
        await shell(running, "echo $$; exec sleep 300")
        pid = int((await running.until(ShellOutputEvent)).text)
        await running.runtime.run_command("/new")
        assert not Path(f"/proc/{pid}").exists()


async def test_a_users_command_is_told_to_the_model_unless_excluded(tmp_path):
    async with agent(tmp_path, [Reply("I see.")]) as running:
        for command, excluded in (("echo for-the-model", False), ("echo not-for-it", True)):
            operation = RunShellOperation(session_id=running.runtime.session_id, command=command, excluded=excluded)
            await running.runtime.wait_for(await running.runtime.submit(operation))
        await running.ask("what did I do?")
        sent = running.server.requests[0].raw.decode()
        assert "for-the-model" in sent
        assert "not-for-it" not in sent
