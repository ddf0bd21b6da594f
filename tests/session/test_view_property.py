"""The live view equals the projection, at every moment and after every reload (R-028, R-048, R-056, R-059, R-102)."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import BranchEntry, ModelEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.message import CompactionEntry, SystemMessage, ToolResultMessage
from tenuto.session.session import Session
from tenuto.session.view.projection import project
from tests.session.build import RandomHistory, answer, as_data, check_pairs, log_of, new_session, reopen, result, user

DAMAGE = [b"\0" * 50 + b"\n", b'{"type":"user","seq":', b"\xff\xfe\n", b"\n", b'{"type":"later","seq":1}\n']
REBUILDS = (CompactionEntry, ViewEditEntry, UndoEntry, BranchEntry, SystemMessage)


def check(session: Session) -> None:
    view = session.get_llm_history()
    assert view == project(list(session.path()), session.state.model)
    check_pairs(view)


def damage_and_reopen(session: Session, source: random.Random) -> Session:
    """Close the session, do something to its log that must not matter to what is good in it, and open it again."""
    check(session)
    view = as_data(session.get_llm_history())
    state = session.state
    session.close()
    with log_of(session).open("ab") as log:
        log.write(source.choice(DAMAGE) if source.random() < 0.5 else b"")
    opened = Session.open(session.directory, durability="none")
    state.updated = opened.state.updated = 0.0
    assert opened.state == state
    assert as_data(opened.get_llm_history()) == view
    return opened


STEPS = st.lists(st.integers(0, 2**20), min_size=30, max_size=60)


@given(STEPS)
def test_r028_live_view_equals_projection_after_anything(steps):
    with tempfile.TemporaryDirectory() as home:
        session = new_session(Path(home))
        for step in steps:
            source = random.Random(step)
            if source.randrange(15) == 0:
                session = damage_and_reopen(session, source)
                continue
            before = session.get_llm_history()
            stored = session.append(RandomHistory(source).next(list(session.entries())))
            check(session)
            if not isinstance(stored, (*REBUILDS, ToolResultMessage, ModelEntry)):
                after = session.get_llm_history()
                assert all(new is old for new, old in zip(after, before, strict=False)), "only the end may change"
        damage_and_reopen(session, random.Random(0)).close()


@given(STEPS)
def test_r056_undo_gives_back_the_very_messages(steps):
    with tempfile.TemporaryDirectory() as home:
        session = new_session(Path(home))
        for step in steps:
            session.append(RandomHistory(random.Random(step)).next(list(session.entries())))
        before = session.get_llm_history()
        entry = session.append(CompactionEntry(summary="s", first_kept_index=1 + steps[0] % len(steps)))
        assert session.get_llm_history() != before or not session.path()
        session.append(UndoEntry(target=entry.seq))
        after = session.get_llm_history()
        assert after == before
        assert all(new is old for new, old in zip(after, before, strict=True)), "encoders cache by identity"
        session.close()


def test_r059_nothing_already_sent_changes_in_normal_turns(tmp_path):
    session = new_session(tmp_path)
    session.append(SystemMessage(text="prompt"))
    sent: list[object] = []
    for turn in range(20):
        session.append(user(f"turn {turn}"))
        request = session.get_llm_history()
        assert [id(message) for message in request[: len(sent)]] == [id(message) for message in sent]
        sent = list(request)
        session.append(answer("working", ("a", "b")))
        session.append(result("b"))
        session.append(result("a"))
        request = session.get_llm_history()
        assert [id(message) for message in request[: len(sent)]] == [id(message) for message in sent]
        sent = list(request)
        session.append(answer("done"))


def test_the_same_list_is_returned_until_something_is_appended(tmp_path):
    session = new_session(tmp_path)
    session.append(user("one"))
    view = session.get_llm_history()
    assert session.get_llm_history() is view
    session.append(user("two"))
    assert len(view) == 1
    assert len(session.get_llm_history()) == 2


def test_t43_a_compacted_session_resumes_to_the_same_request(tmp_path):
    session = new_session(tmp_path)
    for number in range(6):
        session.append(user(f"u{number}"))
        session.append(answer(f"a{number}"))
    frame = SystemMessage(text="frame: summary")
    session.append(CompactionEntry(summary="summary", first_kept_index=9, replacement=(frame,), focus="x", rung="5"))
    view = session.get_llm_history()
    opened = reopen(session)
    assert opened.get_llm_history() == view

    opened.close()
    log = log_of(session)
    lines = log.read_bytes().splitlines()
    lines[-1] = b'{"type":"compaction","seq":13,"summary":"frame: summary","first_kept_index":9}'
    log.write_bytes(b"\n".join(lines) + b"\n")
    stripped = Session.open(session.directory)
    assert stripped.get_llm_history() == view
    stripped.append(CompactionEntry(summary="next", first_kept_index=11))
    assert len(stripped.get_llm_history()) == 3
