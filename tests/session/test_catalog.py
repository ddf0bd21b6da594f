"""Listing and finding sessions, from metadata that can always be rebuilt."""

from __future__ import annotations

import itertools
import os

import pytest

from tenuto.protocol.entry import BranchEntry, NoticeEntry, QueuedEntry, ShellEntry, TitleEntry
from tenuto.protocol.usage import Usage
from tenuto.session.errors import SessionAmbiguous, SessionUnreadable
from tenuto.session.library.catalog import Latest, find_session, latest_session, list_sessions
from tenuto.session.library.meta import current_meta, read_meta
from tenuto.session.paths import project_directory
from tenuto.session.session import Session
from tests.session.build import answer, log_of, text, user

CLOCK = itertools.count(1_700_000_000, 10)


def session_in(home, cwd, *words, close=True) -> Session:
    cwd.mkdir(exist_ok=True, parents=True)
    session = Session.create(home, cwd, clock=CLOCK.__next__, durability="none")
    for word in words:
        session.append(user(word))
    if close:
        session.close()
    stamp = next(CLOCK)
    os.utime(log_of(session), (stamp, stamp))
    return session


def test_the_folder_of_a_project_is_readable_and_of_its_real_path(tmp_path):
    cwd = tmp_path / "My Project"
    cwd.mkdir()
    (tmp_path / "link").symlink_to(cwd)
    directory = project_directory(tmp_path, cwd)
    assert directory == project_directory(tmp_path, tmp_path / "link")
    assert directory != project_directory(tmp_path, tmp_path / "My-Project")
    slug, _, digest = directory.name.rpartition("-")
    assert slug.endswith("My-Project")
    assert len(digest) == 8
    assert int(digest, 16) >= 0
    assert project_directory(tmp_path, cwd / ("deep/" * 80)).name


def test_sessions_are_listed_by_project_the_last_used_first(tmp_path):
    first = session_in(tmp_path, tmp_path / "a", "first question", "second")
    second = session_in(tmp_path, tmp_path / "a", "other")
    elsewhere = session_in(tmp_path, tmp_path / "b", "elsewhere")
    session_in(tmp_path, tmp_path / "a")
    assert [one.id for one in list_sessions(tmp_path, tmp_path / "a")] == [second.id, first.id]
    assert {one.id for one in list_sessions(tmp_path)} == {first.id, second.id, elsewhere.id}
    summary = list_sessions(tmp_path, tmp_path / "a")[1]
    assert (summary.name, summary.last_text, summary.messages) == ("first question", "second", 2)
    assert (summary.cwd, summary.directory, summary.error) == (str(tmp_path / "a"), first.directory, "")
    assert list_sessions(tmp_path / "none") == []


def test_r076_every_listed_session_opens_and_an_error_is_shown_as_what_it_is(tmp_path):
    for word in ("one", "two"):
        session_in(tmp_path, tmp_path / "a", word)
    broken = session_in(tmp_path, tmp_path / "a", "broken")
    log_of(broken).unlink()
    (broken.directory / "meta.json").unlink()
    log_of(broken).mkdir()
    unreadable = session_in(tmp_path, tmp_path / "a", "garbage")
    log_of(unreadable).write_bytes(b"\0" * 99)
    for summary in list_sessions(tmp_path):
        Session.open(summary.directory).close()
    with pytest.raises(SessionUnreadable):
        Session.open(broken.directory)


def test_the_list_is_right_without_metadata_and_with_a_stale_one(tmp_path):
    session = session_in(tmp_path, tmp_path / "a", "one", close=False)
    session.append(answer(usage=Usage(cost=0.25)))
    assert not (session.directory / "meta.json").exists()
    assert list_sessions(tmp_path)[0].cost == 0.25
    session.save_meta()
    session.append(TitleEntry(title="named\nlater"))
    assert list_sessions(tmp_path)[0].name == "named later"
    (session.directory / "meta.json").write_text("{")
    assert list_sessions(tmp_path)[0].name == "named later"


def test_metadata_of_another_log_is_not_believed(tmp_path):
    session = session_in(tmp_path, tmp_path / "a", "one", "two")
    other = session_in(tmp_path, tmp_path / "a", "three", "four")
    log_of(session).write_bytes(log_of(other).read_bytes())
    assert current_meta(session.directory).state.first_text == "three"
    lines = log_of(other).read_bytes().splitlines(keepends=True)
    log_of(session).write_bytes(lines[0] + lines[1][:20])
    assert current_meta(session.directory).size == len(lines[0])


def test_metadata_is_brought_up_from_where_it_ends_and_says_what_it_could_not_follow(tmp_path):
    session = session_in(tmp_path, tmp_path / "a", "one", close=False)
    session.save_meta()
    stored = read_meta(session.directory)
    assert stored is not None
    assert stored.seq == 1
    session.append(user("two"))
    meta = current_meta(session.directory)
    assert (meta.seq, meta.state, meta.path_stale) == (2, session.state, False)
    session.append(BranchEntry(parent=1))
    assert current_meta(session.directory).path_stale


