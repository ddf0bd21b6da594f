"""`/tree` and `/label`: going on from any entry, with or without notes on what is left (seed 003, second half)."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.command.outcome import Choose, Edit, Say
from tenuto.protocol.entry import BranchEntry, BranchSummaryEntry, LabelEntry
from tenuto.protocol.event import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    QueueChangedEvent,
    StepStartedEvent,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.operation import MoveLeafOperation
from tenuto.protocol.part import text_of
from tests.core.compacting import interrupt, log_of, summary_requests, talk
from tests.core.going_back import NOTES, check, command, message, script, transcript, view_texts
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.server import Call, Hang, HttpError, Reply, Request, ScriptedServer


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_choosing_a_message_goes_back_to_before_it_and_puts_it_into_the_prompt(tmp_path, protocol):
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await running.ask("one")
            await running.ask("two")
            await running.ask("three")
            before = check(running)
            assert await command(running, f"/tree {message(running, 'two').seq}") == [Edit("two")]
            before = check(running, before)
            assert view_texts(running) == ["one"]
            await running.ask("another way")
            sent = server.requests[-1].raw.decode()
            assert "You said one" in sent and "You said two" not in sent
            check(running, before)
            assert view_texts(running) == ["one", "another way"]
            assert await command(running, f"/tree #{message(running, 'three').seq}") == [Edit("three")]
            assert view_texts(running) == ["one", "two"]
            shown = transcript(running)
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert view_texts(running) == ["one", "two"]
            assert transcript(running) == shown
            await running.ask("and on")
            assert not any(request.refused for request in server.requests)


async def test_anything_else_is_gone_on_from_a_step_from_its_end(tmp_path):
    (tmp_path / "work").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "work" / name).write_text(name)
    async with agent(tmp_path, script) as running:
        await running.ask("read a.txt b.txt")
        await running.ask("later")
        call = next(e for e in running.session.path() if isinstance(e, AssistantMessage) and e.tool_calls)
        results = [e for e in running.session.path() if isinstance(e, ToolResultMessage)]
        assert await command(running, f"/tree {call.seq}") == []
        branch = next(e for e in reversed(list(running.session.entries())) if isinstance(e, BranchEntry))
        assert branch.parent == results[-1].seq
        check(running)
        await running.ask("go on from there")
        assert view_texts(running) == ["read a.txt b.txt", "go on from there"]
        assert not any(request.refused for request in running.server.requests)


async def test_the_very_first_message_can_be_said_differently(tmp_path):
    async with agent(tmp_path, script) as running:
        await running.ask("one")
        await running.ask("two")
        assert await command(running, f"/tree {message(running, 'one').seq}") == [Edit("one")]
        assert view_texts(running) == []
        await running.ask("another beginning")
        assert view_texts(running) == ["another beginning"]
        assert running.server.requests[-1].items[0].text == running.server.requests[0].items[0].text
        check(running)


async def test_where_the_conversation_is_nothing_happens(tmp_path):
    async with agent(tmp_path, script) as running:
        await running.ask("one")
        await running.ask("two")
        answer = next(e for e in reversed(running.session.path()) if isinstance(e, AssistantMessage))
        before = log_of(running)
        (said,) = await command(running, f"/tree {answer.seq}")
        assert isinstance(said, Say) and "already" in said.text
        assert log_of(running) == before
        for wrong in ("9999", "0", "x", "3 sideways"):
            (said,) = await command(running, f"/tree {wrong}")
            assert isinstance(said, Say) and said.level in {"warning", "error"}, wrong
            assert log_of(running) == before
        two = message(running, "two")
        await command(running, f"/tree {two.seq}")
        before = log_of(running)
        assert await command(running, f"/tree {two.seq}") == [Edit("two")], "its place is here, its text is wanted"
        assert log_of(running) == before


# --- notes on what is left ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_notes_on_what_is_left_go_along(tmp_path, protocol):
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await running.ask("one")
            await running.ask("write new.txt text")
            await running.ask("three")
            leaf = running.session.path()[-1].seq
            target = message(running, "write")
            assert await command(running, f"/tree {target.seq} summary the port 8123") == [Edit("write new.txt text")]
            request = summary_requests(server)[-1]
            asked = request.items[-1].text
            assert "You said three" in asked and "You said one" not in asked
            assert "Additional focus: the port 8123" in asked
            entry = running.session.path()[-2]
            assert isinstance(entry, BranchSummaryEntry)
            assert entry.from_seq == leaf
            assert entry.summary.startswith(NOTES)
            assert [path.rpartition("/")[2] for path in entry.details["modified_files"]] == ["new.txt"]
            shown = transcript(running)
            check(running)
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert transcript(running) == shown
            await running.ask("other")
            assert NOTES in server.requests[-1].raw.decode().replace("\\n", "\n")
            await command(running, f"/tree {message(running, 'other').seq} summary")
            nested = running.session.path()[-2]
            assert isinstance(nested, BranchSummaryEntry)
            assert "modified_files" not in nested.details, "the first notes are not left"
            await command(running, f"/tree {message(running, 'one').seq} summary")
            nested = running.session.path()[-2]
            assert nested.details["modified_files"] == entry.details["modified_files"], "files of nested notes add up"
            assert not any(request.refused for request in server.requests)
            check(running)


async def test_esc_while_the_notes_are_written_moves_nothing(tmp_path):
    hanging = True

    def answer(_request: Request):
        return Hang() if hanging else Reply(NOTES)

    async with agent(tmp_path, talk("fine", answer)) as running:
        await running.ask("one")
        await running.ask("two")
        view, before = list(running.session.get_llm_history()), log_of(running)
        target = message(running, "two").seq
        waiting = asyncio.create_task(running.runtime.run_command(f"/tree {target} summary"))
        await running.until(CompactionProgressEvent)
        await running.send("typed meanwhile")
        await interrupt(running)
        assert await asyncio.wait_for(waiting, 60) == []
        assert list(running.session.get_llm_history()) == view
        added = log_of(running).removeprefix(before)
        assert added.count(b"\n") == 1 and b'"queued"' in added
        end = running.of(CompactionEndEvent)[-1]
        assert end.aborted and end.reason == "branch"
        assert running.of(QueueChangedEvent)[-1].waiting
        hanging = False
        assert await running.runtime.run_command(f"/tree {target} summary") == [Edit("two")]
        assert view_texts(running)[-1].startswith("From this point the conversation first went another way")
        assert running.of(QueueChangedEvent)[-1].waiting, "it was meant for another place"


async def test_where_no_model_can_write_them_the_notes_come_from_data_however_little_is_left(tmp_path):
    def broken(_request: Request):
        return HttpError(429, "You exceeded your current quota", code="insufficient_quota")

    async with agent(tmp_path, talk("fine", broken)) as running:
        await running.ask("one")
        await running.ask("two")
        await command(running, f"/tree {message(running, 'two').seq} summary")
        entry = running.session.path()[-2]
        assert isinstance(entry, BranchSummaryEntry)
        assert "without a model" in entry.summary and "two" in entry.summary


async def test_the_choice_is_offered_and_own_instructions_are_written_in_the_prompt(tmp_path):
    async with agent(tmp_path, script) as running:
        await running.ask("one")
        await running.ask("two")
        seq = message(running, "two").seq
        (choose,) = await command(running, f"/tree ask {seq}")
        assert isinstance(choose, Choose)
        lines = [f"/{choose.command} {row.value}" for row in choose.choices]
        assert lines == [f"/tree {seq} plain", f"/tree {seq} summary", f"/tree {seq} instructions"]
        assert await command(running, lines[2]) == [Edit(f"/tree {seq} summary ")]
        before = log_of(running)
        assert await command(running, lines[0]) == [Edit("two")]
        assert log_of(running) != before
        answer = next(e for e in running.session.entries() if isinstance(e, AssistantMessage) and e.seq > seq)
        assert await command(running, f"/tree ask {answer.seq}") == [], "nothing is left, so nothing is asked"
        assert view_texts(running) == ["one", "two"]


# --- what runs, and what waits ---


async def test_what_runs_is_stopped_its_question_closed_and_the_call_has_a_result(tmp_path):
    def answer(request: Request):
        return (
            Reply(tool_calls=[Call("bash", {"command": "touch made"})])
            if "make it" in request.last_user
            else Reply("ok")
        )

    async with agent(tmp_path, answer, mode="ask") as running:
        await running.ask("one")
        await running.send("make it")
        asked = await running.until(ApprovalRequestedEvent)
        target = message(running, "make")
        operation = MoveLeafOperation(session_id=running.runtime.session_id, target=target.seq)
        finished = await running.runtime.wait_for(await running.runtime.submit(operation))
        assert finished is not None and finished.outcome == "completed"
        (resolved,) = running.of(ApprovalResolvedEvent)
        assert (resolved.request_id, resolved.decision) == (asked.request_id, "deny")
        assert not (tmp_path / "work" / "made").exists()
        assert view_texts(running) == ["one"]
        check(running)
        await command(running, f"/tree {running.session.highest_seq}")
        await running.ask("go on")
        assert not any(request.refused for request in running.server.requests)


async def test_what_is_queued_waits(tmp_path):
    def answer(request: Request):
        return Reply("slow", delay=0.5) if "slow" in request.last_user else Reply("ok")

    async with agent(tmp_path, answer) as running:
        await running.ask("one")
        await running.send("slow")
        await running.until(StepStartedEvent, 2)
        await running.send("queued")
        await command(running, f"/tree {message(running, 'one').seq}")
        assert running.of(QueueChangedEvent)[-1].waiting
        assert [text_of(item.parts) for item in running.of(QueueChangedEvent)[-1].items] == ["queued"]
        await running.runtime.submit_prompt(())
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert view_texts(running) == ["queued"]


# --- the tree as rows ---


async def test_the_tree_indents_only_what_leaves_the_path(tmp_path):
    async with agent(tmp_path, script) as running:
        await running.ask("one")
        await running.ask("two")
        await running.ask("three")
        await command(running, f"/tree {message(running, 'two').seq}")
        await running.ask("other")
        await command(running, "/label the better way")
        (choose,) = await command(running, "/tree")
        assert isinstance(choose, Choose)
        rows = [(row.mark, row.indent, row.label) for row in choose.choices]
        assert rows == [
            ("│", 0, "You: one"),
            ("│", 0, "Model: You said one."),
            (" ", 1, "You: two"),
            (" ", 1, "Model: You said two."),
            (" ", 1, "You: three"),
            (" ", 1, "Model: You said three."),
            ("│", 0, "You: other"),
            ("●", 0, "Model: You said other."),
        ]
        assert "2 ways on" in choose.choices[1].detail
        assert "goes on in" in choose.choices[1].preview
        leaf = choose.choices[-1]
        assert leaf.present and "⚑ the better way" in leaf.detail
        assert "You said other." in leaf.preview and "the conversation is here" in leaf.preview
        assert choose.filters[0].kinds and not choose.filters[-1].kinds


async def test_a_long_tree_is_shown_a_stretch_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("tenuto.command.tree_commands.REACH", 12)
    async with agent(tmp_path, script) as running:
        for number in range(6):
            await running.ask(f"number {number}")
        (choose,) = await command(running, "/tree")
        labels = [row.label for row in choose.choices if "You:" in row.label]
        assert "You: number 5" in labels and "You: number 0" not in labels
        seen = set(labels)
        while choose.choices[0].value.startswith("before"):
            (choose,) = await command(running, f"/{choose.command} {choose.choices[0].value}")
            seen |= {row.label for row in choose.choices if "You:" in row.label}
        assert seen == {f"You: number {number}" for number in range(6)}


async def test_labels_are_set_listed_and_taken_away(tmp_path):
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server) as running:
            (said,) = await command(running, "/label too early")
            assert said.level == "error"
            await running.ask("one")
            seq = message(running, "one").seq
            await command(running, f"/label #{seq} the start")
            await command(running, "/label the end")
        async with reopened(tmp_path, server, resume_latest=True) as running:
            (said,) = await command(running, "/label")
            assert said.text.splitlines()[0] == f"#{seq}  the start" and said.text.endswith("the end")
            await command(running, f"/label #{seq}")
            (said,) = await command(running, "/label")
            assert "the start" not in said.text
            assert sum(isinstance(e, LabelEntry) for e in running.session.entries()) == 3


async def test_without_a_session_to_speak_of_there_is_no_tree(tmp_path):
    async with agent(tmp_path, script) as running:
        (said,) = await command(running, "/tree")
        assert isinstance(said, Say)
