"""What the user does to queued prompts is on disk at once, one line each, and in the order that they see (R-043)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.protocol.entry import QueuedEntry, QueueEditEntry
from tenuto.protocol.event import (
    AssistantTextDeltaEvent,
    NoticeEvent,
    PromptReturnedEvent,
    QueueChangedEvent,
    StepStartedEvent,
    UserMessageEvent,
)
from tenuto.protocol.operation import EditQueueOperation, InterruptOperation
from tenuto.protocol.part import TextPart, text_of
from tenuto.session.session import Session
from tests.core.harness import Agent, agent
from tests.server import Call, Reply

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("task_start")]

SLOW = Reply("word " * 200, delay_per_event=0.05)


async def busy(running: Agent, *texts: str) -> dict[str, int]:
    """Have the model answer slowly and queue the texts; return their seqs."""
    await running.send("first")
    await running.until(AssistantTextDeltaEvent)
    for text in texts:
        await running.send(text)
    return {text_of(entry.parts): entry.seq for entry in running.session.state.queue}


async def edit(running: Agent, target: int, action: str, before: int = 0) -> None:
    await running.runtime.submit(
        EditQueueOperation(session_id=running.runtime.session_id, target=target, action=action, before=before)
    )


def order(queue) -> list[str]:
    return [text_of(entry.parts) + ("!" if entry.steer else "") for entry in queue]


def on_disk(running: Agent) -> list[str]:
    """Return the queue as somebody reads it who opens the session now."""
    session = Session.open(running.session.directory, read_only=True)
    try:
        return order(session.state.queue)
    finally:
        session.close()


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("delete", "b", "")], ["a", "c"]),
        ([("move", "c", "a")], ["c", "a", "b"]),
        ([("move", "a", "")], ["b", "c", "a"]),
        ([("move", "a", "c")], ["b", "a", "c"]),
        ([("steer", "b", "")], ["a", "b!", "c"]),
        ([("steer", "b", ""), ("unsteer", "b", ""), ("move", "b", "a")], ["b", "a", "c"]),
        ([("take_back", "a", ""), ("delete", "b", "")], ["c"]),
    ],
)  # fmt: skip
async def test_r043_each_change_is_on_disk_and_what_shows_before_the_next_key(tmp_path, steps, expected):
    async with agent(tmp_path, [SLOW]) as running:
        seqs = await busy(running, "a", "b", "c")
        for action, target, before in steps:
            await edit(running, seqs[target], action, seqs.get(before, 0))
            assert on_disk(running) == order(running.session.state.queue)
        assert on_disk(running) == order(running.of(QueueChangedEvent)[-1].items) == expected
        kept = {entry.seq for entry in running.session.entries() if isinstance(entry, QueuedEntry)}
        assert kept >= set(seqs.values()), "nothing is rewritten"
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))


async def test_r043_one_that_was_edited_gets_its_place_again_and_is_sent_in_it(tmp_path):
    async with agent(tmp_path, [Reply("word " * 20, delay_per_event=0.05), *[Reply("done")] * 3]) as running:
        seqs = await busy(running, "a", "b", "c")
        await edit(running, seqs["b"], "take_back")
        assert text_of(running.of(PromptReturnedEvent)[-1].parts) == "b"
        await running.runtime.submit_prompt((TextPart(text="b, better"),), before=seqs["c"])
        assert on_disk(running) == ["a", "b, better", "c"]
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert [text_of(event.parts) for event in running.of(UserMessageEvent)] == ["first", "a", "b, better", "c"]


async def test_r043_one_that_is_to_be_heard_sooner_is_delivered_at_the_next_tool_boundary_in_its_own_entry(tmp_path):
    command = "until [ -e go ]; do sleep 0.02; done"
    script = [Reply(tool_calls=[Call("bash", {"command": command})]), Reply("done"), Reply("done")]
    async with agent(tmp_path, script) as running:
        await running.send("work")
        await running.until(StepStartedEvent)
        await running.send("later")
        await running.send("use tabs")
        await edit(running, running.session.state.queue[1].seq, "steer")
        assert sum(isinstance(entry, QueuedEntry) for entry in running.session.entries()) == 3, (
            "no text is written twice"
        )
        (tmp_path / "work" / "go").touch()
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert "use tabs" in running.server.requests[1].items[-1].text
        assert [text_of(event.parts) for event in running.of(UserMessageEvent)] == ["work", "use tabs", "later"]


async def test_r043_an_interrupt_pauses_the_queue(tmp_path):
    async with agent(tmp_path, [SLOW, Reply("done"), Reply("done")]) as running:
        seqs = await busy(running, "a", "b")
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert running.of(QueueChangedEvent)[-1].waiting and on_disk(running) == ["a", "b"]
        await edit(running, seqs["a"], "delete")
        await asyncio.sleep(0.1)
        assert on_disk(running) == ["b"], "changing what waits sends nothing"
        assert len(running.server.requests) == 1


async def test_what_is_sent_already_cannot_be_changed_and_that_is_said(tmp_path):
    async with agent(tmp_path, [Reply("done")]) as running:
        await running.ask("go")
        sent = next(entry for entry in running.session.entries() if isinstance(entry, QueuedEntry))
        lines = len(list(running.session.entries()))
        await edit(running, sent.seq, "delete")
        assert len(list(running.session.entries())) == lines
        assert any("has been sent" in event.text for event in running.of(NoticeEvent))


async def test_the_queue_by_numbers_for_those_who_have_no_panel(tmp_path):
    async with agent(tmp_path, [SLOW]) as running:

        async def say(line: str) -> str:
            [outcome] = await running.runtime.run_command(line)
            return outcome.text

        assert await say("/queue") == "Nothing is queued."
        await busy(running, "a", "b\nmore", "c")
        assert await say("/queue") == "1. a\n2. b more\n3. c"
        assert await say("/queue up 3") == "1. a\n2. c\n3. b more"
        assert await say("/queue up 1") == "1. a\n2. c\n3. b more"
        assert await say("/queue down 1") == "1. c\n2. a\n3. b more"
        assert await say("/queue down 2") == "1. c\n2. b more\n3. a"
        assert await say("/queue steer 2") == "1. c\n2. b more (at the next tool boundary)\n3. a"
        assert await say("/queue delete 1") == "1. b more (at the next tool boundary)\n2. a"
        for wrong in ("/queue 1", "/queue edit", "/queue edit x", "/queue burn 1", "/queue edit 0", "/queue edit 9"):
            assert "/queue edit" in await say(wrong) or "no number" in await say(wrong)
        await say("/queue edit 2")
        assert text_of(running.of(PromptReturnedEvent)[-1].parts) == "a"
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))


KILLED = """
import os, signal, sys
from pathlib import Path
from tenuto.protocol.entry import DequeuedEntry, QueueEditEntry, QueuedEntry
from tenuto.protocol.part import TextPart
from tenuto.session.session import Session
session = Session.open(Path(sys.argv[1]))
a, b, c = (session.append(QueuedEntry(parts=(TextPart(text=word),))) for word in "abc")
session.append(DequeuedEntry(target=a.seq))
session.append(QueueEditEntry(target=c.seq, before=b.seq))
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_r043_a_kill_right_after_a_change_brings_nothing_back(tmp_path: Path):
    async with agent(tmp_path, [Reply("done")]) as running:
        await running.ask("go")
        directory = running.session.directory
    code = subprocess.run([sys.executable, "-c", KILLED, str(directory)], env=dict(os.environ), check=False).returncode
    assert code == -signal.SIGKILL
    session = Session.open(directory)
    assert order(session.state.queue) == ["c", "b"]
    assert [type(entry) for entry in session.entries()][-1] is QueueEditEntry
    session.close()
