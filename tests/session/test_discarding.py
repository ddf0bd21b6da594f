"""Nothing but the user's own command removes a folder that this process did not make and fill (reliability.md B1)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.core.closing import close_session
from tenuto.protocol.entry import ModeEntry, ModelEntry
from tenuto.session.importers.import_session import _clear_staging
from tenuto.session.library.catalog import list_sessions
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tests.session.build import log_of, new_session, user

UNREADABLE: dict[str, Callable[[bytes], bytes]] = {
    "NULs": lambda log: bytes(len(log)),
    "UTF-16": lambda log: log.decode().encode("utf-16"),
    "empty": lambda log: b"",
    "newlines": lambda log: b"\n" * len(log),
    "garbage": lambda log: bytes(byte ^ 0x55 for byte in log),
    "a header and NULs": lambda log: log[: log.index(b"\n") + 1] + bytes(len(log)),
}


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name not in ("meta.json", "index.jsonl", "lock")
    }


def worked(home: Path) -> Path:
    """Return the folder of a session with a conversation, an output and an image."""
    session = new_session(home)
    session.append(user("hours of work"))
    session.store.save_output("call.txt", "a long output")
    session.store.save_bytes(b"an image")
    session.close()
    return session.directory


@pytest.mark.parametrize("with_meta", [True, False])
@pytest.mark.parametrize("harm", UNREADABLE.values(), ids=UNREADABLE)
def test_b1_a_session_that_cannot_be_read_is_opened_and_left_and_stays(tmp_path, harm, with_meta):
    directory = worked(tmp_path)
    log = directory / LOG_NAME
    log.write_bytes(harm(log.read_bytes()))
    if not with_meta:
        (directory / "meta.json").unlink()
    before = snapshot(directory)
    for _ in range(2):  # the second time with what the first one wrote behind the damage
        session = Session.open(directory, durability="none")
        session.append(ModelEntry(model="a/b"))
        session.append(ModeEntry(mode="auto"))
        close_session(session)
        after = snapshot(directory)
        assert after.keys() == before.keys()
        for name, data in before.items():
            assert after[name].startswith(data), name


@pytest.mark.parametrize("harm", UNREADABLE.values(), ids=UNREADABLE)
def test_b1_a_session_that_cannot_be_read_is_listed_with_the_reason(tmp_path, harm):
    directory = worked(tmp_path)
    log = directory / LOG_NAME
    log.write_bytes(harm(log.read_bytes()))
    for _ in range(2):
        (summary,) = list_sessions(tmp_path)
        assert summary.id == directory.name
        assert "nothing in its log can be read" in summary.error
        close_session(Session.open(directory, durability="none"))  # its metadata may not hide it either


def _stray_file(session: Session) -> None:
    (session.directory / "notes.txt").write_text("mine")


def _output(session: Session) -> None:
    session.store.save_output("a", "b")


def _blob(session: Session) -> None:
    session.store.save_bytes(b"image")


def _foreign_line(session: Session) -> None:
    with log_of(session).open("ab") as file:
        file.write(b'{"type":"user","seq":7,"parts":[{"type":"text","text":"somebody else"}]}\n')


def _other_log(session: Session) -> None:
    log_of(session).rename(session.directory / "moved")
    log_of(session).write_bytes(b"another log\n")


def _agent(session: Session) -> None:
    new_session(session.directory, directory=session.directory / "agents" / "one").close()


@pytest.mark.parametrize("do", [_stray_file, _output, _blob, _foreign_line, _other_log, _agent])
def test_b1_a_folder_in_which_there_is_anything_else_stays(tmp_path, do):
    session = new_session(tmp_path)
    do(session)
    before = snapshot(session.directory)
    close_session(session)
    assert snapshot(session.directory).items() >= before.items()


def test_b1_an_empty_session_that_was_opened_and_not_begun_here_stays(tmp_path):
    session = new_session(tmp_path)
    session.close()
    close_session(Session.open(session.directory, durability="none"))
    assert log_of(session).is_file()


def test_b1_one_that_began_here_leaves_nothing_behind(tmp_path):
    session = Session.create(tmp_path / "home", tmp_path, clock=itertools.count(1).__next__)
    session.append(ModelEntry(model="a/b"))
    session.save_meta()
    close_session(session)
    assert not session.directory.exists()


def test_b1_a_copy_is_discarded_without_what_it_shares(tmp_path):
    session = Session.open(worked(tmp_path), durability="none")
    copy = session.fork(tmp_path)
    assert copy.discard()
    assert not copy.directory.exists()
    copy = session.fork(tmp_path)
    own = copy.store.save_bytes(b"an image of its own")
    assert not copy.discard()
    assert copy.store.load_bytes(own)
    assert (session.directory / "outputs" / "call.txt").read_text() == "a long output"


def test_b1_an_import_clears_away_nothing_that_no_import_made(tmp_path):
    staging = tmp_path / "importing"
    for name in ("mine", "0badcafe-20260101-000000"):
        (staging / name).mkdir(parents=True)
        (staging / name / "file").write_text("x")
    outside = worked(tmp_path)
    (staging / "1badcafe-20260101-000000").symlink_to(outside)
    _clear_staging(tmp_path)
    assert (staging / "mine" / "file").is_file()
    assert not (staging / "0badcafe-20260101-000000").exists()
    assert log_of(Session.open(outside, read_only=True)).is_file()
