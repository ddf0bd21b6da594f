"""Hooks around compaction in the running agent, from a file in `extensions/` to the request and the log (R-061)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tenuto
from tenuto.command.registry import run_command
from tenuto.core.errors import TaskFailedError
from tenuto.protocol.event import (
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionStartEvent,
    NoticeEvent,
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
    interrupt,
    log_of,
    reads,
    step_requests,
    summary_requests,
    talk,
    until,
    write_big_file,
)
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.extension import witness
from tests.server import HttpError, Reply, ScriptedServer
from tests.session.build import check_pairs

WINDOW = {"window": 32_000}
WATCH = """
from tests.extension import witness

def setup(tenuto):
    for hook in ("session_before_compact", "session_compact", "session_compact_failed"):
        tenuto.on(hook, lambda event, hook=hook: witness.note(hook, event))
"""


def extend(tmp_path: Path, text: str, name: str = "mine") -> None:
    folder = tmp_path / "home" / "extensions"
    path = folder / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def before(body: str) -> str:
    """An extension whose `session_before_compact` has this body."""
    return f"""
import asyncio, time
from tests.extension import witness

def setup(tenuto):
    @tenuto.on("session_before_compact")
    def ask(event):
        witness.note("session_before_compact", event)
        {body}
"""


def notices(running: Agent) -> list[str]:
    return [event.text for event in running.of(NoticeEvent)]


def about_extensions(running: Agent) -> list[str]:
    return [text for text in notices(running) if "extension" in text]


@pytest.fixture(autouse=True)
def _fresh_witness():
    witness.seen.clear()


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


# --- supply ---

SUPPLY = before("""
        preparation = event.preparation
        return {"compaction": {
            "summary": "## Goal\\nSUPPLIED-NONCE",
            "first_kept_index": preparation.first_kept_index,
            "tokens_before": preparation.tokens_before,
            "details": {"topics": ["a", "b"], "turns": 3},
        }}
""")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_supplied_compaction_is_used_without_a_model_and_kept_over_a_restart(tmp_path, protocol):
    extend(tmp_path, SUPPLY)
    write_big_file(tmp_path)
    async with ScriptedServer(reads(1), **WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await running.ask("read")
            await fill(running, 4, 900)
            await compact(running)
            (entry,) = compactions(running)
            assert (entry.from_extension, entry.rung) == ("mine", "extension")
            assert entry.first_kept_index == witness.of("session_before_compact")[0].preparation.first_kept_index
            assert entry.summary.startswith("## Goal\nSUPPLIED-NONCE\n\n<read-files>\n")
            assert entry.details.extension == {"topics": ["a", "b"], "turns": 3}
            assert entry.details.read_files[0].endswith("big.txt")
            assert 0 < entry.tokens_after < entry.tokens_before
            assert not summary_requests(server)
            await running.ask("and now?")
            assert "SUPPLIED-NONCE" in server.requests[-1].raw.decode()
            check_pairs(running.session.get_llm_history())
            view = list(running.session.get_llm_history())
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert list(running.session.get_llm_history()) == view
            assert compactions(running)[0] == entry
            await fill(running, 4, 900)
            await compact(running)
            assert "SUPPLIED-NONCE" in witness.of("session_before_compact")[-1].preparation.previous_summary


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_another_place_for_the_cut_is_honoured(tmp_path, protocol):
    extend(
        tmp_path,
        before("""
        users = [entry for entry in event.branch_entries if entry.__struct_config__.tag == "user"]
        return {"compaction": {"summary": "short", "first_kept_index": users[2].seq}}
