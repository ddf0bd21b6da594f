"""A session that is open elsewhere: its second opener may read, fork, or take over (R-066, T-24)."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys

import msgspec
import pytest

from tenuto.cli.sessions import run_sessions
from tenuto.command.outcome import Choose, Leave
from tenuto.core.errors import UsageError
from tenuto.protocol.event import NoticeEvent, PromptReturnedEvent, SessionOpenedEvent, UserMessageEvent
from tenuto.protocol.message import UserMessage
from tenuto.protocol.operation import RunShellOperation
from tenuto.protocol.part import text_of
from tenuto.session.errors import Owner, SessionLocked
from tenuto.session.library.catalog import list_sessions
from tenuto.session.log.lock import LOCK_NAME
from tenuto.session.session import Session
from tests.core.harness import reopened
from tests.program import TENUTO
from tests.requirements.sessions.holding import held
from tests.server import Reply, ScriptedServer
from tests.session.build import log_of, new_session, user


def script(request):
    return Reply("fine")


async def begun(tmp_path, server):
    """Say something in a new session and leave it; return its folder."""
    async with reopened(tmp_path, server) as running:
        await running.ask("the first thing")
        return running.session.directory


def said(session: Session) -> list[str]:
    return [text_of(entry.parts) for entry in session.path() if isinstance(entry, UserMessage)]


async def test_r066_resuming_what_is_open_elsewhere_shows_it_and_asks(tmp_path):
    async with ScriptedServer(script) as server:
        directory = await begun(tmp_path, server)
        with held(directory) as owner:
            before = (directory / "events.jsonl").read_bytes()
            async with reopened(tmp_path, server, resume_latest=True, model="") as running:
                (opened,) = running.of(SessionOpenedEvent)
                assert opened.read_only
                assert opened.locked, "the front-end asks"
                assert [text_of(event.parts) for event in running.of(UserMessageEvent)] == ["the first thing"]
                assert "/fork" in running.of(NoticeEvent)[-1].text
                (choose,) = await running.runtime.run_command(f"/resume {opened.session_id}")
                assert isinstance(choose, Choose)
                assert str(owner.pid) in choose.title
                assert [row.label for row in choose.choices] == ["look at it", "go on in a copy", "cancel"]
                assert choose.choices[0].value == "", "it is being looked at"
                assert await running.runtime.run_command(f"/resume {choose.choices[2].value}") == [Leave()]
            assert (directory / "events.jsonl").read_bytes() == before


async def test_r066_nothing_is_written_to_what_is_only_read_and_fork_goes_on(tmp_path):
    async with ScriptedServer(script) as server:
        directory = await begun(tmp_path, server)
        with held(directory):
            before = (directory / "events.jsonl").read_bytes()
            async with reopened(tmp_path, server, resume_latest=True) as running:
                await running.send("may I?")
                returned = running.of(PromptReturnedEvent)[-1]
                assert text_of(returned.parts) == "may I?"
                assert "/fork" in returned.reason
                await running.runtime.submit(RunShellOperation(session_id=running.session.id, command="echo hi"))
                assert text_of(running.of(PromptReturnedEvent)[-1].parts) == "!echo hi"
                for line in ("/compact", "/title new", "/pin this", "/undo", "/mode plan", "/label here"):
                    count = len(running.of(NoticeEvent))
                    outcomes = await running.runtime.run_command(line)
                    texts = [event.text for event in running.of(NoticeEvent)[count:]]
                    texts += [getattr(outcome, "text", "") for outcome in outcomes]
                    assert any("fork" in text for text in texts), (line, texts)
                assert (directory / "events.jsonl").read_bytes() == before
                await running.runtime.run_command("/fork")
                assert not running.of(SessionOpenedEvent)[-1].read_only
                assert (await running.ask("in the copy")).outcome == "completed"
                assert said(running.session) == ["the first thing", "in the copy"]
            assert (directory / "events.jsonl").read_bytes() == before


async def test_r066_inside_tenuto_one_may_look_fork_or_stay(tmp_path):
    async with ScriptedServer(script) as server:
        directory = await begun(tmp_path, server)
        with held(directory) as owner:
            async with reopened(tmp_path, server) as running:
                own = running.session.id
                (choose,) = await running.runtime.run_command(f"/resume {directory.name}")
                assert isinstance(choose, Choose)
                assert running.session.id == own, "nothing is left before the user has chosen"
                look, fork, cancel = (row.value for row in choose.choices)
                assert cancel == ""
                await running.runtime.run_command(f"/resume {look}")
                opened = running.of(SessionOpenedEvent)[-1]
                assert (opened.session_id, opened.read_only, opened.locked) == (directory.name, True, False)
                await running.runtime.run_command(f"/resume {fork}")
                assert not running.session.is_read_only
                assert said(running.session) == ["the first thing"]
                await running.runtime.run_command(f"/resume {look}")
                owner.kill()
                owner.wait()
                await running.runtime.run_command(f"/resume {directory.name}")
                assert running.session.id == directory.name
                assert not running.session.is_read_only, "its owner is dead: it is taken over without a question"
                assert (await running.ask("mine now")).outcome == "completed"


async def test_r066_headless_names_the_owner_and_fork_goes_on_in_a_copy(tmp_path):
    async with ScriptedServer(script) as server:
        directory = await begun(tmp_path, server)
        with held(directory) as owner:
            with pytest.raises(UsageError, match=rf"process {owner.pid} on .*--fork"):
                async with reopened(tmp_path, server, resume_latest=True, interactive=False):
                    pass
            async with reopened(tmp_path, server, resume_latest=True, interactive=False, fork=True) as running:
                assert running.session.id != directory.name
                await running.ask("beside it")
                assert said(running.session) == ["the first thing", "beside it"]


def test_r066_the_command_line_in_one_line(tmp_path):
    session = new_session(tmp_path / "home")
    session.append(user("one"))
    session.close()
    environ = {**os.environ, "TENUTO_HOME": str(tmp_path / "home"), "TENUTO_MODEL": "offline/tenuto"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*TENUTO, "-p", "hello", *words]
        return subprocess.run(
            command,
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )

    with held(session.directory) as owner:
        refused = run("--resume", session.id)
        assert refused.returncode == 2
        assert refused.stderr.count("\n") == 1
        assert f"process {owner.pid} on" in refused.stderr
        forked = run("--resume", session.id, "--fork")
        assert forked.returncode == 0, forked.stderr
        count = len(list_sessions(tmp_path / "home"))
        assert run("--resume", session.id, "--fork", "--model", "nobody/nothing").returncode == 2
        assert len(list_sessions(tmp_path / "home")) == count, "a copy that could not be used does not stay"
    assert run("--fork").returncode == 2
    assert run("--resume", "--fork").returncode == 2
    assert run("--resume", session.id).returncode == 0, "its owner is dead"


@pytest.fixture
def without_locks(monkeypatch):
    """A file system that keeps no locks; none is at hand where tests run, so the system's answer is given here."""

    def refuse(descriptor, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.fixture
def far_disk(monkeypatch):
    """Have the sessions lie where a lock says nothing of other machines."""
    monkeypatch.setattr("tenuto.session.log.lock.is_local", lambda directory: False)


def name_owner(session: Session, pid: int, host: str) -> None:
    (session.directory / LOCK_NAME).write_bytes(msgspec.json.encode(Owner(pid=pid, host=host)))


def dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_r066_without_system_locks_the_file_says_who_has_it(tmp_path, without_locks):
    session = new_session(tmp_path)
    session.append(user("one"))
    with pytest.raises(SessionLocked) as refused:
        Session.open(session.directory)
    assert refused.value.owner.pid == os.getpid()
    session.close()
    assert (session.directory / LOCK_NAME).read_bytes() == b"", "who lets go is not named any more"
    Session.open(session.directory).close()
    name_owner(session, os.getppid(), os.uname().nodename)
    with pytest.raises(SessionLocked):
        Session.open(session.directory)
    name_owner(session, dead_process(), os.uname().nodename)
    Session.open(session.directory).close()


def test_r066_an_owner_on_another_host_is_never_taken_over_without_a_word(tmp_path, far_disk):
    session = new_session(tmp_path)
    session.append(user("one"))
    session.close()
    name_owner(session, 4242, "elsewhere.example")
    with pytest.raises(SessionLocked, match=r"process 4242 on elsewhere\.example") as refused:
        Session.open(session.directory)
    assert refused.value.can_take_over
    assert said(Session.open(session.directory, read_only=True)) == ["one"]
    taken = Session.open(session.directory, take_over=True)
    with pytest.raises(SessionLocked) as again:
        Session.open(session.directory, take_over=True)
    assert not again.value.can_take_over, "what is locked by the system is nobody's to take"
    taken.append(user("two"))
    taken.close()
    assert said(Session.open(session.directory)) == ["one", "two"]


def test_r066_repair_takes_over_from_another_host_when_it_is_told_to(tmp_path, capsys, far_disk):
    session = new_session(tmp_path)
    session.append(user("one"))
    session.close()
    name_owner(session, 4242, "elsewhere.example")
    assert run_sessions(("repair", session.id), tmp_path, {}) == 1
    assert "process 4242 on elsewhere.example" in capsys.readouterr().err
    assert run_sessions(("repair", session.id, "--take-over"), tmp_path, {}) == 0
    assert said(Session.open(session.directory)) == ["one"]


def test_sessions_import_is_import(tmp_path, capsys):
    assert run_sessions(("import", str(tmp_path / "nothing")), tmp_path, {}) == 1
    assert "nothing" in capsys.readouterr().err


async def test_r066_a_user_may_take_over_from_another_host(tmp_path, far_disk):
    async with ScriptedServer(script) as server:
        directory = await begun(tmp_path, server)
        (directory / LOCK_NAME).write_bytes(msgspec.json.encode(Owner(pid=4242, host="elsewhere.example")))
        async with reopened(tmp_path, server, resume_latest=True) as running:
            (choose,) = await running.runtime.run_command(f"/resume {directory.name}")
            assert isinstance(choose, Choose)
            (row,) = [row for row in choose.choices if row.label == "take it over"]
            await running.runtime.run_command(f"/resume {row.value}")
            assert not running.session.is_read_only
            assert (await running.ask("mine now")).outcome == "completed"


def test_t24_two_processes_on_one_session_leave_a_valid_log(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    session.close()
    with held(session.directory):
        with pytest.raises(SessionLocked):
            Session.open(session.directory)
        fork = Session.open(session.directory, read_only=True).fork(tmp_path)
        fork.append(user("in the fork"))
        fork.close()
    opened = Session.open(session.directory)
    assert opened.damage == ()
    assert said(opened) == ["one"]
    assert said(Session.open(fork.directory)) == ["one", "in the fork"]
    assert log_of(opened).read_bytes().endswith(b"\n")
