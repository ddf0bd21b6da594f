"""Opening, appending, the view, the search and the list of sessions: none of it looks at what is far back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenuto.core import indexing
from tenuto.core.transcript import recent_events
from tenuto.protocol.event import SessionOpenedEvent
from tenuto.protocol.message import AssistantMessage, UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.log import log
from tenuto.session.search import index
from tenuto.session.search.narrow import narrow
from tenuto.session.search.needs import words_needed
from tenuto.session.session import Session
from tenuto.tool.search.record import Question, recall
from tenuto.tool.search.search import Stop
from tests.growth.counting import LARGE, SMALL, Count, bytes_of, calls_of, python_calls
from tests.session.long import write_many, write_session

STEPS = 40
Sizes = dict[int, Path]


@pytest.fixture
def directories(tmp_path: Path) -> Sizes:
    """A session of each size; one entry is as long in both."""
    return {
        entries: write_session(tmp_path / str(entries), tmp_path, entries, entries * 500, "openai-chat/test")
        for entries in (SMALL, LARGE)
    }


def test_r069_entries_decoded_when_a_session_is_gone_on_with(directories: Sizes):
    """Opening it, its view, and what the screen shows of it first."""
    decoded = {}
    for entries, directory in directories.items():
        with calls_of(log, "decode") as count:
            session = Session.open(directory)
            session.get_llm_history()
            shown = recent_events(Live(session))  # type: ignore[arg-type]
        session.close()
        assert len(shown) > 100
        decoded[entries] = count.number
    assert 0 < decoded[LARGE] < SMALL * 1.5, "as many as the view and the first screens need, whatever is before"
    assert decoded[LARGE] <= decoded[SMALL] + 600


class Live:
    """What the transcript and the growing index ask for."""

    interactive = True

    def __init__(self, session: Session) -> None:
        self.id = session.id
        self.session = session


def test_bytes_that_a_step_writes(directories: Sizes):
    written = {}
    for entries, directory in directories.items():
        session = Session.open(directory)
        before = bytes_of(directory)
        for number in range(STEPS):
            step(session, number)
        written[entries] = (bytes_of(directory) - before) / STEPS
        session.close()
    assert written[LARGE] < 1_000, "two lines, and what the index has of them"
    assert written[LARGE] < 1.1 * written[SMALL]


def step(session: Session, number: int) -> None:
    """What a step does to a session: a question, the view for the request, the answer."""
    session.append(UserMessage(parts=(TextPart(text=f"and number {number:04}?"),)))
    session.get_llm_history()
    session.append(AssistantMessage(parts=(TextPart(text=f"It is number {number:04}."),), model="openai-chat/test"))


def test_work_of_a_step_behind_a_long_history(directories: Sizes):
    """Both sessions have a view of about the same size, and the longer one ten times as much before it."""
    work = {}
    for entries, directory in directories.items():
        session = Session.open(directory)
        step(session, 0)
        view = len(session.get_llm_history())
        work[entries] = python_calls(lambda session=session: [step(session, number) for number in range(STEPS)])
        assert view < 600
        session.close()
    assert work[LARGE] / STEPS < 2_000
    assert work[LARGE] < 1.3 * work[SMALL]


def test_work_of_a_step_in_a_growing_view(tmp_path: Path):
    """What is built of the view for a step is what is new: the four hundredth step costs what the fortieth did."""
    session = Session.create(tmp_path / "home", tmp_path)
    work = [python_calls(lambda number=number: step(session, number)) for number in range(10 * STEPS)]
    session.close()
    first, last = sum(work[STEPS : 2 * STEPS]), sum(work[-STEPS:])
    assert last < 1.2 * first


def test_s8_entries_decoded_by_a_search_for_words_that_no_entry_has_together(
    directories: Sizes, monkeypatch: pytest.MonkeyPatch
):
    """Each of them is in every run of the index; two are in what JSON adds as well."""
    monkeypatch.setattr(index, "WORTH_BYTES", 0)
    decoded = {}
    for entries, directory in directories.items():
        session = Session.open(directory)
        done, whole = 0, 1
        while done < whole:
            done, whole = session.grow_search()
        for words in ("please lost", "result part"):
            narrowed = narrow(session.path(), words_needed(words.split()))
            assert narrowed is not None
            with narrowed:
                list(narrowed)
            decoded[words, entries] = narrowed.decoded
            answer = recall(Question(query=words), session.path(), session.store.outputs, Stop())
            assert answer.startswith("Nothing found. No entry has all the words")
        session.close()
    assert max(decoded.values()) <= 4, "no more in the long one"


async def test_s8_blocks_indexed_beside_keys(directories: Sizes, monkeypatch: pytest.MonkeyPatch):
    """A key ends the step that runs beside it with its block, and no other begins while the user types."""
    monkeypatch.setattr(index, "WORTH_BYTES", 0)
    monkeypatch.setattr(indexing, "REST", 0.0)
    real, blocks = index._Writer.add_block, {}
    for entries, directory in directories.items():
        session, count = Session.open(directory), Count()
        history, live = session.path().history, Live(session)
        growing = indexing.Indexing(lambda live=live: live)  # type: ignore[arg-type,return-value]

        def add_block(*arguments: Any, growing: indexing.Indexing = growing, count: Count = count) -> None:
            count.number += 1
            monkeypatch.setattr(indexing, "QUIET", 3600.0)
            growing.note_user()
            real(*arguments)

        monkeypatch.setattr(index._Writer, "add_block", add_block)
        monkeypatch.setattr(indexing, "QUIET", 0.0)
        growing.note(SessionOpenedEvent(session_id=session.id, cwd="/", model="m", mode="ask", directory="/"))
        async with asyncio.timeout(60):
            while (found := index.open_search(history)) is None:
                await asyncio.sleep(0.01)
        found.close()
        await asyncio.sleep(0.1)
        growing.stop()
        blocks[entries] = count.number
        monkeypatch.setattr(index._Writer, "add_block", real)
        while index.search_index_lags(history):
            session.grow_search(lambda: False)
        assert found.position == history.blocks[0].position_after, "what was done by then is kept"
        session.close()
    assert set(blocks.values()) == {1}


PROBE = """
import json, sys
opened = []
sys.addaudithook(lambda event, details: opened.append(str(details[0])) if event == "open" else None)
from pathlib import Path
from tenuto.session.library.catalog import list_sessions
list_sessions(Path(sys.argv[1]))
opened.clear()
assert list_sessions(Path(sys.argv[1]))
print(len([name for name in opened if name.startswith(sys.argv[1])]))
"""


def test_r076_files_opened_for_the_list_of_sessions(tmp_path: Path):
    opened = {}
    for count in (30, 300):
        home = tmp_path / str(count)
        write_many(home, tmp_path, count)
        done = subprocess.run([sys.executable, "-c", PROBE, str(home)], capture_output=True, text=True, check=True)
        opened[count] = int(done.stdout)
    assert opened == {30: 60, 300: 600}, "its facts and its log, of which the end is looked at, for each session"