"""),
    )
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.from_extension == "mine"
        await running.ask("and now?")
        texts = [text_of(m.parts) for m in running.session.get_llm_history() if isinstance(m, UserMessage)]
        assert [text.split()[1] for text in texts[:4]] == ["2", "3", "4", "5"]
        check_requests(running.server, 32_000)


BAD = {
    "a seq that is no entry": ('{"summary": "s", "first_kept_index": 99999}', "can be cut"),
    "the beginning": ('{"summary": "s", "first_kept_index": 0}', "no entry"),
    "a negative seq": ('{"summary": "s", "first_kept_index": -4}', "no entry"),
    "an empty summary": ('{"summary": "  ", "first_kept_index": event.preparation.first_kept_index}', "empty"),
    "a summary larger than everything": (
        '{"summary": "long " * 40000, "first_kept_index": event.preparation.first_kept_index}',
        "would not make the context smaller",
    ),
    "what was not said yet": ('{"summary": "s", "first_kept_index": event.branch_entries[-1].seq + 7}', "can be cut"),
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_supplied_compaction_that_does_not_pass_is_named_and_ours_is_made(tmp_path, kind):
    supplied, said = BAD[kind]
    extend(tmp_path, before(f"return {{'compaction': {supplied}}}"))
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.from_extension == ""
        assert "Keep the tests green" in entry.summary
        (notice,) = about_extensions(running)
        assert "The compaction of the extension mine cannot be used" in notice
        assert said in notice


async def test_a_cut_between_a_call_and_its_result_is_refused(tmp_path):
    extend(
        tmp_path,
        before("""
        results = [entry for entry in event.branch_entries if entry.__struct_config__.tag == "tool_result"]
        return {"compaction": {"summary": "s", "first_kept_index": results[0].seq}}
