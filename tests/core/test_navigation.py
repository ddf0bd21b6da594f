"""`/compact up-to` and `/compact from`: the user chooses the message that divides what stays from what does not."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.command.outcome import Choose
from tenuto.command.registry import run_command
from tenuto.protocol.entry import BranchEntry, BranchSummaryEntry
from tenuto.protocol.event import CompactionEndEvent, NoticeEvent, SessionOpenedEvent
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import text_of
from tests.core.compacting import SUMMARY, compactions, fill, is_summary_request, log_of, talk
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.server import HttpError, Request, ScriptedServer

OPTIONS = {"window": 64_000}


async def command(running: Agent, line: str) -> list:
    outcomes = await run_command(running.runtime, line)
    await asyncio.wait_for(running.runtime.wait_settled(), 60)
    return outcomes


def view(running: Agent) -> list:
    return list(running.session.get_llm_history())


def typed(running: Agent) -> list[UserMessage]:
    return [entry for entry in running.session.path() if isinstance(entry, UserMessage)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_up_to_a_message_everything_from_it_on_stays_word_for_word(tmp_path, protocol):
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options=OPTIONS) as running:
        await fill(running)
        chosen = typed(running)[2]
        kept = [message for message in view(running) if message.seq >= chosen.seq]
        await command(running, f"/compact up-to {chosen.seq} the port")
        (entry,) = compactions(running)
        assert entry.first_kept_index == chosen.seq
        assert entry.focus == "the port"
        assert view(running)[-len(kept) :] == kept
        await running.ask("go on")
        assert not any(request.refused for request in running.server.requests)


async def test_without_a_number_the_messages_are_offered_the_newest_first(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        (choose,) = await command(running, "/compact up-to")
        assert isinstance(choose, Choose)
        assert choose.command == "compact"
        assert [row.value for row in choose.choices] == [f"up-to {entry.seq}" for entry in typed(running)[:0:-1]]
        assert all(row.label.startswith(f"question {5 - place}") for place, row in enumerate(choose.choices))
        (choose,) = await command(running, "/compact from")
        assert [row.value for row in choose.choices] == [f"from {entry.seq}" for entry in typed(running)[::-1]]
        await command(running, f"/compact {choose.choices[2].value}")
        assert [text_of(entry.parts).split(" because")[0] for entry in typed(running)] == [
            "question 0",
            "question 1",
            "question 2",
        ]


async def test_a_place_where_no_cut_can_fall_is_named_and_nothing_is_written(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running, 3)
        before = log_of(running)
        for line in ("/compact up-to 9999", "/compact from 9999", f"/compact up-to {typed(running)[0].seq}"):
            await command(running, line)
            assert log_of(running) == before
        ends = running.of(CompactionEndEvent)
        assert len(ends) == 3
        assert all(event.error and event.entry is None for event in ends)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_from_a_message_on_notes_stand_for_what_was_said_and_undo_and_redo_move_back_and_forth(
    tmp_path, protocol
):
    async with ScriptedServer(talk(), window=64_000) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await fill(running)
            whole = view(running)
            chosen = typed(running)[2]
            kept = [message for message in whole if message.seq < chosen.seq]
            leaf = running.session.path()[-1].seq
            await command(running, f"/compact from #{chosen.seq}")
            request = server.requests[-1]
            assert is_summary_request(request)
            assert "line of work that is being left" in request.raw.decode()
            assert "question 5" in request.raw.decode() and "question 1" not in request.raw.decode()
            notes = next(entry for entry in running.session.path() if isinstance(entry, BranchSummaryEntry))
            assert notes.from_seq == leaf
            assert notes.usage is not None
            left = view(running)
            assert left[: len(kept)] == kept
            assert SUMMARY in text_of(left[len(kept)].parts)
            assert len(left) == len(kept) + 1
            assert running.of(SessionOpenedEvent)[-1].resumed, "the screen shows the session as it is now"
            await command(running, "/compact undo")
            assert view(running) == whole
            await command(running, "/compact redo")
            assert view(running) == left
            (outcome,) = await command(running, "/compact redo")
            assert "no undone compaction" in outcome.text
            await running.ask("go on")
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert view(running)[: len(left)] == left
            shown = [event.entry for event in running.of(CompactionEndEvent)]
            assert [entry.rung for entry in shown if entry] == ["branch"]
        assert not any(request.refused for request in server.requests)


async def test_later_turns_are_only_left_when_the_user_says_so(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        whole = view(running)
        await command(running, f"/compact from {typed(running)[3].seq}")
        await running.ask("a later question")
        before = log_of(running)
        said, choose = await command(running, "/compact undo")
        assert "went on since" in said.text
        assert [row.value for row in choose.choices] == ["", "undo drop"]
        assert log_of(running) == before
        await command(running, "/compact undo drop")
        assert view(running) == whole


async def test_where_no_model_can_write_them_the_notes_come_from_data(tmp_path):
    def broken(_request: Request):
        return HttpError(429, "You exceeded your current quota", code="insufficient_quota")

    async with agent(tmp_path, talk(summary=broken), options=OPTIONS) as running:
        await fill(running)
        await command(running, f"/compact from {typed(running)[2].seq}")
        notes = next(entry for entry in running.session.path() if isinstance(entry, BranchSummaryEntry))
        assert "without a model" in notes.summary
        assert "question 5" in notes.summary
        assert any("No model could write the notes" in event.text for event in running.of(NoticeEvent))


async def test_notes_that_would_not_make_the_request_smaller_are_not_written(tmp_path):
    async with agent(tmp_path, talk("fine"), options=OPTIONS) as running:
        await running.ask("one")
        await running.ask("two")
        before = log_of(running)
        await command(running, f"/compact from {typed(running)[1].seq}")
        assert log_of(running) == before
        assert "nothing was changed" in (running.of(CompactionEndEvent)[-1].error or "")
        assert not any(isinstance(entry, BranchEntry) for entry in running.session.entries())


async def test_an_undo_over_the_limit_offers_to_drop_the_later_turns_or_to_compact_up_to_a_message(tmp_path):
    async with agent(tmp_path, talk("fine " * 200), options={"window": 24_000}) as running:
        live = running.runtime.live
        while live.measure().tokens < 0.9 * live.budget().trigger:
            await running.ask("a question " + "because " * 60)
        before = view(running)
        await run_command(running.runtime, "/compact")
        await running.until(CompactionEndEvent)
        await fill(running, 4)
        compacted = view(running)
        said, choose = await command(running, "/compact undo")
        assert "not undone" in said.text
        assert [row.value for row in choose.choices] == ["", "undo drop", "undo up-to"]
        await command(running, "/compact undo drop")
        assert view(running) == before
        await command(running, "/compact redo")
        assert view(running) == compacted
        (choose,) = await command(running, "/compact undo up-to")
        assert isinstance(choose, Choose)
        first = compactions(running)[0]
        earlier = next(row for row in choose.choices if int(row.value.split()[-1]) < first.first_kept_index)
        await command(running, f"/compact {earlier.value}")
        assert compactions(running)[-1].first_kept_index == int(earlier.value.split()[-1])
        assert compactions(running)[-1].tokens_after <= live.budget().trigger
        await command(running, "/compact undo")
        assert view(running) == compacted
        assert not any(request.refused for request in running.server.requests)