def test_a_line_that_is_being_written_does_not_spoil_the_metadata(tmp_path):
    session = session_in(tmp_path, tmp_path / "a", "one", close=False)
    session.append(user("x" * 700_000))
    session.append(user("y" * 200_000))
    log = log_of(session)
    whole = log.read_bytes()
    session.close()
    (session.directory / "meta.json").unlink()
    log.write_bytes(whole[:-100_000])
    list_sessions(tmp_path)
    with log.open("ab") as file:
        file.write(whole[-100_000:])
    assert list_sessions(tmp_path)[0].messages == 3


def test_a_long_log_is_folded_once_for_the_list(tmp_path):
    session = session_in(tmp_path, tmp_path / "a", "x" * 400_000)
    (session.directory / "meta.json").unlink()
    list_sessions(tmp_path)
    stored = read_meta(session.directory)
    assert stored is not None
    assert stored.size == log_of(session).stat().st_size
    Session.open(session.directory)


def test_the_latest_session_is_the_last_one_in_which_something_was_said(tmp_path):
    session_in(tmp_path, tmp_path / "a", "old")
    newer = session_in(tmp_path, tmp_path / "a", "newer")
    session_in(tmp_path, tmp_path / "a")
    session_in(tmp_path, tmp_path / "b", "elsewhere")
    assert latest_session(tmp_path, tmp_path / "a") == Latest(newer.directory)
    assert latest_session(tmp_path, tmp_path / "c") == Latest(None)


def test_a_queued_prompt_alone_is_a_session(tmp_path):
    session = session_in(tmp_path, tmp_path / "a", close=False)
    session.append(QueuedEntry(parts=text("waiting")))
    assert list_sessions(tmp_path)[0].name == "waiting"


def test_commands_of_the_user_alone_are_a_session_and_its_first_words_name_it(tmp_path):
    session = session_in(tmp_path, tmp_path / "a", close=False)
    session.append(ShellEntry(command="make test", output="ok"))
    assert list_sessions(tmp_path)[0].name == "!make test"
    assert latest_session(tmp_path, tmp_path / "a").directory == session.directory
    session.append(user("why is it slow?"))
    session.append(ShellEntry(command="make clean", output="ok"))
    assert list_sessions(tmp_path)[0].name == "why is it slow?"


def test_a_session_is_found_by_its_id_or_the_beginning_of_it(tmp_path):
    one = session_in(tmp_path, tmp_path / "a", "one")
    session_in(tmp_path, tmp_path / "b", "two")
    assert find_session(tmp_path, one.id) == one.directory
    assert find_session(tmp_path, one.id[:8]) == one.directory
    assert find_session(tmp_path, "zzz") is None
    assert find_session(tmp_path, "") is None
    twin = one.directory.with_name(one.id + "x")
    one.directory.rename(twin)
    (twin.parent / one.id).mkdir()
    (twin.parent / one.id / "events.jsonl").write_bytes((twin / "events.jsonl").read_bytes())
    assert find_session(tmp_path, one.id) == one.directory
    with pytest.raises(SessionAmbiguous, match="fits 2 sessions"):
        find_session(tmp_path, one.id[:8])


def test_b1_a_session_that_cannot_be_read_is_passed_over_by_name(tmp_path):
    older = session_in(tmp_path, tmp_path / "a", "older")
    harmed = session_in(tmp_path, tmp_path / "a", "newer")
    log_of(harmed).write_bytes(bytes(500))
    stamp = next(CLOCK)
    os.utime(log_of(harmed), (stamp, stamp))
    latest = latest_session(tmp_path, tmp_path / "a")
    assert latest.directory == older.directory
    assert [one.id for one in latest.unreadable] == [harmed.id]
    assert "500 bytes" in latest.unreadable[0].error


def test_a_copy_of_what_stands_before_the_first_message_is_no_damaged_session(tmp_path):
    """It was in the list as one whose log cannot be read: the copy has the files of what was left."""
    session = session_in(tmp_path, tmp_path / "a", "write it", close=False)
    session.store.save_bytes(b"as it was before")
    session.append(BranchEntry(parent=0))
    copy = session.fork(tmp_path)
    copy.append(NoticeEntry(text="something was removed"))
    copy.close()
    session.close()
    assert [one.id for one in list_sessions(tmp_path)] == [session.id]
    log = log_of(copy)
    log.write_bytes(log.read_bytes().replace(b'"forked_from"', b'"something"'))
    assert "files of earlier work" in next(one.error for one in list_sessions(tmp_path) if one.id == copy.id)