"""),
    )
    write_big_file(tmp_path)
    async with agent(tmp_path, reads(1), options=WINDOW) as running:
        await running.ask("read")
        await fill(running, 4, 900)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.from_extension == ""
        assert "can be cut" in about_extensions(running)[0]


async def test_of_several_supplied_compactions_the_last_that_passes_is_used(tmp_path):
    supply = "return {{'compaction': {{'summary': '{}', 'first_kept_index': event.preparation.first_kept_index}}}}"
    extend(tmp_path, before(supply.format("from a")), "a")
    extend(tmp_path, before(supply.format("from b")), "b")
    extend(tmp_path, before("return {'compaction': {'summary': '', 'first_kept_index': 1}}"), "c")
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        assert compactions(running)[0].from_extension == "b"
        assert len(about_extensions(running)) == 1
        assert "extension c" in about_extensions(running)[0]


# --- add ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_added_text_is_in_the_summary_request_and_in_the_view(tmp_path, protocol):
    extend(tmp_path, before("return {'add_focus': 'FOCUS-NONCE', 'add_text': 'TEXT-NONCE'}"), "a")
    extend(tmp_path, before("return {'add_focus': 'and ports'}"), "b")
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options=WINDOW) as running:
        await fill(running)
        await compact(running, "the names")
        asked = summary_requests(running.server)[-1]
        assert "Additional focus: the names\nFOCUS-NONCE\nand ports" in asked.items[-1].text
        assert b"TEXT-NONCE" not in asked.raw
        await running.ask("and now?")
        assert "<extension-notes>\na: TEXT-NONCE\n</extension-notes>" in running.server.requests[-1].items[1].text or (
            b"a: TEXT-NONCE" in running.server.requests[-1].raw
        )
        await fill(running, 5, 600)
        (tmp_path / "home" / "extensions" / "a.py").unlink()
        await compact(running)
        assert compactions(running)[-1].replacement[0].text.count("TEXT-NONCE") == 1


async def test_added_text_stands_beside_a_supplied_summary_and_beside_the_digest(tmp_path):
    extend(tmp_path, before("return {'add_text': 'TEXT-NONCE'}"), "a")
    async with agent(tmp_path, talk(summary=HttpError(400, "no")), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.rung == "digest"
        assert "a: TEXT-NONCE" in entry.replacement[0].text
    extend(tmp_path, SUPPLY, "b")
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.rung == "extension"
        assert "a: TEXT-NONCE" in entry.replacement[0].text
        assert "TEXT-NONCE" not in entry.summary


async def test_too_much_added_text_is_bounded(tmp_path):
    extend(tmp_path, before("return {'add_focus': 'f ' * 200_000, 'add_text': 't ' * 200_000}"))
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.rung == "same prefix"
        assert entry.tokens_after < entry.tokens_before
        check_requests(running.server, 32_000)


# --- in nobody's way ---


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise RuntimeError('broken')", "failed in session_before_compact: RuntimeError: broken (mine.py:9)"),
        ("return 7", "answered session_before_compact with what is no answer"),
        ("raise SystemExit", "tried to end the program"),
    ],
)
async def test_r061_a_bad_hook_is_named_once_and_the_default_goes_on(tmp_path, body, said):
    extend(tmp_path, before(body))
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        for _ in range(2):
            await fill(running)
            await compact(running)
        assert len(compactions(running)) == 2
        assert len(witness.of("session_before_compact")) == 2
        (notice,) = about_extensions(running)
        assert said in notice
        assert "mine" in notice
        assert said.encode() in log_of(running)


async def test_a_hanging_hook_ends_by_itself(tmp_path):
    extend(tmp_path, before("time.sleep(60)"))
    environ = {"TENUTO_EXTENSIONS__HOOK_TIMEOUT": "0.3"}
    async with agent(tmp_path, talk(), options=WINDOW, environ=environ) as running:
        await fill(running)
        await compact(running)
        assert len(compactions(running)) == 1
        assert any("no answer within 0.3 seconds" in text for text in about_extensions(running))
        stages = [event.stage for event in running.of(CompactionProgressEvent)]
        assert stages[0] == "asking the extension mine"


@pytest.mark.parametrize("hang", ["time.sleep(20)", "event.signal.wait(20)", "return asyncio.sleep(20)"])
async def test_esc_during_a_hanging_hook_cancels_the_compaction_and_appends_nothing(tmp_path, hang):
    extend(tmp_path, before(hang))
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        log = log_of(running)
        compacting = asyncio.create_task(compact(running))
        await until(lambda: witness.of("session_before_compact"))
        await interrupt(running)
        finished = await asyncio.wait_for(compacting, 5)
        assert finished.outcome == "interrupted"
        end = running.of(CompactionEndEvent)[0]
        assert (end.aborted, end.error) == (True, None)
        assert log_of(running) == log
        assert witness.of("session_before_compact")[0].signal.is_set()
        assert about_extensions(running) == []


async def test_a_hook_that_is_told_and_hangs_holds_nobody_up(tmp_path):
    extend(
        tmp_path,
        "import asyncio\ndef setup(tenuto):\n    tenuto.on('session_compact', lambda event: asyncio.sleep(3600))\n",
    )
    environ = {"TENUTO_EXTENSIONS__HOOK_TIMEOUT": "0.5"}
    async with agent(tmp_path, talk(), options=WINDOW, environ=environ) as running:
        await fill(running)
        assert (await compact(running)).outcome == "completed"
        assert (await running.ask("at once")).outcome == "completed"
        await until(lambda: about_extensions(running))
        assert "session_compact" in about_extensions(running)[0]


# --- where extensions come from ---


async def test_r085_a_projects_extensions_are_named_and_not_run(tmp_path):
    folder = tmp_path / "work" / ".tenuto" / "extensions"
    (folder / "package").mkdir(parents=True)
    canary = tmp_path / "canary"
    code = f"open({str(canary)!r}, 'w')\ndef setup(tenuto):\n    open({str(canary)!r}, 'w')\n"
    (folder / "evil\x1b[2J\n.py").write_text(code)
    (folder / "package" / "__init__.py").write_text(code)
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        assert len(compactions(running)) == 1
        (notice,) = about_extensions(running)
        assert "evil" in notice
        assert "package" in notice
        assert "\x1b" not in notice
        assert "\n" not in notice
        assert not canary.exists()
        await run_command(running.runtime, "/new")
        assert len(about_extensions(running)) == 1


async def test_the_persons_own_folder_is_no_projects(tmp_path):
    extend(tmp_path, WATCH)
    (tmp_path / "work").mkdir()
    (tmp_path / "home").rename(tmp_path / "work" / ".tenuto")
    async with agent(tmp_path, talk(), options=WINDOW, home=tmp_path / "work" / ".tenuto") as running:
        assert about_extensions(running) == []
        await fill(running)
        await compact(running)
        assert witness.of("session_before_compact")


async def test_what_cannot_be_loaded_is_told_at_the_start_and_leaves_no_session_behind(tmp_path):
    extend(tmp_path, "import nothing_of_that_name")
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await until(lambda: about_extensions(running))
        assert "The extension mine (" in about_extensions(running)[0]
        directory = running.session.directory
    assert not directory.exists()


async def test_switched_off_means_nothing_is_loaded(tmp_path):
    extend(tmp_path, WATCH)
    async with agent(tmp_path, talk(), options=WINDOW, environ={"TENUTO_EXTENSIONS__ENABLED": "false"}) as running:
        await fill(running)
        await compact(running)
        assert witness.seen == []


async def test_extensions_outlive_the_session_that_they_were_loaded_in(tmp_path):
    extend(tmp_path, WATCH)
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        await run_command(running.runtime, "/new")
        await fill(running)
        await compact(running)
        first, second = witness.of("session_before_compact")
        assert first.session_id != second.session_id


async def test_reload_imports_what_was_written_meanwhile(tmp_path):
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        extend(tmp_path, "from .inner import TEXT\n" + before("return {'add_text': TEXT}"), "package/__init__")
        for text in ("FIRST", "SECOND"):
            (tmp_path / "home" / "extensions" / "package" / "inner.py").write_text(f"TEXT = '{text}-NONCE'\n")
            said = await run_command(running.runtime, "/reload")
            assert "Extensions: package." in said[-1].text
            await fill(running)
            await compact(running)
            assert f"package: {text}-NONCE" in compactions(running)[-1].replacement[0].text
        (tmp_path / "home" / "extensions" / "package" / "__init__.py").write_text("broken(")
        said = await run_command(running.runtime, "/reload")
        assert "Extensions" not in "".join(str(one) for one in said)
        assert "SyntaxError" in about_extensions(running)[-1]


async def test_the_python_api_says_who_was_against_it(tmp_path):
    extend(tmp_path, before("return {'cancel': True, 'cancel_reason': 'never'}"))
    (tmp_path / "work").mkdir()
    async with ScriptedServer(talk(), **WINDOW) as server:
        options = {"cwd": tmp_path / "work", "home": tmp_path / "home", "environ": server.environ()}
        async with tenuto.Agent(**options, model="openai-chat/test") as running:
            for number in range(6):
                await running.run(f"question {number} " + "because " * 300)
            with pytest.raises(TaskFailedError, match="the extension mine cancelled the compaction: never"):
                await running.compact()


async def test_headless_and_by_command_alike(tmp_path):
    """`tenuto -p /compact` in a process of its own; what was told arrives before it ends."""
    note = tmp_path / "note.json"
    extend(
        tmp_path,
        f"""
import asyncio, json
from pathlib import Path

def setup(tenuto):
    @tenuto.on("session_before_compact")
    def ask(event):
        return {{"compaction": {{"summary": "HEADLESS", "first_kept_index": event.preparation.first_kept_index}}}}

    @tenuto.on("session_compact")
    async def told(event):
        await asyncio.sleep(0.2)
        Path({str(note)!r}).write_text(json.dumps([event.from_extension, event.compaction_entry.summary]))
""",
    )
    async with ScriptedServer(talk(), **WINDOW) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running)
        arguments = ["-p", "/compact", "--continue", "--model", "openai-chat/test"]
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "tenuto", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path / "work",
            env={"PATH": os.environ["PATH"], "TENUTO_HOME": str(tmp_path / "home"), **server.environ()},
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "compacted (manual)" in done.stderr
        assert json.loads(note.read_text()) == ["mine", "HEADLESS"]
        assert not summary_requests(server)
