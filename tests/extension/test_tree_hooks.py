"""Hooks around a move of the leaf, from a file in `extensions/` to the log (seed 003, `session_before_tree`)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.command.outcome import Edit
from tenuto.protocol.entry import BranchSummaryEntry
from tenuto.protocol.event import CompactionEndEvent, CompactionProgressEvent, NoticeEvent
from tenuto.protocol.message import AssistantMessage
from tests.core.compacting import fill, interrupt, log_of, summary_requests, talk, until
from tests.core.going_back import check, command, message, script, view_texts
from tests.core.harness import Agent, agent, reopened
from tests.extension import witness
from tests.server import ScriptedServer


def extend(tmp_path: Path, body: str) -> None:
    """Install an extension that notes both hooks, and answers the first one with `body`."""
    folder = tmp_path / "home" / "extensions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(
        f"""
import time
from tests.extension import witness

def setup(tenuto):
    tenuto.on("session_tree", lambda event: witness.note("session_tree", event))
    tenuto.on("session_compact_failed", lambda event: witness.note("session_compact_failed", event))

    @tenuto.on("session_before_tree")
    def ask(event):
        witness.note("session_before_tree", event)
        {body}
"""
    )


@pytest.fixture(autouse=True)
def _fresh_witness():
    witness.seen.clear()


async def talk_twice(running: Agent) -> int:
    """Two turns; return the seq of the second message."""
    await running.ask("one")
    await running.ask("two")
    return message(running, "two").seq


async def test_both_are_called_without_a_summary_too(tmp_path):
    extend(tmp_path, "return None")
    async with agent(tmp_path, script) as running:
        seq = await talk_twice(running)
        leaf = running.session.path()[-1].seq
        before = [entry.seq for entry in running.session.path() if entry.seq < seq]
        await command(running, f"/tree {seq}")
        (asked,) = witness.of("session_before_tree")
        preparation = asked.preparation
        assert (asked.session_id, asked.cwd) == (running.session.id, str(running.session.cwd))
        assert (preparation.target, preparation.old_leaf, preparation.common_ancestor) == (before[-1], leaf, before[-1])
        assert not preparation.user_wants_summary
        assert seq in [entry.seq for entry in preparation.entries_to_summarize]
        assert isinstance(preparation.entries_to_summarize[-1], AssistantMessage)
        await until(lambda: witness.of("session_tree"))
        (told,) = witness.of("session_tree")
        assert (told.old_leaf, told.new_leaf, told.summary_entry, told.from_extension) == (leaf, before[-1], None, "")


@pytest.mark.parametrize(
    "line", ["/tree {}", "/tree {} summary", "/rewind {} talk", "/rewind {} both", "/compact from {}"]
)
async def test_a_cancel_leaves_everything_as_it_is(tmp_path, line):
    extend(tmp_path, 'return {"cancel": True, "cancel_reason": "not on a Friday"}')
    async with agent(tmp_path, talk(), options={"window": 64_000}) as running:
        await fill(running, 3)
        before = log_of(running)
        assert not any(
            isinstance(one, Edit) for one in await command(running, line.format(message(running, "question 2").seq))
        )
        assert log_of(running) == before
        said = [event.text for event in running.of(NoticeEvent)] + [
            event.error or "" for event in running.of(CompactionEndEvent)
        ]
        assert any("the extension mine is against going there: not on a Friday" in text for text in said)
        assert not summary_requests(running.server)
        assert not witness.of("session_tree") and not witness.of("session_compact_failed")
        await running.ask("the session goes on")


async def test_its_own_summary_is_used_only_where_one_is_wanted(tmp_path):
    extend(tmp_path, 'return {"summary": {"summary": "OWN-NONCE", "details": {"depth": [1, {"a": None}]}}}')
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("one")
            await running.ask("write a.txt text")
            seq = message(running, "write").seq
            await command(running, f"/tree {seq}")
            assert not any(isinstance(entry, BranchSummaryEntry) for entry in running.session.entries())
            answer = next(e for e in running.session.entries() if isinstance(e, AssistantMessage) and e.seq > seq)
            await command(running, f"/tree {answer.seq}")
            await command(running, f"/tree {seq} summary")
            entry = running.session.path()[-2]
            assert isinstance(entry, BranchSummaryEntry)
            assert entry.summary.startswith("OWN-NONCE") and "<modified-files>" in entry.summary
            assert (entry.from_extension, entry.extension) == ("mine", {"depth": [1, {"a": None}]})
            await until(lambda: len(witness.of("session_tree")) == 3)
            told = witness.of("session_tree")[-1]
            assert (told.summary_entry, told.from_extension, told.new_leaf) == (entry, "mine", entry.seq)
            assert not summary_requests(server)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert [e for e in running.session.entries() if isinstance(e, BranchSummaryEntry)] == [entry]
            await running.ask("go on")
            assert "OWN-NONCE" in server.requests[-1].raw.decode()
            check(running)


async def test_one_that_fails_is_named_and_in_nobodys_way(tmp_path):
    extend(tmp_path, "raise KeyError('lost')")
    async with agent(tmp_path, script) as running:
        seq = await talk_twice(running)
        assert await command(running, f"/tree {seq} summary") == [Edit("two")]
        assert any("KeyError" in event.text and "mine" in event.text for event in running.of(NoticeEvent))
        assert summary_requests(running.server)


async def test_esc_ends_the_wait_for_one_that_hangs_and_nothing_has_moved(tmp_path):
    extend(tmp_path, "event.signal.wait(30)")
    async with agent(tmp_path, script) as running:
        seq = await talk_twice(running)
        before = log_of(running)
        waiting = asyncio.create_task(running.runtime.run_command(f"/tree {seq} summary"))
        progress = await running.until(CompactionProgressEvent)
        assert progress.stage == "asking the extension mine"
        await interrupt(running)
        assert await asyncio.wait_for(waiting, 20) == []
        assert log_of(running) == before
        assert view_texts(running) == ["one", "two"]
