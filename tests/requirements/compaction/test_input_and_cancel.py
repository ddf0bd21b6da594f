"""What is typed during a compaction is never lost, and a late Esc takes nothing back (R-043, R-044, R-047)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.protocol.event import (
    AssistantTextDeltaEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    QueueChangedEvent,
    TaskFinishedEvent,
    UserMessageEvent,
)
from tenuto.protocol.operation import EditQueueOperation
from tenuto.protocol.part import text_of
from tests.core.harness import agent, reopened
from tests.requirements.compaction.support import (
    LONG_ANSWER,
    SUMMARY,
    begin_compaction,
    compact,
    compactions,
    ends,
    fill,
    in_turn,
    interrupt,
    is_summary_request,
    log_of,
    reads,
    starts,
    step_requests,
    summary_requests,
    talk,
    until,
    write_big_file,
)
from tests.server import Hang, HttpError, Reply, ScriptedServer, ServerThread

THREE = ("one: look", "two: then mend", "three: then test")
TYPIST = Path(__file__).with_name("typist.py")


def queued_texts(running) -> list[str]:
    return [text_of(item.parts) for item in running.of(QueueChangedEvent)[-1].items]


# --- R-043 ---


async def test_r043_what_is_typed_is_shown_and_on_disk_at_once_and_sent_afterwards_in_order(tmp_path):
    async with agent(tmp_path, talk(summary=Reply(SUMMARY, delay=0.5)), options={"window": 32_000}) as running:
        await fill(running)
        await begin_compaction(running)
        await running.until(CompactionProgressEvent)
        for number, text in enumerate(THREE, 1):
            await running.send(text)
            assert queued_texts(running) == list(THREE[:number])
            assert text.encode() in log_of(running)
        assert not ends(running), "all that happened during the compaction"
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert [text_of(event.parts) for event in running.of(UserMessageEvent)][-3:] == list(THREE)
        assert queued_texts(running) == []


@pytest.mark.parametrize("how", ["cancelled", "refused"])
async def test_r043_after_a_compaction_that_came_to_nothing_the_texts_are_queued_or_sent(tmp_path, how):
    summary = Hang() if how == "cancelled" else HttpError(401, "invalid x-api-key", delay=0.3)
    async with agent(tmp_path, talk(summary=summary), options={"window": 32_000}) as running:
        await fill(running)
        submission = await begin_compaction(running)
        await until(lambda: bool(summary_requests(running)))
        for text in THREE:
            await running.send(text)
        if how == "cancelled":
            await interrupt(running)
        await asyncio.wait_for(running.runtime.wait_for(submission), 30)
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        if how == "cancelled":
            assert queued_texts(running) == list(THREE)
            assert running.of(QueueChangedEvent)[-1].waiting, "the queue waits for the user"
            await running.runtime.submit_prompt(())
            await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert [text_of(event.parts) for event in running.of(UserMessageEvent)][-3:] == list(THREE)


async def test_r043_killed_during_the_compaction_the_texts_are_there_in_order_after_a_resume(tmp_path):
    """T-10"""
    with ServerThread(talk(summary=Hang()), window=32_000) as slow:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(TYPIST.parents[3])}
        process = subprocess.Popen(
            [sys.executable, str(TYPIST), str(tmp_path), *THREE],
            env=environ | slow.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "typed\n"
            await until(lambda: any(map(is_summary_request, slow.requests)))
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=120)
    async with ScriptedServer(talk(), window=32_000) as server, reopened(tmp_path, server, resume_latest=True) as again:
        assert queued_texts(again) == list(THREE)
        assert not starts(again)
        assert not compactions(again)
        assert not server.requests, "nothing is sent before the user says so"
        await again.runtime.submit_prompt(())
        await asyncio.wait_for(again.runtime.wait_settled(), 60)
        assert [text_of(event.parts) for event in again.of(UserMessageEvent)][-3:] == list(THREE)


# --- R-044 ---


async def test_r044_texts_queued_before_a_compaction_are_all_there_after_it(tmp_path):
    slow = Reply("word " * 400, delay_per_event=0.05)
    script = talk(in_turn(*[Reply(LONG_ANSWER)] * 6, slow, then=Reply("ok")))
    async with agent(tmp_path, script, options={"window": 32_000}) as running:
        await fill(running)
        await running.send("long work")
        shown = len(running.of(AssistantTextDeltaEvent))
        await running.until(AssistantTextDeltaEvent, shown + 2)
        for text in THREE:
            await running.send(text)
        assert (await compact(running)).outcome == "completed", "the task is stopped, the queue is not"
        assert queued_texts(running) == list(THREE)
        for request in summary_requests(running):
            assert not any(text.encode() in request.raw for text in THREE), "R-045"
        await running.runtime.submit_prompt(())
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert [text_of(event.parts) for event in running.of(UserMessageEvent)][-3:] == list(THREE)


async def test_r044_a_queued_text_can_be_taken_back_while_it_compacts(tmp_path):
    async with agent(tmp_path, talk(summary=Reply(SUMMARY, delay=0.3)), options={"window": 32_000}) as running:
        await fill(running)
        await begin_compaction(running)
        for text in THREE:
            await running.send(text)
        second = running.session.state.queue[1].seq
        session_id = running.runtime.session_id
        await running.runtime.submit(EditQueueOperation(session_id=session_id, target=second, action="delete"))
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        sent = [text_of(event.parts) for event in running.of(UserMessageEvent)]
        assert sent[-2:] == [THREE[0], THREE[2]]
        assert len(compactions(running)) == 1


# --- R-047 ---


async def test_r047_esc_after_the_new_history_is_on_disk_counts_as_done(tmp_path):
    """The interrupt arrives at the very moment in which the end is announced: the line is written."""
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running)
        tasks, session_id = running.runtime.executor.tasks, running.runtime.session_id

        def press_esc(event: object) -> None:
            if isinstance(event, CompactionEndEvent):
                tasks.cancel(session_id)

        running.runtime.subscribe(press_esc)
        finished = await compact(running)
        assert finished.outcome == "completed"
        assert len(compactions(running)) == 1
        (end,) = ends(running)
        assert not end.aborted
        assert end.error is None
        assert (await running.ask("go on")).outcome == "completed"
        assert "Keep the tests green" in step_requests(running)[-1].raw.decode()


async def test_r047_esc_as_the_line_is_written_counts_as_done(tmp_path):
    """The same one moment earlier: the interrupt comes while the entry goes to the log."""
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running)
        tasks, session_id = running.runtime.executor.tasks, running.runtime.session_id
        log = running.session._log
        write = log.write

        def write_and_press_esc(line: bytes) -> int:
            offset = write(line)
            if b'"type":"compaction"' in line:
                tasks.cancel(session_id)
            return offset

        log.write = write_and_press_esc
        finished = await compact(running)
        assert finished.outcome == "completed"
        assert len(compactions(running)) == 1
        assert [end.aborted for end in ends(running)] == [False]


async def test_r047_in_mid_task_the_compaction_stays_and_the_task_can_be_taken_up(tmp_path):
    write_big_file(tmp_path)
    async with agent(tmp_path, talk(reads(40)), options={"window": 16_000}) as running:
        tasks, session_id = running.runtime.executor.tasks, running.runtime.session_id

        def press_esc(event: object) -> None:
            if isinstance(event, CompactionEndEvent) and len(compactions(running)) == 1:
                tasks.cancel(session_id)

        running.runtime.subscribe(press_esc)
        await running.ask("read all of it", timeout=30)
        assert running.of(TaskFinishedEvent)[-1].outcome == "interrupted"
        assert len(compactions(running)) == 1
        assert not any(end.aborted for end in ends(running))
        settled = await running.ask("go on", timeout=30)
        assert settled.outcome == "completed", settled.error
        assert not running.server.refusals
