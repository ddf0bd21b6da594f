"""A compaction begins with the log's own check (seed 001): open calls get results, unsaved entries are saved."""

from __future__ import annotations

from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import AssistantMessage, CompactionEntry, ToolResultMessage
from tenuto.protocol.part import TextPart, ToolCallPart, text_of
from tests.core.compacting import compact, fill, talk, user
from tests.core.harness import agent
from tests.session.build import check_pairs
from tests.session.test_durability import file_size_limit


async def test_a_call_that_was_left_without_a_result_gets_one_before_the_conversation_is_cut(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running)
        calls = tuple(ToolCallPart(id=f"c{n}", name="bash", arguments='{"command": "make"}') for n in range(2))
        running.session.append(AssistantMessage(parts=(TextPart(text="building"), *calls), model="openai-chat/test"))
        running.session.append(ToolResultMessage(call_id="c0", name="bash", parts=(TextPart(text="built"),)))
        assert (await compact(running)).outcome == "completed"
        path = list(running.session.path())
        (made,) = [entry for entry in path if isinstance(entry, ToolResultMessage) and entry.interrupted]
        (compaction,) = [entry for entry in path if isinstance(entry, CompactionEntry)]
        assert made.call_id == "c1"
        assert made.seq < compaction.seq
        assert "may have taken effect" in text_of(made.parts)
        check_pairs(running.session.get_llm_history())
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.refusals


async def test_what_the_disk_refused_is_written_before_a_compaction_and_told_while_it_is_not(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await fill(running)
        log = running.session.directory / "events.jsonl"
        with file_size_limit(log.stat().st_size + 30):
            running.session.append(user("not on disk yet"))
            assert running.session.unsaved is not None
            assert (await compact(running)).outcome == "completed"
            assert any("not being saved" in event.text for event in running.of(NoticeEvent))
        assert b"not on disk yet" not in log.read_bytes()
        assert (await compact(running)).outcome == "completed"
        assert b"not on disk yet" in log.read_bytes()
        assert running.session.unsaved is None
        assert any("saved again" in event.text for event in running.of(NoticeEvent))
