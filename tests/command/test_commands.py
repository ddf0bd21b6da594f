"""Every slash command on a real runtime, with what a user might type behind it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path

import pytest

from tenuto.api.words import describe_outcome
from tenuto.command.outcome import Choose, EditFile, Leave, Page, ReadOwnFiles, RowChanged, Say, ShowContext
from tenuto.command.registry import COMMANDS, find_command, runner_of
from tenuto.command.session_commands import ELSEWHERE, HERE, age
from tenuto.config.plugins.installed import digest_folder
from tenuto.core.errors import UsageError
from tenuto.private_files import replace_file
from tenuto.protocol.event import (
    AssistantTextDeltaEvent,
    CompactionEndEvent,
    ModeChangedEvent,
    ModelChangedEvent,
    NoticeEvent,
    SessionOpenedEvent,
    TaskFinishedEvent,
    TitleChangedEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import SystemMessage, UserMessage
from tenuto.protocol.part import TextPart, text_of
from tenuto.session.library.catalog import find_session, list_bin, take_from_bin
from tenuto.session.log.lock import SessionLock
from tenuto.session.session import Session
from tests.core.harness import Agent, agent, reopened
from tests.server import Call, Reply, Request, ScriptedServer, Tokens

NO_KEY = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_BASE_URL": ""}
"""The server on this machine needs no key; the provider's own does."""


def echo(request: Request) -> Reply:
    return Reply(f"You said {request.last_user.splitlines()[0]}.", usage=Tokens(input=1_200, output=30, cache_read=800))


async def say(running: Agent, line: str) -> str:
    """Run a command that only says something."""
    outcomes = await running.runtime.run_command(line)
    (outcome,) = (outcome for outcome in outcomes if not isinstance(outcome, ReadOwnFiles))
    assert isinstance(outcome, Say | ShowContext)
    return outcome.text


async def told(running: Agent, line: str) -> list[str]:
    """Run a command; return the errors and warnings that came of it, as outcome or as notice."""
    before = len(running.events)
    outcomes = await running.runtime.run_command(line)
    notices = [event for event in running.events[before:] if isinstance(event, NoticeEvent)]
    return [item.text for item in [*outcomes, *notices] if isinstance(item, Say | NoticeEvent) and item.level != "info"]


def test_names_are_unique_and_each_command_has_its_module() -> None:
    names = [name for command in COMMANDS for name in (command.name, *command.aliases)]
    assert len(set(names)) == len(names)
    for wanted in ("help", "model", "new", "resume", "clear", "cost", "mode", "exit", "compact"):
        assert find_command(wanted) is not None, wanted
    for command in COMMANDS:
        assert callable(runner_of(command))
        assert command.description


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("/hlep", "did you mean /help?"),
        ("/", "/help lists them"),
        ("/zzzzzz argument", "There is no command /zzzzzz"),
        ("/help nope", "There is no command /nope"),
        ("/mode wild", "ask, edits, auto, plan"),
        ("/mode plan now", "There is no mode “plan now”"),
        ("/mode paln", "there are ask, edits, auto, plan; did you mean plan?"),
        ("/help comapct", "did you mean /compact?"),
        ("/model nonsense", "provider/name"),
        ("/model nobody/x", "nobody"),
        ("/model openai/", "provider/name"),
        ("/model offline/other", "offline/tenuto"),
        ("/model anthropic/x", "ANTHROPIC_API_KEY"),
        ("/resume nothing", "nothing"),
        ("/resume ../../etc", "../../etc"),
        ("/resume \0", "there is no session"),
        ("/recall", "/recall WORDS"),
        ("/recall /[/", "regular expression"),
        ("/compact undo", "no compaction to undo"),
        ("/compact redo", "no undone compaction"),
    ],
)
async def test_bad_arguments_give_one_clear_line_and_change_nothing(tmp_path: Path, line: str, part: str) -> None:
    async with agent(tmp_path, echo, environ=NO_KEY) as running:
        await running.ask("hello")
        before = (running.runtime.session_id, running.session.state.model, running.runtime.live.mode)
        entries = len(list(running.session.entries()))
        lines = await told(running, line)
        assert len(lines) == 1
        assert part in lines[0]
        assert "\n" not in lines[0]
        assert (running.runtime.session_id, running.session.state.model, running.runtime.live.mode) == before
        assert len(list(running.session.entries())) == entries
        assert (await running.ask("still there")).outcome == "completed"


