"""What hooks around compaction are told, and how they are against it, in the running agent (R-061)."""

from __future__ import annotations

import pytest

from tenuto.protocol.event import (
    CompactionEndEvent,
    CompactionStartEvent,
    PromptReturnedEvent,
    TaskFinishedEvent,
)
from tenuto.protocol.message import ToolResultMessage, UserMessage
from tenuto.protocol.part import text_of
from tests.core.compacting import (
    check_requests,
    compact,
    compactions,
    fill,
    log_of,
    reads,
    step_requests,
    summary_requests,
    talk,
    until,
    write_big_file,
)
from tests.core.harness import PROTOCOLS, agent
from tests.extension import witness
from tests.extension.extending import WATCH, WINDOW, about_extensions, before, extend
from tests.server import HttpError, Reply

# --- what a hook is told ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r061_a_manual_compaction_asks_once_and_tells_once(tmp_path, protocol):
    extend(tmp_path, WATCH)
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options=WINDOW) as running:
        await fill(running)
        path = tuple(running.session.path())
        size = running.runtime.live.measure().tokens
        await compact(running, "the API names")
        (entry,) = compactions(running)
        await until(lambda: witness.of("session_compact"))
        (asked,) = witness.of("session_before_compact")
        assert (asked.reason, asked.will_retry, asked.custom_instructions) == ("manual", False, "the API names")
        assert (asked.session_id, asked.cwd) == (running.session.id, str(running.session.cwd))
        assert asked.branch_entries == path
        preparation = asked.preparation
        assert preparation.first_kept_index == entry.first_kept_index
        assert preparation.tokens_before == size
        assert preparation.settings.keep_recent_tokens == running.runtime.live.budget().keep_recent
        assert preparation.previous_summary == ""
        covered = [*preparation.messages_to_summarize, *preparation.turn_prefix_messages]
        assert all(message.seq < entry.first_kept_index for message in covered)
        assert [text_of(m.parts).split()[1] for m in covered if isinstance(m, UserMessage)][:4] == ["0", "1", "2", "3"]
        (told,) = witness.of("session_compact")
        assert told.compaction_entry == entry
        assert (told.from_extension, told.reason, told.will_retry) == ("", "manual", False)
        assert about_extensions(running) == []


async def test_the_second_compaction_has_the_earlier_summary_and_the_files(tmp_path):
    extend(tmp_path, WATCH)
    write_big_file(tmp_path)
    async with agent(tmp_path, reads(2), options=WINDOW) as running:
        await running.ask("read")
        await fill(running, 4, 900)
        await compact(running)
        await fill(running, 4, 900)
        await compact(running)
        first, second = (event.preparation for event in witness.of("session_before_compact"))
        assert first.previous_summary == ""
        assert "Keep the tests green." in second.previous_summary
        assert "<read-files>" not in second.previous_summary
        assert second.file_ops.read == first.file_ops.read
        assert second.file_ops.read[0].endswith("big.txt")
        assert {message.seq for message in second.messages_to_summarize}.isdisjoint(
            message.seq for message in first.messages_to_summarize
        )
        assert min(message.seq for message in second.messages_to_summarize) == first.first_kept_index


async def test_a_split_turn_has_its_first_part_by_itself(tmp_path):
    extend(tmp_path, WATCH)
    write_big_file(tmp_path)
    async with agent(tmp_path, reads(25), options={"window": 16_000}) as running:
        settled = await running.ask("read it many times", timeout=60)
        assert settled.outcome == "completed"
        events = witness.of("session_before_compact")
        assert len(events) == len(running.of(CompactionStartEvent))
        assert compactions(running)
        assert {event.reason for event in events} == {"threshold"}
        preparation = next(event.preparation for event in events if event.preparation.is_split_turn)
        assert not any(isinstance(message, UserMessage) for message in preparation.messages_to_summarize)
        assert any(isinstance(message, UserMessage) for message in preparation.turn_prefix_messages)
        assert any(isinstance(message, ToolResultMessage) for message in preparation.turn_prefix_messages)


async def test_r061_a_threshold_compaction_before_a_prompt_asks_too(tmp_path):
    extend(tmp_path, WATCH)
    async with agent(tmp_path, talk("fine " * 2500), options={"window": 16_000}) as running:
        while not running.of(CompactionEndEvent):
            await fill(running, 1)
        assert [event.reason for event in witness.of("session_before_compact")] == ["threshold"]


