"""Metadata and index beside the log: kept up while it grows, whatever ends the process (DESIGN section 3, "Cost")."""

from __future__ import annotations

import random
import select
import signal
import subprocess
import sys

import pytest

from tenuto.protocol.entry import BranchEntry, QueuedEntry, UndoEntry
from tenuto.protocol.message import CompactionEntry, SystemMessage, UserMessage
from tenuto.session.library import meta
from tenuto.session.library.meta import META_NAME
from tenuto.session.log import history as block
from tenuto.session.log.history import INDEX_NAME
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tests.session.build import answer, log_of, new_session, reopen, text, user
from tests.session.whole import WholeSession, check_equal

CHILD = """
import itertools, os, sys
from pathlib import Path
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.library import meta
from tenuto.session.log import history
from tenuto.session.session import Session

history.BLOCK_ENTRIES = 3
meta._META_BYTES = 600
session = Session.open(Path(sys.argv[1]))
for number in itertools.count():
    stored = session.append(UserMessage(parts=(TextPart(text="x" * (7, 300, 900)[number % 3]),)))
    os.write(1, b"%d\\n" % stored.seq)
"""


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(block, "BLOCK_ENTRIES", 3)
    monkeypatch.setattr(meta, "_META_BYTES", 600)


def test_r062_killed_while_metadata_and_index_are_written_everything_opens_as_it_is(tmp_path, small_blocks):
    session = new_session(tmp_path)
    session.close()
    source = random.Random(5)
    for _ in range(8):
        before = log_of(session).read_bytes()
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(session.directory)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert select.select([child.stdout], [], [], 30)[0], "the child never wrote"
        try:
            child.wait(source.uniform(0, 0.04))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        out, _ = child.communicate()
        (session.directory / f".{META_NAME}.1.abc.new").write_text("half of it")  # as a kill may leave it
        assert log_of(session).read_bytes().startswith(before)
        opened = Session.open(session.directory)
        check_equal(opened, WholeSession(session.directory))
        confirmed = int(out.split(b"\n")[-2])
        assert len(opened.path()) >= confirmed
        opened.append(user("after"))
        opened.close()
    left = {path.name for path in session.directory.iterdir()}
    assert left == {LOG_NAME, META_NAME, INDEX_NAME, "lock"}, "no temporary file of a killed process stays"


def test_a_session_that_was_never_closed_opens_from_what_was_kept_up(tmp_path, small_blocks):
    session = new_session(tmp_path)
    for number in range(40):
        session.append(user(f"number {number} " + "x" * 200))
    opened = Session.open(session.directory, read_only=True)
    check_equal(opened, WholeSession(session.directory))
    loaded = opened._tree.history
    assert len(loaded.blocks) == 13
    assert (session.directory / META_NAME).exists(), "saved although nothing has settled"


def test_what_is_old_is_let_go_after_a_compaction_and_found_again(tmp_path, small_blocks):
    session = new_session(tmp_path)
    session.append(SystemMessage(text="prompt"))
    history = session._tree.history
    for round_number in range(4):
        for number in range(30):
            session.append(user(f"round {round_number} number {number}"))
        view = session.get_llm_history()
        kept = session.append(user("kept")).seq
        entry = session.append(CompactionEntry(summary="s", first_kept_index=kept))
        assert len(session.get_llm_history()) == 3
    held = len(history._open.entries) + sum(len(entries) for entries in history._held.values())
    assert held < 80, "two rounds, and not four"
    check_equal(session, WholeSession(session.directory))
    session.append(UndoEntry(target=entry.seq))
    again = session.get_llm_history()
    assert again[: len(view)] == view
    assert all(new is old for new, old in zip(again, view, strict=False)), "an undo gives back the very messages"


def test_a_leaf_far_back_is_found_through_the_index(tmp_path, small_blocks):
    session = new_session(tmp_path)
    early = [session.append(user(f"early {number}")) for number in range(20)]
    queued = session.append(QueuedEntry(parts=text("waits")))
    for number in range(20):
        session.append(answer(f"late {number}"))
    session.append(BranchEntry(parent=early[4].seq))
    opened = reopen(session)
    assert [entry.seq for entry in opened.path()] == [1, 2, 3, 4, 5]
    assert opened.find(queued.seq) == queued
    assert opened.state.queue == (queued,)
    opened.append(user("another way"))
    check_equal(reopen(opened), WholeSession(session.directory))


def test_a_block_that_changed_under_an_open_session_is_reported_and_the_rest_goes_on(tmp_path, small_blocks):
    session = new_session(tmp_path)
    for number in range(30):
        session.append(user(f"number {number:02}"))
    opened = reopen(session)
    data = log_of(opened).read_bytes()
    log_of(opened).write_bytes(data.replace(b'"number 05"', b'"number\n05"'))
    entries = list(opened.path())
    assert len(entries) == 30
    assert [entry.seq for entry in entries if isinstance(entry, UserMessage)] == [n for n in range(1, 31) if n != 6]
    assert any("can be read" in str(damage) for damage in opened.damage)
    opened.append(user("goes on"))
    opened.close()
    assert not (opened.directory / INDEX_NAME).exists(), "it is made anew from the log"
    check_equal(Session.open(opened.directory), WholeSession(opened.directory))