async def test_help_names_every_command_and_its_aliases(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        for line in ("/help", "/?", "/help   "):
            text = await say(running, line)
            for command in COMMANDS:
                assert f"/{command.name}" in text
                assert command.description in text
                for alias in command.aliases:
                    assert f"/{alias}" in text
            assert "@path" in text
            assert "!command" in text
        assert "/compact" not in await say(running, "/help /exit")
        assert "/exit" in await say(running, "/help quit")


async def test_help_keeps_its_descriptions_in_one_column(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        text = await say(running, "/help")
        listed = [line for line in text.split("\n") if line.startswith(("/", "@", "!", "?", " "))]
        columns = [re.match(r" {2,}|\S+(?: \S+)*(?: {2,}|$)", line) for line in listed]
        places = {match.end() for match, line in zip(columns, listed, strict=True) if match and match.end() < len(line)}
        assert places == {26}
        assert any(match and match.end() == len(line) for match, line in zip(columns, listed, strict=True))


@pytest.mark.parametrize("line", ["/model anthropc/x", "/resume nope", "/unpin 9", "/mode paln", "/mouse weel"])
async def test_what_names_nothing_is_a_warning_whatever_it_names(tmp_path: Path, line: str) -> None:
    async with agent(tmp_path, echo) as running:
        await running.runtime.run_command("/pin a text")
        outcomes = await running.runtime.run_command(line)
        told = [
            (said.level, said.text)
            for said in (*outcomes, *running.of(NoticeEvent))
            if line.split()[1].partition("/")[0] in said.text
        ]
        assert [level for level, _text in told] == ["warning"], told
        assert all(level == "warning" for level in (said.level for said in outcomes if isinstance(said, Say)))


async def test_model_offers_what_can_be_used_and_changes_to_it(tmp_path: Path) -> None:
    async with agent(tmp_path, echo, environ=NO_KEY) as running:
        (offer,) = await running.runtime.run_command("/model")
        assert isinstance(offer, Choose)
        assert "openai-chat/test" in offer.title
        values = [choice.value for choice in offer.choices]
        assert {"openai/test", "openai-chat/test", "openai-chat/test-small", "offline/tenuto"} <= set(values)
        assert not any(value.startswith("anthropic/") for value in values), "there is no key for it"
        (present,) = [choice for choice in offer.choices if "current" in choice.detail]
        assert present.value == "openai-chat/test"
        assert "openai/test-small" in await say(running, f"/{offer.command} openai/test-small:high")
        event = running.of(ModelChangedEvent)[-1]
        assert (event.model, event.effort) == ("openai/test-small", "high")
        await running.ask("hello")
        request = running.server.requests[-1]
        assert (request.protocol, request.body["model"]) == ("responses", "test-small")


async def test_f11_the_picker_shows_what_the_server_lists_recent_ones_first_and_what_is_known(tmp_path: Path) -> None:
    listing = {"models": ("test", "test-small", "gpt-6-sol", "vision")}
    async with agent(tmp_path, echo, options=listing, model="openai-chat/gpt-9-none") as running:
        for name in ("openai/vision", "openai/gpt-6-sol:high", "openai-chat/test-small", "openai-chat/gpt-9-none"):
            await say(running, f"/model {name}")
        (offer,) = await running.runtime.run_command("/model")
        assert isinstance(offer, Choose)
        values = [choice.value for choice in offer.choices]
        assert values[:4] == ["openai-chat/gpt-9-none", "openai-chat/test-small", "openai/gpt-6-sol", "openai/vision"]
        assert len(values) == len(set(values))
        assert {f"openai/{name}" for name in listing["models"]} <= set(values)
        present, small, sol, *_ = offer.choices
        assert present.present and present.detail.startswith("current · not in the server's list")
        assert small.detail.startswith("recent · 200k window")
        assert "effort none to" in sol.detail and "effort  none, low" in sol.preview
        assert "window  200,000 tokens (the provider's list)" in sol.preview
        assert "the server lists it" in sol.preview and "does not list it" in present.preview
        assert [one.name for one in offer.filters] == ["all", "openai-chat", "anthropic", "openai", "gemini", "offline"]


async def test_a_server_that_gives_no_list_is_named_and_asked_again(tmp_path: Path) -> None:
    dead = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    async with agent(tmp_path, echo, model="anthropic/test", environ=dead) as running:
        for _ in range(2):
            *said, offer = await running.runtime.run_command("/model")
            assert isinstance(offer, Choose)
            assert any("openai gives no list of its models" in one.text for one in said)
        assert "anthropic/test" in [choice.value for choice in offer.choices]


async def test_a_change_of_model_is_kept_on_resume(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("hello")
            await running.runtime.run_command("/model openai/test-small")
        async with reopened(tmp_path, server, model="", resume_latest=True) as running:
            assert running.session.state.model == "openai/test-small"
            await running.ask("again")
        assert server.requests[-1].body["model"] == "test-small"


async def test_mode_offers_all_and_changes(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        (offer,) = await running.runtime.run_command("/mode")
        assert isinstance(offer, Choose)
        assert [choice.value for choice in offer.choices] == ["ask", "edits", "auto", "plan"]
        assert all(choice.detail for choice in offer.choices)
        for mode in ("plan", "ask"):
            assert await running.runtime.run_command(f"/mode {mode}") == []
            assert running.runtime.live.mode == running.of(ModeChangedEvent)[-1].mode == mode


@pytest.mark.parametrize("line", ["/new", "/clear"])
async def test_new_leaves_the_session_behind_and_resume_finds_it(tmp_path: Path, line: str) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("the first thing")
        await running.runtime.run_command("/title All of it")
        first = running.runtime.session_id
        await running.runtime.run_command(line)
        assert running.runtime.session_id != first
        assert not running.of(SessionOpenedEvent)[-1].resumed
        assert running.session.state.model == "openai-chat/test"
        assert running.runtime.live.mode == "auto"
        await running.ask("the second thing")
        assert not any("first thing" in item.text for item in running.server.requests[-1].items)

        (offer,) = await running.runtime.run_command("/resume")
        assert isinstance(offer, Choose)
        assert [choice.value for choice in offer.choices] == [first], "not the open one"
        assert offer.choices[0].label == "All of it"
        assert "2 messages" in offer.choices[0].detail
        before = len(running.events)
        assert await running.runtime.run_command(f"/resume {first[:8]}") == []
        assert running.runtime.session_id == first
        shown = [event for event in running.events[before:] if isinstance(event, UserMessageEvent)]
        assert [text_of(event.parts) for event in shown] == ["the first thing"]
        await running.ask("go on")
        assert any("first thing" in item.text for item in running.server.requests[-1].items)


async def test_new_in_another_directory(tmp_path: Path) -> None:
    (tmp_path / "work" / "below").mkdir(parents=True)
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        await running.runtime.run_command("/new below")
        assert running.session.cwd == tmp_path / "work" / "below"
        await running.runtime.run_command(f"/new {tmp_path}")
        assert running.session.cwd == tmp_path


async def test_new_in_a_directory_that_is_none_says_so_and_stays(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        before = running.runtime.session_id
        await running.runtime.run_command("/new /nowhere/at/all")
        assert running.runtime.session_id == before
        assert "/nowhere/at/all" in running.of(NoticeEvent)[-1].text


async def test_resuming_the_open_session_says_that_it_is_open(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        before = running.runtime.session_id
        (line,) = await told(running, f"/resume {before}")
        assert "open already" in line
        assert (await running.ask("again")).outcome == "completed"
        assert running.runtime.session_id == before


async def test_resume_finds_sessions_by_their_words(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("the zebra parser is slow")
        zebra = running.runtime.session_id
        await running.runtime.run_command("/new")
        await running.ask("the lion parser is slow too")
        await running.runtime.run_command("/new")
        await running.ask("something else")
        assert await running.runtime.run_command("/resume PARSER zebra") == []
        assert running.runtime.session_id == zebra
        await running.runtime.run_command("/new")
        (choose,) = await running.runtime.run_command("/resume parser slow")
        assert isinstance(choose, Choose) and len(choose.choices) == 2
        assert "zebra nothing" in (await told(running, "/resume zebra nothing"))[0]
    async with reopened(tmp_path, running.server, resume="lion parser") as running:
        assert "lion" in next(
            text_of(entry.parts) for entry in running.session.entries() if isinstance(entry, UserMessage)
        )
    with pytest.raises(UsageError, match="2 sessions have “parser”"):
        async with reopened(tmp_path, running.server, resume="parser"):
            pass


async def test_resume_without_other_sessions_says_so(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        assert "no other session" in await say(running, "/resume")


async def two_sessions(running: Agent) -> str:
    """Say something in a session, go to another one, and return the id of the first."""
    await running.ask("the first thing")
    first = running.runtime.session_id
    await running.runtime.run_command("/new")
    await running.ask("the second thing")
    return first


async def test_a_listed_session_is_renamed_without_opening_it(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        first = await two_sessions(running)
        present = running.runtime.session_id
        (offer,) = await running.runtime.run_command("/resume")
        assert isinstance(offer, Choose) and offer.acts == ("rename", "delete", "fork")
        assert offer.choices[0].title == ""
        changed, said = await running.runtime.run_command(f"/resume {first} rename All of it")
        assert isinstance(changed, RowChanged) and isinstance(said, Say)
        assert changed.row is not None and (changed.row.label, changed.row.title) == ("All of it", "All of it")
        assert (changed.value, changed.row.value, changed.row.kind) == (first, first, HERE)
        assert running.runtime.session_id == present
        await running.runtime.run_command(f"/resume {first}")
        assert running.session.state.title == "All of it", "as /title would have it"
        assert (await running.ask("go on")).outcome == "completed"


async def test_a_listed_session_goes_to_the_bin_and_comes_back(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        first = await two_sessions(running)
        log = find_session(running.runtime.home, first)
        assert log is not None
        kept = (log / "events.jsonl").read_bytes()
        (question,) = await running.runtime.run_command(f"/resume {first} delete")
        assert isinstance(question, Choose) and "the first thing" in question.title
        no, yes = question.choices
        assert no.value == "" and log.is_dir(), "nothing has happened yet"
        changed, said = await running.runtime.run_command(f"/resume {yes.value}")
        assert changed == RowChanged("resume", first, None)
        assert isinstance(said, Say) and f"tenuto sessions restore {first[:8]}" in said.text
        (deleted,) = list_bin(running.runtime.home)
        assert (deleted / "events.jsonl").read_bytes() == kept
        changed, said = await running.runtime.run_command(f"/resume {first} delete")
        assert changed == RowChanged("resume", first, None), "a row of what is gone goes as well"
        assert isinstance(said, Say) and "no session" in said.text and said.level == "warning"
        take_from_bin(running.runtime.home, deleted)
        assert await running.runtime.run_command(f"/resume {first}") == []


@pytest.mark.parametrize("act", ["delete yes", "rename Other"])
async def test_the_open_session_is_neither_deleted_nor_renamed_from_the_list(tmp_path: Path, act: str) -> None:
    async with agent(tmp_path, echo) as running:
        await two_sessions(running)
        (line,) = await told(running, f"/resume {running.runtime.session_id} {act}")
        assert "is the open one" in line
        assert (await running.ask("still there")).outcome == "completed"
        assert list_bin(running.runtime.home) == []


@pytest.mark.parametrize("act", ["delete yes", "rename Other"])
async def test_a_session_that_another_process_holds_open_stays_as_it_is(tmp_path: Path, act: str) -> None:
    async with agent(tmp_path, echo) as running:
        first = await two_sessions(running)
        directory = find_session(running.runtime.home, first)
        assert directory is not None
        lock = SessionLock(directory)
        lock.acquire()
        before = (directory / "events.jsonl").read_bytes()
        try:
            changed, said = await running.runtime.run_command(f"/resume {first} {act}")
        finally:
            lock.release()
        assert isinstance(said, Say) and "is open in process" in said.text and said.level == "error"
        assert isinstance(changed, RowChanged) and changed.row is not None
        assert (directory / "events.jsonl").read_bytes() == before
        assert list_bin(running.runtime.home) == []


async def test_renaming_a_session_whose_log_is_damaged_loses_none_of_it(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        first = await two_sessions(running)
        directory = find_session(running.runtime.home, first)
        assert directory is not None
        log = directory / "events.jsonl"
        lines = log.read_bytes().splitlines(keepends=True)
        lines.insert(2, b'{"type": "user", "par\0\xff\n')
        log.write_bytes(b"".join(lines))
        outcomes = await running.runtime.run_command(f"/resume {first} rename Still here")
        assert [outcome.level for outcome in outcomes if isinstance(outcome, Say)] == ["info"]
        after = log.read_bytes()
        assert after.startswith(b"".join(lines)) and b"Still here" in after


async def test_fork_goes_on_in_a_copy_and_the_transcript_stays(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        await running.ask("the first thing")
        origin, log = running.runtime.session_id, running.session.directory / "events.jsonl"
        before = len(running.events)
        outcomes = await running.runtime.run_command("/fork")
        assert running.runtime.session_id != origin
        assert any(origin[:8] in outcome.text for outcome in outcomes if isinstance(outcome, Say))
        shown = [event for event in running.events[before:] if isinstance(event, UserMessageEvent)]
        assert [text_of(event.parts) for event in shown] == ["the first thing"]
        untouched = log.read_bytes()
        await running.ask("in the copy")
        assert log.read_bytes() == untouched
        assert any("first thing" in item.text for item in running.server.requests[-1].items)


async def test_compact_takes_a_focus_and_says_what_it_did(tmp_path: Path) -> None:
    filler = "some words that fill the window " * 600

    def script(request: Request) -> Reply:
        summary = "summar" in request.last_user.lower()
        return Reply("## Goal\nThe user wants words." if summary else f"Understood. {filler}")

    async with agent(tmp_path, script, options={"window": 60_000}) as running:
        assert not await compacted(running, "/compact")
        assert "nothing to compact" in (running.of(CompactionEndEvent)[-1].error or "")
        for number in range(4):
            await running.ask(f"{number} {filler}")
        assert await compacted(running, "/compact the names of birds")
        asked = [request for request in running.server.requests if "names of birds" in request.raw.decode()]
        assert asked
        assert running.of(CompactionEndEvent)[-1].entry is not None
        assert (await running.ask("go on")).outcome == "completed"


async def compacted(running: Agent, line: str) -> bool:
    """Run /compact and wait for its end."""
    before = len(running.of(TaskFinishedEvent))
    assert await running.runtime.run_command(line) == []
    await running.until(TaskFinishedEvent, before + 1)
    return running.of(CompactionEndEvent)[-1].entry is not None


async def test_context_and_cost_show_the_meters_own_numbers(tmp_path: Path) -> None:
    async with agent(tmp_path, echo, options={"window": 50_000}) as running:
        first = await say(running, "/context")
        assert "would be sent with the first request" in first
        await running.ask("hello")
        text = await say(running, "/context")
        size = running.runtime.live.measure()
        sent = running.server.requests[0].tokens
        said = int(first.split()[0].strip("~").replace(",", ""))
        assert 0.7 * sent < said < 1.3 * sent, "before anything was sent it says what will be"
        assert f"{size.tokens:,}" in text
        assert "50,000" in text
        assert f"{running.runtime.live.budget().trigger:,}" in text
        cost = await say(running, "/cost")
        for number in ("1,200", "800", "30"):
            assert number in cost
        assert "no price" in cost


async def test_title_is_set_shown_and_kept(tmp_path: Path) -> None:
    async with ScriptedServer(echo) as server:
        async with reopened(tmp_path, server) as running:
            assert "No title" in await say(running, "/title")
            await running.ask("hello")
            assert "Repair the  roof" in await say(running, "/title  Repair the  roof ")
            assert running.of(TitleChangedEvent)[-1].title == "Repair the  roof"
            assert await say(running, "/rename") == "Repair the  roof"
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert await say(running, "/title") == "Repair the  roof"
            assert running.of(SessionOpenedEvent)[-1].title == "Repair the  roof"


async def test_reload_sends_changed_instructions_and_says_when_nothing_changed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    instructions = tmp_path / "work" / "AGENTS.md"
    instructions.write_text("Use tabs.")
    async with agent(tmp_path, echo) as running:
        await running.ask("hello")
        assert "Nothing has changed" in await say(running, "/reload")
        instructions.write_text("Use spaces.")
        await running.ask("again")
        assert "Use tabs." in running.server.requests[-1].raw.decode(), "what was sent does not change by itself"
        assert "read again" in await say(running, "/reload")
        await running.ask("and now")
        sent = running.server.requests[-1].raw.decode()
        assert "Use spaces." in sent
        assert "Use tabs." not in sent
        assert sum(isinstance(entry, SystemMessage) for entry in running.session.entries()) == 2


async def test_reload_waits_for_what_runs(tmp_path: Path) -> None:
    async with agent(tmp_path, lambda _: Reply("slow " * 40, delay_per_event=0.05)) as running:
        await running.send("go")
        await running.until(AssistantTextDeltaEvent)
        assert "while something runs" in (await told(running, "/reload"))[0]
        await asyncio.wait_for(running.runtime.wait_settled(), 20)


@pytest.mark.parametrize("line", ["/exit", "/quit", "/exit now"])
async def test_exit_leaves(tmp_path: Path, line: str) -> None:
    async with agent(tmp_path, echo) as running:
        assert await running.runtime.run_command(line) == [Leave()]


@pytest.mark.parametrize("line", ["/title\tA name", "/title\nA name", "  /title A name"])
async def test_any_white_space_ends_a_commands_name(tmp_path: Path, line: str) -> None:
    async with agent(tmp_path, echo) as running:
        assert "A name" in await say(running, line)
        assert running.session.state.title == "A name"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (59, "just now"), (60, "1m ago"), (7_200, "2h ago"), (200_000, "2d ago"), (-5, "just now")],
)
def test_ages(seconds: float, words: str) -> None:
    assert age(seconds) == words


async def test_a_temporary_session_can_be_left_for_another_one(tmp_path: Path) -> None:
    async with agent(tmp_path, echo, temporary=True) as running:
        await running.ask("hello")
        folder = running.session.directory
        await running.runtime.run_command("/new")
        assert not folder.exists()
        assert (await running.ask("again")).outcome == "completed"
    assert not list((tmp_path / "home").glob("sessions/*/*/events.jsonl"))


async def test_resume_shows_how_a_session_began_and_offers_those_of_other_directories(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = Session.create(tmp_path / "home", elsewhere)
    other.append(UserMessage(parts=(TextPart(text="far away"),)))
    other.close()
    (tmp_path / "work" / ".git").mkdir(parents=True)
    (tmp_path / "work" / ".git" / "HEAD").write_text("ref: refs/heads/fix/zebra (two)\n")
    async with agent(tmp_path, echo) as running:
        await running.ask("how it began")
        await running.ask("how it ended")
        await running.runtime.run_command("/new")
        (offer,) = await running.runtime.run_command("/resume")
        assert isinstance(offer, Choose)
        rows = {choice.kind: choice for choice in offer.choices}
        assert [row_filter.kinds for row_filter in offer.filters] == [(HERE,), ()], "first those of this directory"
        assert rows[HERE].preview.splitlines()[:2] == ["first how it began", "last how it ended"]
        assert f"{tmp_path / 'work'} · fix/zebra (two) · " in rows[HERE].preview
        assert str(elsewhere) in rows[ELSEWHERE].preview
        assert await running.runtime.run_command(f"/resume {rows[ELSEWHERE].value}") == []
        assert running.runtime.live.session.cwd == elsewhere


async def test_jobs_are_listed_read_and_ended(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        if any(item.kind == "result" for item in request.items):
            return Reply("Started.")
        command = "printf 'up\\033[2Jand running\\n'; sleep 300"
        return Reply("Starting.", tool_calls=[Call("bash", {"command": command, "background": True})])

    async with agent(tmp_path, script, mode="auto") as running:
        assert await running.runtime.run_command("/jobs") == [Say("Nothing runs in the background.")]
        await running.ask("start it")
        (choose,) = await running.runtime.run_command("/jobs")
        assert isinstance(choose, Choose) and choose.acts == ("end",)
        (row,) = choose.choices
        assert (row.value, row.preview) == ("job-1", "upand running")
        assert row.detail.startswith("running ")
        (page,) = await running.runtime.run_command("/jobs 1")
        assert isinstance(page, Page)
        assert Path(page.path).read_text(encoding="utf-8").endswith("upand running\n")
        Path(page.path).unlink()
        assert "no job" in (await told(running, "/jobs end 7"))[0]
        changed, said = await running.runtime.run_command("/tasks job-1 end yes")
        assert isinstance(changed, RowChanged) and changed.row is not None and "ended by you" in changed.row.detail
        assert isinstance(said, Say) and said.text.startswith("Ended job-1: printf")
        assert not running.runtime.live.tool_context.jobs.running()
        await running.ask("go on")
        assert any("was ended by the user" in item.text for item in running.server.requests[-1].items)
        assert isinstance((await running.runtime.run_command("/jobs end 1"))[1], Say)


async def test_init_has_the_instruction_file_written_and_a_present_one_looked_over(tmp_path: Path) -> None:
    async with agent(tmp_path, [Reply("Written."), Reply("Looked over.")]) as running:
        root = running.session.cwd
        (root / ".git").mkdir()
        assert await running.runtime.run_command("/init name the ports") == []  # nothing is found here
        await asyncio.wait_for(running.runtime.wait_settled(), 20)
        sent = running.server.requests[0].last_user
        assert f"Write {root}/AGENTS.md" in sent and "Beside that: name the ports\n" in sent
        (root / "CLAUDE.md").write_text("Use tabs.", encoding="utf-8")
        await running.runtime.run_command("/init")
        await asyncio.wait_for(running.runtime.wait_settled(), 20)
        assert f"Look over {root}/CLAUDE.md" in running.server.requests[1].last_user
        origins = [entry.origin for entry in running.session.entries() if isinstance(entry, UserMessage)]
        assert origins == ["command", "command"]


async def test_j8_init_says_what_was_found_and_names_the_files_of_other_products_to_the_model(tmp_path: Path) -> None:
    async with agent(tmp_path, [Reply("Written.")]) as running:
        root = running.session.cwd
        (root / ".git").mkdir()
        (root / "GEMINI.md").write_text("Use tabs.", encoding="utf-8")
        (root / "CLAUDE.local.md").write_text("Mine alone.", encoding="utf-8")
        (root / ".cursor/rules").mkdir(parents=True)
        (root / ".cursor/rules/style.mdc").write_text("Short lines.", encoding="utf-8")
        (root / ".claude/skills/deploy").mkdir(parents=True)
        (root / ".claude/skills/deploy/SKILL.md").write_text("---\nname: deploy\ndescription: d\n---\nGo.")
        (root / ".claude/skills/odd").mkdir()
        (root / ".claude/skills/odd/SKILL.md").write_text("nothing")
        (said,) = await running.runtime.run_command("/init")
        await asyncio.wait_for(running.runtime.wait_settled(), 20)
        assert isinstance(said, Say)
        assert "skills: deploy (Claude Code)" in said.text
        assert "skill odd (Claude Code) · not used: line 1: there is no front matter" in said.text
        assert "instructions GEMINI.md (Gemini CLI) · not used" in said.text
        sent = running.server.requests[0].last_user
        assert f"- {root}/GEMINI.md\n- {root}/.cursor/rules/style.mdc" in sent and "carry over into AGENTS.md" in sent
        assert f"- {root}/CLAUDE.local.md" not in sent, "what is one user's does not go into a file of all"


async def test_j7_plugins_are_listed_with_what_each_brings(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        assert "No plugins." in await say(running, "/plugins")
        folder = running.runtime.home / "plugins/small"
        (folder / "skills/one").mkdir(parents=True)
        (folder / "skills/one/SKILL.md").write_text("---\nname: one\ndescription: d\n---\nGo.")
        record = {"small": {"source": "/from", "digest": digest_folder(folder)}}
        replace_file(running.runtime.home / "plugins.json", json.dumps(record).encode())
        assert "plugin small, from /from\n  skills: small:one" in await say(running, "/plugin")
        (folder / "skills/one/SKILL.md").write_text("---\nname: one\ndescription: d\n---\nGo on.")
        await running.runtime.run_command("/reload")
        assert "not used: its files have changed since you added it" in await say(running, "/plugins")


async def test_status_says_where_the_session_stands(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        assert "none · /init" in await say(running, "/status")
        (running.session.cwd / "AGENTS.md").write_text("Use tabs.", encoding="utf-8")
        await running.ask("hello")
        await running.runtime.run_command("/title The zebra")
        text = await say(running, "/status")
        for part in ("openai-chat/test", "“The zebra”", "2 messages", str(running.session.directory), "mode", "auto"):
            assert part in text, part
        assert f"{running.session.cwd}/AGENTS.md (9 characters)" in text


async def test_memory_offers_the_instruction_files_to_be_changed(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        home, work = running.runtime.home, running.session.cwd
        (work / "CLAUDE.md").write_text("Use tabs.", encoding="utf-8")
        (choose,) = await running.runtime.run_command("/memory")
        assert isinstance(choose, Choose)
        rows = {row.value: row.detail for row in choose.choices}
        assert rows == {
            str(work / "CLAUDE.md"): "this project · 9 characters",
            str(home / "AGENTS.md"): "every project · not there yet",
        }
        assert await running.runtime.run_command(f"/memory {work}/CLAUDE.md") == [EditFile(str(work / "CLAUDE.md"))]
        assert "no instruction file" in (await told(running, "/memory /etc/passwd"))[0]


async def test_diff_shows_changes_and_new_files_and_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    async with agent(tmp_path, echo) as running:
        work = running.session.cwd
        assert "no git repository" in (await told(running, "/diff"))[0]
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
        subprocess.run([*git, "init", "-q"], cwd=work, check=True)
        assert await say(running, "/diff") == "Nothing has changed since the last commit."
        (work / "old.py").write_text("first\nsecond\n")
        subprocess.run([*git, "add", "."], cwd=work, check=True)
        subprocess.run([*git, "commit", "-qm", "x"], cwd=work, check=True)
        (work / "old.py").write_text("first\nother\x1b[2J\n")
        (work / "new file.txt").write_text("brand new\n")
        (page,) = await running.runtime.run_command("/diff")
        assert isinstance(page, Page)
        text = Path(page.path).read_text(encoding="utf-8")
        assert "\x1b[32m+" in text and "\x1b[2J" not in text and "brand new" in text
        said = describe_outcome(page)
        assert "-second" in said and "+other" in said and "+brand new" in said and "\x1b" not in said
        (page,) = await running.runtime.run_command("/diff old.py")
        assert isinstance(page, Page) and "brand new" not in describe_outcome(page)
        with (work / ".git" / "config").open("a") as config:
            config.write('[filter "x"]\n\tclean = touch canary\n')
        assert "!!git diff" in (await told(running, "/diff"))[0]
        assert not (work / "canary").exists()
