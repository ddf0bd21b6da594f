"""Undo and redo of compactions: the view is the earlier one as data, and nothing is undone that does not fit."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.command.registry import run_command
from tenuto.core.state.compaction_state import AutomaticCompaction
from tenuto.protocol.entry import NoticeEntry, UndoEntry, ViewEdit, ViewEditEntry
from tenuto.protocol.event import CompactionStartEvent, NoticeEvent, SessionOpenedEvent, UndoneEvent
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.operation import InterruptOperation
from tests.core.compacting import compact, fill, is_summary_request, log_of, talk
from tests.core.compacting import compactions as entries
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.server import Call, Hang, Reply, Request, ScriptedServer


async def command(running, line: str) -> str:
    return "\n".join(outcome.text for outcome in await run_command(running.runtime, line) if hasattr(outcome, "text"))


def view(running) -> list:
    return list(running.session.get_llm_history())


def last_notice(running) -> str:
    return [event for event in running.of(NoticeEvent) if event.kind == "undo"][-1].text


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t21_r056_the_request_after_an_undo_is_the_one_before_the_compaction(tmp_path, protocol):
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options={"window": 64_000}) as running:
        (tmp_path / "work" / "AGENTS.md").write_text("old rules\n")
        await fill(running)
        before, request = view(running), running.server.requests[-1]
        (tmp_path / "work" / "AGENTS.md").write_text("new rules\n")
        await compact(running)
        assert "new rules" in view(running)[0].text
        assert view(running) != before
        assert await command(running, "/compact undo") == ""
        assert view(running) == before
        await running.ask("and now?")
        after = running.server.requests[-1]
        assert after.prefix_items[: len(request.prefix_items)] == request.prefix_items
        assert "new rules" not in after.raw.decode()
        assert not any(request.refused for request in running.server.requests)
        assert not running.of(CompactionStartEvent)[1:]


async def test_r056_later_turns_stay_behind_the_restored_ones(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 64_000}) as running:
        await fill(running)
        before = view(running)
        await compact(running)
        await running.ask("a later question")
        later = view(running)[-2:]
        await command(running, "/compact undo")
        assert view(running)[: len(before)] == before
        assert view(running)[-2:] == later
        assert (await running.ask("go on")).outcome == "completed"
        assert not any(request.refused for request in running.server.requests)


async def test_redo_takes_the_undo_back_through_several_rounds_and_a_restart(tmp_path):
    async with ScriptedServer(talk(), window=64_000) as server:
        async with reopened(tmp_path, server) as running:
            views = []
            for _ in range(2):
                await fill(running)
                views.append(view(running))
                await compact(running)
            compacted = view(running)
            await command(running, "/compact undo")
            assert view(running) == views[1]
            await command(running, "/compact undo")
            assert view(running)[: len(views[0])] == views[0]
            oldest = view(running)
            assert "no compaction to undo" in await command(running, "/compact undo")
            await command(running, "/compact redo")
            assert view(running) == views[1]
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert view(running) == views[1]
            await command(running, "/compact redo")
            assert view(running) == compacted
            assert "no undone compaction" in await command(running, "/compact redo")
            await command(running, "/compact undo")
            await command(running, "/compact undo")
            assert view(running) == oldest
            assert all(
                isinstance(entry.target, int) for entry in running.session.path() if isinstance(entry, UndoEntry)
            )


async def test_a_redo_is_refused_when_it_was_compacted_again_since(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 64_000}) as running:
        await fill(running)
        await compact(running)
        await command(running, "/compact undo")
        await compact(running)
        assert len(entries(running)) == 2
        before = log_of(running)
        assert "compacted again since" in await command(running, "/compact redo")
        assert log_of(running) == before


async def test_a_view_edit_is_undone_and_done_again(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("some words\n" * 200)

    def script(request: Request):
        done = any(item.kind == "result" for item in request.items)
        return Reply("done") if done else Reply(tool_calls=[Call("read", {"path": "a.txt"})])

    async with agent(tmp_path, script) as running:
        await running.ask("read it")
        before = view(running)
        result = next(entry for entry in running.session.path() if isinstance(entry, ToolResultMessage))
        running.session.append(ViewEditEntry(edits=(ViewEdit(target=result.seq, kind="hidden", text="(hidden)"),)))
        edited = view(running)
        assert edited != before
        await command(running, "/compact undo")
        assert view(running) == before
        assert "Undone: tool results restored" in last_notice(running)
        await command(running, "/compact redo")
        assert view(running) == edited


@pytest.mark.parametrize("is_sent", [True, False])
async def test_an_undo_and_a_redo_tell_an_estimate_as_one(tmp_path, is_sent):
    """`~` stands before a size that nobody has counted, and before no other."""
    async with agent(tmp_path, talk(), options={"window": 64_000}) as running:
        await fill(running, 12)
        await compact(running)
        if is_sent:
            await running.ask("go on")
        await command(running, "/compact undo")
        told = last_notice(running)
        assert told.startswith("Undone: compaction (")
        assert told.startswith("Undone: compaction (~") is not is_sent, told
        await command(running, "/compact redo")
        redone = [event for event in running.of(NoticeEvent) if event.kind == "redo"][-1].text
        assert not redone.startswith("Redone (~"), "all but a few words of it was counted before the compaction"


async def test_an_undo_that_would_be_over_the_trigger_is_not_written_and_says_what_is_possible(tmp_path):
    async with agent(tmp_path, talk("fine " * 600), options={"window": 16_000}) as running:
        await fill(running, 8)
        while not entries(running):
            await fill(running, 1)
        await fill(running, 3)
        before = log_of(running)
        said = await command(running, "/compact undo")
        trigger = running.runtime.live.budget().trigger
        assert "not undone" in said
        assert f"{trigger:,}" in said
        assert "window 16,000" in said
        assert "/model" in said
        assert "/recall" in said
        assert log_of(running) == before


async def test_the_later_turns_can_be_left_in_the_old_session(tmp_path):
    async with agent(tmp_path, talk("fine " * 200), options={"window": 24_000}) as running:
        live = running.runtime.live
        while live.measure().tokens < 0.9 * live.budget().trigger:
            await running.ask("a question " + "because " * 60)
        before, origin = view(running), running.session.id
        await compact(running)
        await fill(running, 4)
        assert len(entries(running)) == 1
        said = await command(running, "/compact undo")
        assert "/compact undo fork" in said
        await command(running, "/compact undo fork")
        assert running.session.id != origin
        assert view(running) == before
        assert running.of(SessionOpenedEvent)[-1].resumed
        assert (await running.ask("another way")).outcome == "completed"


async def test_nothing_is_undone_while_something_runs(tmp_path):
    def script(request: Request):
        if is_summary_request(request) or "please-stall" not in request.raw.decode():
            return talk()(request)
        return Hang()

    async with agent(tmp_path, script, options={"window": 64_000}) as running:
        await fill(running)
        await compact(running)
        await running.send("please-stall")
        count = len(running.server.requests)
        while len(running.server.requests) == count:
            await asyncio.sleep(0.01)
        for words in ("undo", "redo", "undo fork"):
            assert "busy: press Esc" in await command(running, f"/compact {words}")
        assert not [entry for entry in running.session.entries() if isinstance(entry, UndoEntry)]
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        await asyncio.wait_for(running.runtime.wait_settled(), 60)


async def test_the_notice_of_an_undo_is_in_the_transcript_live_and_resumed(tmp_path):
    async with ScriptedServer(talk(), window=64_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
            before = running.runtime.live.measure().tokens
            await compact(running)
            await command(running, "/Compact  Undo".lower())
            text = last_notice(running)
            after = int(text.split("→ ~")[1].split(" ")[0].replace(",", ""))
            assert abs(after - before) < 0.2 * before
            (kept,) = [entry for entry in running.session.entries() if isinstance(entry, NoticeEntry)]
            assert kept.text == text
            (undone,) = running.of(UndoneEvent)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert last_notice(running) == text
            assert [(event.seq, event.target) for event in running.of(UndoneEvent)] == [(undone.seq, undone.target)]


async def test_after_an_undo_automatic_compaction_waits_for_a_tenth_more(tmp_path):
    async with agent(tmp_path, talk("fine " * 150), options={"window": 16_000}) as running:
        live = running.runtime.live
        trigger = live.budget().trigger
        while live.measure().tokens < 0.95 * trigger:
            await running.ask("a question " + "because " * 30)
        await compact(running)
        await command(running, "/compact undo")
        undone = live.measure().tokens
        assert 0.9 * trigger < undone <= trigger
        sizes = []
        while len(running.of(CompactionStartEvent)) == 1 and len(sizes) < 40:
            sizes.append(live.measure().tokens)
            await running.ask("a question " + "because " * 30)
        assert len(running.of(CompactionStartEvent)) == 2
        assert sizes[-1] > trigger
        assert sizes[-1] >= 1.05 * undone
        assert not any(request.refused for request in running.server.requests)


def test_the_wait_after_an_undo_ends_before_the_window_does() -> None:
    automatic = AutomaticCompaction(ineffective=1)
    automatic.note_undone(100_000, 104_000)
    assert not automatic.may_run(103_999)
    assert automatic.may_run(104_000)
    automatic.note_undone(50_000, 104_000)
    assert not automatic.may_run(54_999)
    assert automatic.may_run(55_001)
    assert automatic.ineffective == 0
