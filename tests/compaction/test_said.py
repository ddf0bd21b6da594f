"""What the user said is read from the log once (R-033; issue F2)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.data import said
from tenuto.compaction.data.said import UserTexts
from tenuto.compaction.measure.meter import Meter
from tenuto.protocol.entry import BranchEntry
from tenuto.protocol.message import AssistantMessage, SystemMessage, UserMessage
from tenuto.session.session import Session
from tests.compaction.build import MODEL, text, words


def long_session(directory: Path) -> Session:
    session = Session.create(directory, directory, durability="none")
    session.append(SystemMessage(text="You are an agent."))
    for number in range(60):
        session.append(UserMessage(parts=text(f"rule {number}")))
        session.append(AssistantMessage(parts=text(words(4_000)), model=MODEL))
    session.close()
    return Session.open(session.directory, durability="none")


def test_t2_a_second_look_at_what_the_user_said_reads_the_end_only(tmp_path):
    session = long_session(tmp_path)
    texts = UserTexts()
    first = texts.of(session.path())
    assert [one.text for one in first] == [f"rule {number}" for number in range(60)]
    session.append(UserMessage(parts=text("rule 60")))
    before = session.loads.bytes
    assert [one.text for one in texts.of(session.path())] == [*(one.text for one in first), "rule 60"]
    assert session.loads.bytes == before, "nothing is read from the log again"
    session.close()


async def test_t2_others_run_while_a_long_log_is_read(tmp_path, monkeypatch):
    """16 ms a megabyte: at the first compaction of a long session the screen stood still for seconds."""
    monkeypatch.setattr(said, "SLICE", 0.0)
    session = long_session(tmp_path)
    texts = UserTexts()
    reading = asyncio.ensure_future(texts.read(session.path()))
    turns = 0
    while not reading.done():
        turns += 1
        if turns == 10:
            session.append(UserMessage(parts=text("said meanwhile")))
        await asyncio.sleep(0)
    assert turns > 20
    before = session.loads.bytes
    assert [one.text for one in texts.of(session.path())] == [*(f"rule {n}" for n in range(60)), "said meanwhile"]
    assert session.loads.bytes == before, "nothing is read from the log again"
    session.close()


def test_t2_what_a_branch_left_is_not_remembered_on_it(tmp_path):
    session = long_session(tmp_path)
    texts = Meter().texts
    texts.of(session.path())
    second = session.path()[3]
    session.append(BranchEntry(parent=second.seq))
    session.append(UserMessage(parts=text("another way")))
    assert [one.text for one in texts.of(session.path())] == ["rule 0", "rule 1", "another way"]
    session.close()


@given(st.lists(st.one_of(st.text(max_size=20), st.none()), max_size=40), st.data())
def test_t2_property_what_is_remembered_is_what_a_fresh_look_finds(texts_said, data):
    path = [
        UserMessage(seq=place + 1, parts=text(one)) if one is not None else AssistantMessage(seq=place + 1, parts=())
        for place, one in enumerate(texts_said)
    ]
    texts = UserTexts()
    for end in sorted(data.draw(st.lists(st.integers(0, len(path)), max_size=5))):
        assert texts.of(path[:end]) == UserTexts().of(path[:end])
