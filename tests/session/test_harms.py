"""Whatever is wrong with a log: nothing is deleted, no old byte changes, what is whole loads, and it is said once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tenuto.core.closing import close_session
from tenuto.core.transcript import replay
from tenuto.protocol.entry import BranchEntry, ModeEntry, ModelEntry, QueuedEntry, UndoEntry
from tenuto.protocol.message import CompactionEntry, SystemMessage
from tenuto.session.errors import SessionLocked, SessionUnreadable
from tenuto.session.library.catalog import find_session, latest_session, list_sessions
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tests.session.build import answer, check_pairs, log_of, new_session, reopen, result, text, user
from tests.session.harms import READABLE, UNREADABLE

MARK = re.compile(rb"mark-\d+")


def lived(home: Path) -> Session:
    """Return a session in which everything happened; each entry of the conversation has a mark of its own."""
    session = new_session(home)
    session.append(ModelEntry(model="a/b"))
    session.append(ModeEntry(mode="auto"))
    session.append(SystemMessage(text="mark-10"))
    queued = session.append(QueuedEntry(parts=text("mark-11")))
    session.append(user("mark-12", from_queued=queued.seq))
    session.append(answer("mark-13", ("c1", "c2")))
    session.append(result("c1", "mark-14"))
    session.append(result("c2", "mark-15"))
    first = session.append(user("mark-16"))
    session.append(answer("mark-17"))
    compaction = CompactionEntry(
        summary="mark-18", first_kept_index=first.seq, replacement=(SystemMessage(text="mark-18"),)
    )
    kept = session.append(compaction)
    session.append(UndoEntry(target=kept.seq))
    session.append(user("mark-19"))
    session.append(BranchEntry(parent=first.seq))
    session.append(user("mark-20"))
    session.append(answer("mark-21", ("c3",)))
    session.append(result("c3", "mark-22"))
    session.append(user("mark-23"))
    session.store.save_output("call.txt", "kept beside")
    session.store.save_bytes(b"an image")
    return session


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name not in ("meta.json", "index.jsonl", "lock")
    }


def harmed(home: Path, harm, with_meta: bool) -> tuple[Path, list[bytes], bytes]:
    session = lived(home)
    session.close()
    log = log_of(session)
    lines = log.read_bytes().splitlines()
    data = harm(lines)
    log.write_bytes(data)
    if not with_meta:
        (session.directory / "meta.json").unlink()
    return session.directory, lines, data


def marks_of(session: Session) -> set[bytes]:
    return {found for entry in session.entries() for found in MARK.findall(repr(entry).encode())}


ALL = {**READABLE, **UNREADABLE}
KINDS = [pytest.param(name, marks=[pytest.mark.full] if number % 3 else []) for number, name in enumerate(ALL)]
"""A third of them in every run, all with `--full`."""


@pytest.mark.parametrize("with_meta", [True, False], ids=["meta", "no meta"])
@pytest.mark.parametrize("name", KINDS)
def test_r064_whatever_harms_a_log_what_is_whole_loads_and_nothing_is_lost(tmp_path, name, with_meta):
    directory, lines, data = harmed(tmp_path, ALL[name], with_meta)
    before = snapshot(directory)
    whole = {found for line in lines if line in data for found in MARK.findall(line)}
    (summary,) = list_sessions(tmp_path)
    assert bool(summary.error) is (name in UNREADABLE), summary
    assert latest_session(tmp_path, tmp_path).directory == (None if name in UNREADABLE else directory)
    assert find_session(tmp_path, directory.name[:8]) == directory

    opened = Session.open(directory, durability="none")
    assert whole <= marks_of(opened)
    check_pairs(opened.get_llm_history())
    list(replay("session", opened.path()))
    numbers = [damage.line for damage in opened.damage]
    assert len(set(numbers)) == len(numbers), "each damaged line is named once"
    for one in range(2):
        added = opened.append(user(f"mark-9{one}"))
        assert added.seq > max((entry.seq for entry in opened.path() if entry is not added), default=0)
    view = opened.get_llm_history()
    close_session(opened)

    again = Session.open(directory, durability="none")
    assert whole | {b"mark-90", b"mark-91"} <= marks_of(again)
    assert again.get_llm_history() == view, "the same after a reload"
    assert [damage.line for damage in again.damage] == numbers, "and said once"
    copy = again.fork(tmp_path)
    copy.close()
    close_session(again)
    after = snapshot(directory)
    assert after.keys() == before.keys()
    for path, old in before.items():
        assert after[path].startswith(old), path


@pytest.mark.parametrize("name", KINDS)
def test_b1_r071_opening_and_leaving_deletes_nothing_whatever_harms_the_log(tmp_path, name):
    directory, _, _ = harmed(tmp_path, ALL[name], with_meta=True)
    before = snapshot(directory)
    for read_only in (True, False, False):
        close_session(Session.open(directory, durability="none", read_only=read_only))
        after = snapshot(directory)
        assert after.keys() == before.keys()
        assert all(after[path].startswith(old) for path, old in before.items())


def test_there_are_sixty_kinds_of_damage_at_least():
    assert len(ALL) >= 60
    assert sum(not kind.marks for kind in KINDS) >= 20


# --- under a session that is open ---


def _remove(session: Session) -> None:
    log_of(session).unlink()


def _move(session: Session) -> None:
    log_of(session).rename(session.directory.parent / "moved.jsonl")


def _move_folder(session: Session) -> None:
    session.directory.rename(session.directory.parent / "moved")


def _cut(session: Session) -> None:
    log_of(session).write_bytes(log_of(session).read_bytes()[:-7])


def _empty(session: Session) -> None:
    log_of(session).write_bytes(b"")


def _grow(session: Session) -> None:
    with log_of(session).open("ab") as file:
        file.write(b"somebody else's line\n")


@pytest.mark.parametrize("do", [_remove, _move, _move_folder])
def test_r067_a_log_that_goes_away_under_its_session_is_brought_back_whole(tmp_path, do):
    session = lived(tmp_path)
    do(session)
    session.append(user("mark-90"))
    assert session.unsaved is None
    marks = marks_of(session)
    again = reopen(session)
    assert again.damage == ()
    assert marks_of(again) == marks


def test_r067_another_file_in_the_place_of_the_log_is_left_alone_and_said(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    session = lived(tmp_path / "home")
    other = tmp_path / "other"
    other.write_bytes(b"somebody's own file\n")
    other.replace(log_of(session))
    session.append(user("mark-90"))
    assert session.unsaved is not None
    told = close_session(session).text
    assert "could not be saved" in told
    assert log_of(session).read_bytes() == b"somebody's own file\n"
    (copy,) = tmp_path.glob("tenuto-*/**/events.jsonl")
    assert b"mark-90" in copy.read_bytes()
    assert b"mark-12" in copy.read_bytes()


@pytest.mark.parametrize("do", [_cut, _empty, _grow])
def test_r064_a_log_that_is_changed_under_its_session_takes_what_follows(tmp_path, do):
    session = lived(tmp_path)
    do(session)
    changed = log_of(session).read_bytes()
    session.append(user("mark-90"))
    session.append(answer("mark-91"))
    assert log_of(session).read_bytes().startswith(changed)
    again = reopen(session)
    assert {b"mark-90", b"mark-91"} <= marks_of(again)


def test_r066_the_log_is_locked_after_it_was_brought_back(tmp_path):
    session = lived(tmp_path)
    _move_folder(session)
    session.append(user("mark-90"))
    with pytest.raises(SessionLocked):
        Session.open(session.directory)
    session.close()


def test_r076_a_log_that_is_a_folder_is_said(tmp_path):
    session = lived(tmp_path)
    session.close()
    (session.directory / "meta.json").unlink()
    log_of(session).unlink()
    log_of(session).mkdir()
    with pytest.raises(SessionUnreadable):
        Session.open(session.directory)
    assert (session.directory / LOG_NAME).is_dir()
