"""An imported session goes on, whichever provider it goes on with (the scripted server refuses what they refuse)."""

from __future__ import annotations

import pytest

from tenuto.protocol.event import NoticeEvent, UserMessageEvent
from tenuto.session.importers.import_session import import_source, open_source
from tenuto.session.library.catalog import find_session
from tests.core.compacting import compact
from tests.core.harness import PROTOCOLS, agent
from tests.server import Call, Reply
from tests.session.importers import sources
from tests.session.importers.reading import check_view
from tests.session.importers.sources import write_lines
from tests.session.importers.test_damage import MAKERS, damage, file_bytes

MODEL = "test"


def start_in(tmp_path):
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    return work


def bring_here(tmp_path, path):
    made = import_source(open_source(path), tmp_path / "home", cwd=start_in(tmp_path))
    assert find_session(tmp_path / "home", made.id) == made.directory
    return made


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", MAKERS)
async def test_the_next_prompt_is_taken_by_every_provider(tmp_path, name, protocol):
    made = bring_here(tmp_path, write_lines(tmp_path / "session.jsonl", MAKERS[name]()))
    script = [Reply(tool_calls=[Call("bash", {"command": "echo tick"})]), Reply("Tock.")]
    async with agent(tmp_path, script, resume=made.id, model=f"{protocol}/{MODEL}") as running:
        settled = await running.ask("Does it tick now?")
        assert settled.outcome == "completed"
        requests = running.server.requests
        assert [request.refused for request in requests] == ["", ""]
        assert str(requests[1].body).count("call only the tools that you are given now") == 1
        check_view(running.session.get_llm_history())
        assert any("Does it tick now?" in item.text for item in requests[0].items[-2:])
        first = next(item for item in requests[0].items if item.kind != "system")
        assert first.kind == "user"


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_damaged_sessions_go_on_too(tmp_path, protocol):
    for seed, name in enumerate(MAKERS):
        path = tmp_path / f"{seed}.jsonl"
        path.write_bytes(damage(file_bytes(name), seed + 100))
        try:
            made = bring_here(tmp_path, path)
        except Exception as error:
            assert type(error).__name__ == "NotImportable"
            continue
        async with agent(tmp_path, [Reply("Tock.")], resume=made.id, model=f"{protocol}/{MODEL}") as running:
            await running.ask("Does it tick now?")
            assert [request.refused for request in running.server.requests] == [""], name


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_only_the_source_knows_is_never_sent(tmp_path, protocol):
    lines = sources.codex_session()
    made = bring_here(tmp_path, write_lines(tmp_path / "session.jsonl", lines))
    async with agent(tmp_path, [Reply("Tock.")], resume=made.id, model=f"{protocol}/{MODEL}") as running:
        await running.ask("And?")
        body = str(running.server.requests[0].body)
        assert "web_search_call" not in body
        assert "sealed-thought" not in body
        assert "environment_context" not in body
        assert "All green." in body


async def test_the_transcript_shows_the_imported_session_and_what_was_left_out(tmp_path):
    path = write_lines(tmp_path / "session.jsonl", sources.claude_session())
    path.write_bytes(path.read_bytes() + b"{half")
    made = bring_here(tmp_path, path)
    async with agent(tmp_path, [Reply("Tock.")], resume=made.id) as running:
        said = [event.parts[0].text for event in running.of(UserMessageEvent)]
        assert said == ["Why does the clock stop?", "Now the tests, please."]
        notice = next(event for event in running.of(NoticeEvent) if event.text.startswith("Imported from Claude Code"))
        assert notice.level == "warning"
        assert "1 damaged line skipped" in notice.text
        assert "1 line of a sub-agent left out" in notice.text


async def test_an_imported_session_can_be_compacted_and_forked(tmp_path):
    lines = sources.claude_compacted()
    for number in range(30):
        uuid = f"x{number}"
        made = sources.Claude()
        made.user(f"u{uuid}", f"Question {number}? " + "word " * 400, lines[-1]["uuid"])
        made.answer(f"a{uuid}", f"msg_{uuid}", sources.said(f"Answer {number}. " + "word " * 400))
        lines += made.lines
    imported = bring_here(tmp_path, write_lines(tmp_path / "session.jsonl", lines))
    notes = (
        "## Goal\nCount to ten, one number an answer, as the user asked in the session that was imported.\n\n"
        "## Next Steps\n1. Go on from question 29: answer it with the next number, and stop at ten."
    )
    script = [Reply(notes), Reply("Tock."), Reply("Tick.")]
    async with agent(tmp_path, script, resume=imported.id, model="anthropic/test") as running:
        await compact(running)
        await running.ask("Go on?")
        assert [request.refused for request in running.server.requests] == ["", ""]
        assert "It counted to three." in str(running.server.requests[0].body), "the summary is the next one's ground"
        check_view(running.session.get_llm_history())
        copy = running.session.fork(tmp_path / "home")
        assert [str(m) for m in copy.get_llm_history()] == [str(m) for m in running.session.get_llm_history()]
        copy.close()
