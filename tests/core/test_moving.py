"""Projects that were renamed, moved or removed: their sessions are found and go on elsewhere (R-072, T-29)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenuto.command.outcome import Choose
from tenuto.core.errors import UsageError
from tenuto.protocol.entry import MovedEntry
from tenuto.protocol.event import SessionOpenedEvent
from tenuto.session.library.catalog import homeless_sessions, list_sessions
from tests.core.harness import Agent, agent, reopened
from tests.server import Call, Reply, Request


def script(request: Request) -> Reply:
    asked = next(item.text for item in reversed(request.items) if item.kind == "user")
    if "write" in asked and not any(item.kind == "result" for item in request.turn):
        return Reply(tool_calls=[Call("write", {"path": "made.txt", "content": "here"})])
    return Reply("fine")


async def begin(tmp_path: Path, running) -> Path:
    """Say something, leave, and rename the project."""
    await running.ask("the first thing")
    await running.runtime.close()
    new = tmp_path / "renamed"
    (tmp_path / "work" / "project").rename(new)
    return new


@asynccontextmanager
async def in_project(tmp_path: Path) -> AsyncIterator[Agent]:
    (tmp_path / "work" / "project").mkdir(parents=True)
    async with agent(tmp_path, script, cwd=tmp_path / "work" / "project") as running:
        yield running


async def test_t29_continue_in_a_renamed_project_asks_and_goes_on(tmp_path):
    async with in_project(tmp_path) as running:
        session_id = running.runtime.session_id
        new = await begin(tmp_path, running)
        async with reopened(tmp_path, running.server, cwd=new, resume_latest=True) as later:
            assert later.runtime.session_id == session_id, "found by what the file system calls the directory"
            assert later.of(SessionOpenedEvent)[-1].missing
            (question,) = await later.runtime.run_command("/move")
            assert isinstance(question, Choose)
            assert question.choices[0].value == str(new)
            await later.runtime.run_command(f"/move {question.choices[0].value}")
            assert later.runtime.session_id == session_id
            assert later.session.cwd == new
            assert not later.of(SessionOpenedEvent)[-1].missing
            assert (await later.ask("write it")).outcome == "completed"
            assert (new / "made.txt").read_text() == "here"
            assert "the first thing" in later.server.requests[-1].raw.decode()
        async with reopened(tmp_path, running.server, cwd=new, resume_latest=True) as again:
            assert again.runtime.session_id == session_id, "asked once; now it belongs here"
            assert not again.of(SessionOpenedEvent)[-1].missing
            assert [entry.cwd for entry in again.session.path() if isinstance(entry, MovedEntry)] == [str(new)]


async def test_r072_headless_names_the_option_and_goes_on_with_it(tmp_path):
    async with in_project(tmp_path) as running:
        session_id = running.runtime.session_id
        new = await begin(tmp_path, running)
        with pytest.raises(UsageError, match="--cwd"):
            async with reopened(tmp_path, running.server, cwd=new, resume_latest=True, interactive=False):
                pass
        options = {"cwd": new, "resume": session_id, "interactive": False, "names_directory": True}
        async with reopened(tmp_path, running.server, **options) as later:
            assert later.session.cwd == new
            assert (await later.ask("write it")).outcome == "completed"
        assert [one.cwd for one in list_sessions(tmp_path / "home", new)] == [str(new)]


async def test_a_directory_that_is_another_one_is_not_taken_for_it(tmp_path):
    async with in_project(tmp_path) as running:
        await begin(tmp_path, running)
        other = tmp_path / "other"
        other.mkdir()
        assert [one.cwd for one in homeless_sessions(tmp_path / "home", other)] == [str(tmp_path / "work" / "project")]
        with pytest.raises(UsageError, match=r"is gone: tenuto --resume \w+ --cwd"):
            async with reopened(tmp_path, running.server, cwd=other, resume_latest=True):
                pass


async def test_a_session_can_be_moved_while_its_directory_is_there(tmp_path):
    async with in_project(tmp_path) as running:
        await running.ask("the first thing")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        log = running.session.directory / "events.jsonl"
        before = log.read_bytes()
        await running.runtime.run_command(f"/move {elsewhere}")
        assert running.session.cwd == elsewhere
        assert not log.exists()
        assert (running.session.directory / "events.jsonl").read_bytes().startswith(before)
        assert (await running.ask("write it")).outcome == "completed"
        assert (elsewhere / "made.txt").exists()
        outcomes = await running.runtime.run_command("/move")
        assert str(elsewhere) in outcomes[0].text


async def test_bad_places_change_nothing(tmp_path):
    async with in_project(tmp_path) as running:
        await running.ask("the first thing")
        here = running.session.cwd
        for place in ("/nowhere/at/all", str(here)):
            await running.runtime.run_command(f"/move {place}")
            assert running.session.cwd == here
        assert (await running.ask("go on")).outcome == "completed"


async def test_a_fork_of_a_moved_session_works_where_it_does(tmp_path):
    async with in_project(tmp_path) as running:
        await running.ask("the first thing")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        await running.runtime.run_command(f"/move {elsewhere}")
        await running.runtime.run_command("/fork")
        assert running.session.cwd == elsewhere
        await running.ask("write it")
        assert (elsewhere / "made.txt").exists()
