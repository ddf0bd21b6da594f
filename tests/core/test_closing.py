"""Leaving a session that its own disk does not take (R-067)."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.cli.session_commands import run_restore
from tenuto.core.closing import ClosedSession, _save_elsewhere, close_session
from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.operation import NewSessionOperation
from tenuto.session.library.catalog import list_sessions
from tenuto.session.session import Session
from tests.core.harness import agent
from tests.server import Reply, Request
from tests.session.build import log_of, new_session, user
from tests.session.test_durability import file_size_limit


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
    text = close_session(session).text
    assert "could not be saved" in text
    session.directory.unlink()
    command = shlex.split(text.partition("when there is room again: ")[2])
    assert command[:3] == ["tenuto", "sessions", "restore"]
    assert run_restore(tuple(command[3:]), tmp_path / "home") == 0
    assert [entry.seq for entry in Session.open(session.directory).path()] == [1, 2]


def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Session, Path, bytes]:
    """Return a session that its disk did not take, the copy of it, and the log as the disk has it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session = new_session(tmp_path / "home")
    session.append(user("one"))
    before = log_of(session).read_bytes()
    with file_size_limit(len(before)):
        session.append(user("two"))
    unsaved = session.unsaved
    assert unsaved is not None
    path = copied_to(_save_elsewhere(session, unsaved).text)
    session._log = None
    session._lock.release()
    assert log_of(session).read_bytes() == before
    return session, path, before


def test_a7_the_way_back_adds_what_the_log_lacks_once(tmp_path, monkeypatch, capsys):
    session, path, before = copied(tmp_path, monkeypatch)
    for _ in range(2):
        assert run_restore((str(path),), tmp_path / "home") == 0
        assert log_of(session).read_bytes() == path.read_bytes()
    assert path.read_bytes().startswith(before)
    assert "already" in capsys.readouterr().out


def test_a7_the_way_back_harms_no_session_that_was_continued_meanwhile(tmp_path, monkeypatch):
    session, path, _ = copied(tmp_path, monkeypatch)
    again = Session.open(session.directory)
    again.append(user("continued"))
    again.close()
    continued = log_of(session).read_bytes()
    assert run_restore((str(path),), tmp_path / "home") == 0
    assert log_of(session).read_bytes() == continued
    names = {one.last_text: one.id for one in list_sessions(tmp_path / "home")}
    assert names.keys() == {"continued", "two"}
    assert names["two"] != session.id


def test_a7_an_open_session_is_not_added_to(tmp_path, monkeypatch):
    session, path, before = copied(tmp_path, monkeypatch)
    again = Session.open(session.directory)
    assert run_restore((str(path),), tmp_path / "home") == 1
    again.close()
    assert log_of(session).read_bytes() == before


def test_a7_a_headless_run_that_loses_entries_does_not_end_well(tmp_path, monkeypatch):
    """Nothing can be written anywhere: not the log, not a copy."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)); "
        "from tenuto.cli.main import main; main()"
    )
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-B", "-c", program, "--model", "offline/tenuto", "-p", "list"]
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(command, cwd=work, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert "entries are lost" in done.stderr, done
    assert done.returncode == 1


def test_a_session_that_is_on_disk_is_left_without_a_word(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    assert close_session(session) == ClosedSession()


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
