"""R-056, R-057, R-060, R-061, T-21, T-43: what a compaction did can be seen, taken back, done again, and outlives a
restart; and hooks and prepared summaries hold on every way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from tenuto.command.outcome import Choose
from tenuto.command.registry import run_command
from tenuto.compaction.ways.strategies import DigestCompaction, ToolResultHidingCompaction
from tenuto.protocol.entry import BranchSummaryEntry, UndoEntry, ViewEdit, ViewEditEntry
from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent
from tenuto.protocol.message import ToolResultMessage, UserMessage
from tenuto.session.session import Session
from tenuto.tui.machine.step import step
from tenuto.tui.render.items import render_item
from tenuto.tui.state.item import CompactionItem, UserItem
from tenuto.tui.state.state import UiState
from tests.core.compacting import compact, compactions, fill, reads, talk, write_big_file
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.examples import in_turn
from tests.server import ScriptedServer

OPTIONS = {"window": 64_000}


def view(running: Agent) -> list:
    return list(running.session.get_llm_history())


async def command(running: Agent, line: str) -> list:
    outcomes = await run_command(running.runtime, line)
    await asyncio.wait_for(running.runtime.wait_settled(), 60)
    return outcomes


async def by_compaction(running: Agent) -> None:
    await compact(running)
    assert compactions(running)


async def by_edit(running: Agent) -> None:
    result = next(entry for entry in running.session.path() if isinstance(entry, ToolResultMessage))
    edit = ViewEdit(target=result.seq, kind="truncated", text="[cut]", keep_head=20, keep_tail=20)
    running.session.append(ViewEditEntry(edits=(edit,), rung="truncate", reason="overflow"))


async def by_leaving(running: Agent) -> None:
    first = next(entry for entry in running.session.path() if isinstance(entry, UserMessage))
    await command(running, f"/compact from {first.seq}")
    assert any(isinstance(entry, BranchSummaryEntry) for entry in running.session.path())


async def by_hiding(running: Agent) -> None:
    await compact(running)
    assert any(isinstance(entry, ViewEditEntry) and entry.rung == "hide" for entry in running.session.path())


KINDS: dict[str, tuple[Callable[[Agent], Awaitable[None]], object]] = {
    "summary": (by_compaction, None),
    "digest": (by_compaction, DigestCompaction()),
    "hide": (by_hiding, ToolResultHidingCompaction()),
    "truncate": (by_edit, None),
    "from": (by_leaving, None),
}


@pytest.mark.parametrize(("kind", "protocol"), in_turn(KINDS, PROTOCOLS))
async def test_t21_r056_the_request_after_an_undo_of_each_kind_is_the_earlier_one_as_data(tmp_path, protocol, kind):
    write_big_file(tmp_path)
    change, strategy = KINDS[kind]
    async with ScriptedServer(reads(9), window=64_000) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", compaction=strategy) as running:
            await fill(running, 2)
            await running.ask("read it all")
            before, request = view(running), server.requests[-1]
            await change(running)
            changed = view(running)
            assert changed != before
            await command(running, "/compact undo")
            assert view(running) == before
            await command(running, "/compact redo")
            assert view(running) == changed
            await command(running, "/compact undo")
            assert view(running) == before
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert view(running) == before
            await running.ask("and now?")
            after = server.requests[-1]
            assert after.prefix_items[: len(request.prefix_items)] == request.prefix_items
        assert not any(one.refused for one in server.requests)


async def test_r056_later_turns_are_kept_or_dropped_as_the_user_chooses(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        before = view(running)
        await compact(running)
        await running.ask("a later question")
        later = view(running)[-2:]
        await command(running, "/compact undo")
        assert view(running)[: len(before)] == before
        assert view(running)[-2:] == later
        await command(running, "/compact redo")
        await command(running, "/compact undo drop")
        assert view(running) == before
        await command(running, "/compact redo")
        assert view(running)[-2:] == later


async def test_r056_no_undo_is_written_that_leaves_the_request_over_the_limit_and_three_ways_are_offered(tmp_path):
    async with agent(tmp_path, talk("fine " * 200), options={"window": 24_000}) as running:
        live = running.runtime.live
        while live.measure().tokens < 0.9 * live.budget().trigger:
            await running.ask("a question " + "because " * 60)
        await compact(running)
        await fill(running, 4)
        said, choose = await command(running, "/compact undo")
        assert "not undone" in said.text
        assert isinstance(choose, Choose)
        assert [row.value for row in choose.choices] == ["", "undo drop", "undo up-to"]
        assert not any(isinstance(entry, UndoEntry) for entry in running.session.entries())


@pytest.mark.parametrize("resumed", [False, True], ids=["live", "resumed"])
async def test_r057_the_older_conversation_and_one_block_with_words_are_on_the_screen(tmp_path, resumed):
    async with ScriptedServer(talk(), window=64_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
            await compact(running)
            if not resumed:
                check_blocks(items_of(running))
                return
        async with reopened(tmp_path, server, resume_latest=True) as running:
            check_blocks(items_of(running))


def items_of(running: Agent) -> list:
    state = UiState()
    for number, event in enumerate(running.events):
        step(state, event, float(number), 120)
    return state.transcript.ordered()


def check_blocks(items: list) -> None:
    assert [item.text.split(" because")[0] for item in items if isinstance(item, UserItem)] == [
        f"question {number}" for number in range(6)
    ]
    (block,) = [item for item in items if isinstance(item, CompactionItem)]
    head = " ".join("".join(text for text, _ in line.spans) for line in render_item(block, 120))
    assert "manual" in head and "summarised in place" in head and "→" in head


async def test_t43_compacted_resumed_and_stripped_of_optional_fields_the_next_request_is_the_same(tmp_path):
    async with ScriptedServer(talk(), window=64_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
            await compact(running)
            await running.ask("after")
            before, directory = view(running), running.session.directory
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert view(running) == before
        strip_compaction(directory / "events.jsonl")
        session = Session.open(directory, read_only=True)
        assert list(session.get_llm_history()) == before
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert view(running) == before
            assert (await running.ask("go on")).outcome == "completed"
        assert not any(one.refused for one in server.requests)


def strip_compaction(log: Path) -> None:
    """Leave of the compaction entry only what stands for history."""
    kept = {"type", "seq", "ts", "first_kept_index", "replacement"}
    lines: list[bytes] = []
    for line in log.read_bytes().splitlines():
        entry = msgspec.json.decode(line)
        if entry["type"] == "compaction":
            line = msgspec.json.encode({name: value for name, value in entry.items() if name in kept})
        lines.append(line)
    log.write_bytes(b"\n".join([*lines, b""]))


async def test_r039_nothing_starts_by_itself_after_a_proposal_an_undo_or_a_move(tmp_path):
    async with agent(tmp_path, talk(), options=OPTIONS) as running:
        await fill(running)
        asked = len(running.server.requests)
        await command(running, "/compact --preview")
        await command(running, "/compact accept")
        await command(running, "/compact undo")
        await command(running, "/compact redo")
        assert len(running.server.requests) == asked + 1, "the one summary"
        assert len(running.of(CompactionStartEvent)) == len(running.of(CompactionEndEvent)) == 1
        assert len(compactions(running)) == 1