async def test_r061_an_overflow_asks_too_and_says_that_the_step_is_repeated(tmp_path):
    extend(tmp_path, WATCH)
    write_big_file(tmp_path)
    options = {"window": 12_000, "listed_window": 200_000}
    async with agent(tmp_path, reads(30, width=2), model="openai/test", options=options) as running:
        settled = await running.ask("read", timeout=60)
        assert settled.outcome == "completed", settled.error
        (overflow,) = [event for event in witness.of("session_before_compact") if event.reason == "overflow"]
        assert overflow.will_retry
        assert len(witness.of("session_before_compact")) == len(running.of(CompactionStartEvent))
        told = [event for event in witness.of("session_compact") if event.reason == "overflow"]
        assert [event.will_retry for event in told] == [True]


async def test_a_failure_is_told(tmp_path):
    extend(tmp_path, WATCH)
    async with agent(tmp_path, talk("short"), options=WINDOW) as running:
        await running.ask("hello")
        await compact(running)
        await until(lambda: witness.of("session_compact_failed"))
        (failed,) = witness.of("session_compact_failed")
        assert (failed.reason, failed.aborted) == ("manual", False)
        assert "nothing to compact" in failed.error
        assert witness.of("session_before_compact") == [], "nobody is asked about nothing"


# --- cancel ---


async def test_r061_a_cancel_appends_nothing_and_names_the_extension(tmp_path):
    extend(tmp_path, before("return {'cancel': True, 'cancel_reason': 'tests are\\nrunning'}") + TELL_FAILED)
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        log = log_of(running)
        finished = await compact(running)
        assert finished.outcome == "completed"
        (end,) = running.of(CompactionEndEvent)
        refusal = "the extension mine cancelled the compaction: tests are running"
        assert (end.aborted, end.entry, end.error) == (True, None, refusal)
        assert log_of(running) == log
        assert about_extensions(running) == [f"Not compacted: {refusal}."]
        assert not summary_requests(running.server)
        await until(lambda: witness.of("session_compact_failed"))
        (failed,) = witness.of("session_compact_failed")
        assert failed.aborted
        assert "tests are running" in failed.error
        assert (await running.ask("go on")).outcome == "completed"


TELL_FAILED = """
    tenuto.on("session_compact_failed", lambda event: witness.note("session_compact_failed", event))
"""


async def test_r061_a_cancelled_threshold_compaction_lets_the_prompt_through_while_it_fits(tmp_path):
    extend(tmp_path, before("return {'cancel': True}"))
    async with agent(tmp_path, talk("fine " * 1000), options={"window": 16_000}) as running:
        for number in range(20):
            settled = await running.ask(f"question {number}")
            if running.of(CompactionEndEvent):
                break
        (end,) = running.of(CompactionEndEvent)
        assert (end.reason, end.aborted) == ("threshold", True)
        assert settled.outcome == "completed"
        assert text_of(running.session.get_llm_history()[-2].parts) == f"question {number}"
        assert not compactions(running)


async def test_r061_a_refusal_over_the_window_is_reported_with_the_sizes(tmp_path):
    extend(tmp_path, before("return {'cancel': True}"))
    async with agent(tmp_path, talk("fine " * 1000), options={"window": 16_000}) as running:
        for number in range(40):
            settled = await running.ask(f"question {number} " + "because " * 200)
            if settled.outcome == "failed":
                break
        assert settled.outcome == "failed"
        (returned,) = running.of(PromptReturnedEvent)
        assert "does not fit the window" in returned.reason
        assert text_of(returned.parts).startswith(f"question {number}")
        assert len(about_extensions(running)) >= 1
        check_requests(running.server, 16_000)


async def test_r061_a_refusal_after_an_overflow_ends_the_task_with_the_reason(tmp_path):
    extend(tmp_path, before("return {'cancel': True, 'cancel_reason': 'never'}"))
    refusal = HttpError(400, "Your input exceeds the context window of this model. Please adjust your input.")
    script = talk(lambda request: refusal if len(step_requests(running.server)) > 6 else Reply("fine " * 600))
    async with agent(tmp_path, script, model="openai/test", options={"listed_window": 200_000}) as running:
        await fill(running)
        settled = await running.ask("too much")
        assert settled.outcome == "failed"
        assert "the extension mine cancelled the compaction: never" in settled.error
        assert [event.aborted for event in running.of(CompactionEndEvent)] == [True]
        assert not compactions(running)


async def test_between_steps_a_cancel_is_told_and_the_task_goes_on(tmp_path):
    extend(tmp_path, before("return {'cancel': True} if len(witness.seen) == 1 else None"))
    write_big_file(tmp_path)
    async with agent(tmp_path, reads(25), options={"window": 16_000}) as running:
        settled = await running.ask("read it many times", timeout=60)
        assert settled.outcome == "completed", settled.error
        assert [event.aborted for event in running.of(CompactionEndEvent)][:2] == [True, False]
        assert len(running.of(TaskFinishedEvent)) == 1
        assert b"Automatic compaction failed" not in log_of(running)
