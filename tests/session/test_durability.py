"""What happens to entries when disks fail, processes die and others come along."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import resource
import select
import shutil
import signal
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from tenuto.protocol.message import UserMessage
from tenuto.session.errors import SessionLocked, SessionReadOnly, SessionUnreadable
from tenuto.session.session import Session
from tests.session.build import answer, log_of, new_session, reopen, user

CHILD = """
import itertools, os, sys
from pathlib import Path
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.session import Session

session = Session.open(Path(sys.argv[1]))
for number in itertools.count():
    size = (7, 300, 70_000)[number % 3]
    stored = session.append(UserMessage(parts=(TextPart(text="x" * size),)))
    os.write(1, b"%d\\n" % stored.seq)
"""
HOLDER = """
import sys
from pathlib import Path
from tenuto.session.session import Session

session = Session.open(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


def test_r062_killed_at_random_at_most_the_unconfirmed_entry_is_missing(tmp_path):
    session = new_session(tmp_path)
    session.close()
    source = random.Random(62)
    for _ in range(8):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(session.directory)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert child.stdout is not None
        assert select.select([child.stdout], [], [], 30)[0], "the child never wrote"
        try:
            child.wait(source.uniform(0, 0.06))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        out, errors = child.communicate()
        assert errors == b""
        confirmed = [int(line) for line in out.split(b"\n")[:-1]]
        opened = Session.open(session.directory)
        seqs = [entry.seq for entry in opened.path()]
        assert seqs == list(range(1, len(seqs) + 1)), "nothing in the middle is missing"
        assert confirmed[-1] <= len(seqs) <= confirmed[-1] + 1
        opened.append(user("after"))
        opened.close()


@pytest.mark.parametrize("umask", [0o000, 0o777, 0o022])
def test_r075_modes_are_private_under_any_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        session = Session.create(tmp_path / "home", tmp_path)
        session.append(user())
        session.store.save_output("a.txt", "output")
        session.store.save_image(b"image", "image/png")
        session.save_meta()
        fork = session.fork(tmp_path / "home")
        fork.close()
        session.close()
    finally:
        os.umask(before)
    modes = {path.relative_to(tmp_path): stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").rglob("*")}
    modes[tmp_path] = stat.S_IMODE((tmp_path / "home").stat().st_mode)
    assert len(modes) > 12
    for path, mode in modes.items():
        assert mode == (0o700 if (tmp_path / path).is_dir() else 0o600), path


@contextmanager
def file_size_limit(size: int):
    """Let no file of this process grow beyond `size`: the system cuts the write short, then refuses it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_is_told_and_made_good(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    assert session.unsaved is None
    with file_size_limit(log_of(session).stat().st_size + 30):
        session.append(user("two"))
        session.append(user("three"))
        unsaved = session.unsaved
        assert unsaved is not None
        assert unsaved.entries == 2
        assert unsaved.reason
        assert len(session.get_llm_history()) == 3, "the session goes on in memory"
        assert not session.retry_save()
    session.append(user("four"))
    assert session.unsaved is None
    opened = reopen(session)
    assert opened.damage == ()
    assert [entry.seq for entry in opened.path()] == [1, 2, 3, 4]


def test_a_session_that_cannot_be_created_goes_on_and_is_saved_later(tmp_path):
    (tmp_path / "home").write_text("in the way")
    session = new_session(tmp_path / "home")
    session.append(user("one"))
    assert session.unsaved is not None
    (tmp_path / "home").unlink()
    session.append(user("two"))
    assert session.unsaved is None
    with pytest.raises(SessionLocked):
        Session.open(session.directory)
    assert len(reopen(session).path()) == 2


def test_a_folder_that_vanishes_is_brought_back_with_everything(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    shutil.rmtree(session.directory)
    session.directory.write_text("in the way")
    session.append(user("two"))
    assert session.unsaved is not None
    session.directory.unlink()
    session.append(user("three"))
    assert session.unsaved is None
    with pytest.raises(SessionLocked):
        Session.open(session.directory)
    opened = reopen(session)
    assert opened.damage == ()
    assert [entry.seq for entry in opened.path()] == [1, 2, 3]


def test_a_log_that_may_not_be_written_is_read_and_written_to_when_it_may(tmp_path, monkeypatch):
    session = new_session(tmp_path)
    session.append(user("one"))
    session.append(user("two"))
    session.close()
    log_of(session).write_bytes(log_of(session).read_bytes()[:-9])

    def refuse(path, flags):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    with monkeypatch.context() as patch:  # the superuser may write to anything, so this is not left to modes
        patch.setattr("tenuto.session.log.log.open_private", refuse)
        opened = Session.open(session.directory)
        opened.append(user("three"))
        assert opened.unsaved is not None
        assert opened.unsaved.reason == "Permission denied"
    opened.append(user("four"))
    assert opened.unsaved is None
    assert len(reopen(opened).path()) == 3


def test_closing_a_session_tries_once_more(tmp_path):
    session = new_session(tmp_path)
    with file_size_limit(log_of(session).stat().st_size):
        session.append(user("one"))
    session.close()
    assert len(Session.open(session.directory).path()) == 1


def test_r066_the_second_opener_is_told_who_has_the_session_and_may_read_and_fork(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    with pytest.raises(SessionLocked) as refused:
        Session.open(session.directory)
    assert refused.value.owner.pid == os.getpid()
    assert refused.value.owner.host in str(refused.value)
    reader = Session.open(session.directory, read_only=True)
    assert len(reader.get_llm_history()) == 1
    with pytest.raises(SessionReadOnly):
        reader.append(user("two"))
    fork = reader.fork(tmp_path)
    fork.append(user("two"))
    assert len(fork.path()) == 2
    assert len(session.path()) == 1


def test_r066_another_process_is_named_and_a_dead_one_is_taken_over(tmp_path):
    session = new_session(tmp_path)
    session.close()
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(session.directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"open\n"
    with pytest.raises(SessionLocked) as refused:
        Session.open(session.directory)
    assert refused.value.owner.pid == child.pid
    child.kill()
    child.communicate()
    Session.open(session.directory).append(user("mine now"))


def _try_to_write(directory, answers):
    try:
        session = Session.open(directory, durability="none")
    except SessionLocked:
        answers.put(0)
        return
    answers.put(sum(1 for _ in range(200) if session.append(user("x" * 400))))
    session.close()


def test_r066_two_writers_never_happen(tmp_path):
    session = new_session(tmp_path)
    session.close()
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    children = [context.Process(target=_try_to_write, args=(session.directory, answers)) for _ in range(3)]
    for child in children:
        child.start()
    written = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    opened = Session.open(session.directory)
    assert opened.damage == ()
    assert [entry.seq for entry in opened.path()] == list(range(1, sum(written) + 1))
    assert sum(written) >= 200


def test_r076_a_session_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(SessionUnreadable, match="No such file"):
        Session.open(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_a_temporary_session_leaves_nothing(tmp_path):
    session = Session.create_temporary(tmp_path)
    session.append(user("one"))
    path = session.store.save_output("a", "b")
    fork = session.fork(tmp_path)
    session.close()
    session.close()
    assert not path.exists()
    assert not session.directory.parent.exists()
    assert isinstance(fork.path()[0], UserMessage)
    fork.close()
    assert not fork.directory.parent.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_prompt_is_synced_to_the_disk_beside_the_work(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor)), real(descriptor)))
    session = Session.create(tmp_path, tmp_path)
    session.append(user("one"))
    size = log_of(session).stat().st_size
    for thread in set(threading.enumerate()) - {threading.main_thread()}:
        thread.join(10)
    session.close()
    log, folder = synced
    assert log.st_size == size
    assert folder.st_ino == session.directory.stat().st_ino, "the name of a new file as well"


def test_a_prompt_is_on_the_disk_itself_before_it_counts_where_the_settings_ask_for_it(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor).st_size), real(descriptor)))
    session = Session.create(tmp_path, tmp_path, durability="wait")
    session.append(user("one"))
    size = log_of(session).stat().st_size
    assert synced[0] == size
    session.append(answer("an answer alone is not waited for"))
    assert size in synced
    assert log_of(session).stat().st_size not in synced
    session.save_meta()
    assert synced[-1] == log_of(session).stat().st_size, "the end of a task is"
    count = len(synced)
    session.save_meta()
    assert len(synced) == count, "nothing new, nothing to wait for"
    session.close()


@pytest.mark.parametrize("short_of", ["descriptors", "threads"])
def test_a_prompt_is_taken_and_synced_where_the_system_is_short_of(short_of, tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    session = Session.create(tmp_path, tmp_path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor).st_size), real(descriptor)))
    with short_of_descriptors() if short_of == "descriptors" else short_of_threads(monkeypatch):
        session.append(user("one"))
    assert session.unsaved is None
    assert synced[0] == log_of(session).stat().st_size
    assert [entry.seq for entry in session.path()] == [1]
    session.close()


@contextmanager
def short_of_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            os.dup(0)
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def short_of_threads(monkeypatch):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        yield


def test_a_disk_that_cannot_sync_is_told(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(errno.EIO, "Input/output error")

    session = Session.create(tmp_path, tmp_path, durability="wait")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        session.append(user("one"))
        assert session.unsaved is not None
        assert session.unsaved.reason == "Input/output error"
    session.append(user("two"))
    assert session.unsaved is None


def test_r067_what_its_own_disk_does_not_take_is_offered_whole_elsewhere(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    shutil.rmtree(session.directory)
    session.directory.write_text("in the way")
    session.append(user("two"))
    assert session.unsaved is not None
    path = session.save_copy(tmp_path / "elsewhere")
    copy = Session.open(path.parent)
    assert [entry.seq for entry in copy.path()] == [1, 2]
    assert copy.damage == ()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    session.directory.unlink()
    session.close()
