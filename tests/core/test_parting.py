"""Leaving a session that its own disk does not take (R-067)."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from tenuto.core.parting import close_session
from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.operation import NewSessionOperation
from tenuto.session.session import Session
from tests.core.harness import agent
from tests.server import Reply, Request
from tests.session.build import new_session, user


def script(request: Request) -> Reply:
    return Reply(f"Answer {len(request.items)}.")


def block_directory(session: Session) -> None:
    shutil.rmtree(session.directory)
    session.directory.write_text("in the way")


def copied_to(text: str) -> Path:
    found = re.search(r"All of it is in (\S+);", text)
    assert found, text
    return Path(found[1])


def test_r067_a_session_without_a_place_is_written_elsewhere_whole_and_says_how_it_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session = new_session(tmp_path / "home")
    session.append(user("one"))
    block_directory(session)
    session.append(user("two"))
    text = close_session(session)
    assert "could not be saved" in text
    session.directory.unlink()
    session.directory.mkdir()
    command = shlex.split(text.partition("when there is room again: ")[2])
    assert command[0] == "cp"
    shutil.copy(command[1], command[2])
    assert [entry.seq for entry in Session.open(session.directory).path()] == [1, 2]


def test_a_session_that_is_on_disk_is_left_without_a_word(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    assert close_session(session) == ""


async def test_r067_not_being_saved_is_told_in_the_turn_and_the_copy_on_leaving(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with agent(tmp_path, script) as running:
        await running.ask("one")
        session = running.session
        block_directory(session)
        await running.ask("two")
        told = [event.text for event in running.of(NoticeEvent) if "not being saved" in event.text]
        assert len(told) == 1
        view = session.get_llm_history()
        await running.runtime.submit(NewSessionOperation(session_id=session.id))
        notices = [event.text for event in running.of(NoticeEvent)]
        path = copied_to(next(text for text in notices if "could not be saved" in text))
        assert running.session.id != session.id
        assert running.runtime.opener.parting == ""
    assert Session.open(path.parent, read_only=True).get_llm_history() == view
