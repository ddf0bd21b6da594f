"""The index of a log: the same answers as without it, whatever is in the log and whatever happens to the index."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenuto.protocol.entry import BranchEntry, ShellEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.session.log import history as history_module
from tenuto.session.search import index as index_module
from tenuto.session.search.index import SEARCH_NAME, grow_search, open_search, remove_search
from tenuto.session.search.narrow import narrow
from tenuto.session.search.needs import expression_needs, fold, words_needed
from tenuto.session.session import Session
from tenuto.tool.search.record import Question, recall
from tenuto.tool.search.search import Stop
from tests.session.long import write_session

LETTERS = st.sampled_from(
    [*"abiks", "I", "ß", "S", "ſ", "K", "İ", "ı", "i̇", "é", "é", "决", "定", '"', "\\", "\n", " ", "\0", "'"]
)
TEXT = st.lists(LETTERS, max_size=12).map("".join)
WORDS = st.lists(TEXT, min_size=1, max_size=3).map(" ".join)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(history_module, "BLOCK_ENTRIES", 4)
    monkeypatch.setattr(index_module, "WORTH_BYTES", 0)
    monkeypatch.setattr(index_module, "RUN_BYTES", 400)
    monkeypatch.setattr(index_module, "STEP_BYTES", 1_500)


def history_of(session: Session) -> history_module.History:
    history = session.path().history
    assert history is not None
    return history


def grow(session: Session) -> None:
    done, whole = grow_search(history_of(session))
    while done < whole:
        before, (done, whole) = done, grow_search(history_of(session))
        assert done > before


def ask(session: Session, query: str, *, regex: bool = False, branches: bool = False) -> str:
    entries = session.everything() if branches else session.path()
    question = Question(query=query, regex=regex, limit=3, private=True)
    return recall(question, entries, session.store.outputs, Stop())


def entry_of(number: int, text: str, session: Session) -> HistoryEvent:
    parts = (TextPart(text=text),)
    match number % 6:
        case 0:
            return AssistantMessage(parts=(*parts, ToolCallPart(id="c", name="recall", arguments=text)))
        case 1:
            path = session.store.save_output("o", text * 3)
            return ToolResultMessage(call_id="c", name="bash", parts=(TextPart(text="cut"),), output_path=str(path))
        case 2:
            return ShellEntry(command=text, output=text[::-1], excluded=bool(text))
        case 3:
            return CompactionEntry(summary=text, first_kept_index=1)
        case _:
            return UserMessage(parts=parts)


def damage(session: Session, at: int) -> None:
    """Make a line of the log unreadable."""
    lines = history_of(session).log.read_bytes().split(b"\n")
    lines[1 + at % (len(lines) - 1)] = b"\0" * 7
    history_of(session).log.write_bytes(b"\n".join(lines))


@given(
    said=st.lists(st.tuples(st.integers(0, 8), TEXT), min_size=4, max_size=30),
    later=st.lists(st.tuples(st.integers(0, 8), TEXT), max_size=8),
    queries=st.lists(WORDS, min_size=1, max_size=6),
    branch=st.integers(0, 30),
    harm=st.one_of(st.none(), st.integers(0, 30)),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_s8_what_is_found_is_the_same_with_an_index_and_without(said, later, queries, branch, harm):
    with tempfile.TemporaryDirectory() as place:
        session = Session.create(Path(place) / "home", Path(place))
        for number, text in said:
            session.append(entry_of(number, text, session))
        if harm is not None:
            session.close()
            damage(session, harm)
            session = Session.open(session.directory)
        grow(session)
        session.append(BranchEntry(parent=min(branch, session.highest_seq)))
        for number, text in later:
            session.append(entry_of(number, text, session))
        for _ in range(2):
            queries_now = [*queries, *(text[1:4] for _, text in (*said, *later))]
            asked = [(query, branches) for query in queries_now if query.strip() for branches in (False, True)]
            with_index = [ask(session, query, branches=branches) for query, branches in asked]
            name, aside = session.directory / SEARCH_NAME, session.directory / "aside"
            if name.exists():
                name.rename(aside)
            assert with_index == [ask(session, query, branches=branches) for query, branches in asked]
            if aside.exists():
                aside.rename(name)
            for output in session.store.outputs.glob("*"):  # a job's log grows, another one goes
                output.write_text(output.read_text() + "kiß决定") if len(output.name) % 2 else output.unlink()
            grow(session)
        session.close()


@given(
    pattern=st.lists(
        st.sampled_from(
            [
                *"abiskK",
                "ß",
                "İ",
                "ı",
                "决",
                "(",
                ")",
                "|",
                "?",
                "+",
                "*",
                "[^a]",
                "(?i:",
                "(?=",
                "{2}",
                "\\b",
                "^",
                ".",
            ]
        ),
        max_size=8,
    ).map("".join),
    text=TEXT,
)
def test_whatever_an_expression_finds_has_what_it_needs(pattern, text):
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error:
        assert expression_needs(pattern) == ()
        return
    if compiled.search(text):
        assert all(need in fold(text) for need in expression_needs(pattern))


def test_letters_that_any_search_takes_for_the_same_are_the_same_in_the_index():
    odd = [letter for code in range(0x110000) if (letter := chr(code)).lower() != letter or letter.upper() != letter]
    for plain in map(chr, range(128)):
        compiled = re.compile(re.escape(plain), re.IGNORECASE)
        assert {fold(plain)} >= {fold(letter) for letter in odd if compiled.fullmatch(letter)}


@pytest.mark.parametrize("pattern", ["^result 31:", "(?:needle)+ x", "(ab|cd)efgh", "foo.*bar"])
def test_an_expression_needs_its_plain_texts(pattern):
    expected = {
        "^result 31:": ("result 31:",),
        "(?:needle)+ x": ("needle", " x"),
        "(ab|cd)efgh": ("efgh",),
        "foo.*bar": ("foo", "bar"),
    }
    assert expression_needs(pattern) == expected[pattern]


def long_session(tmp_path: Path, entries: int = 400) -> Session:
    return Session.open(write_session(tmp_path / "home", tmp_path, entries, 200_000, "openai-chat/test"))


def test_s8_a_rare_word_is_found_by_reading_a_few_entries(tmp_path):
    session = long_session(tmp_path)
    grow(session)
    history_of(session).loads.blocks = 0
    narrowed = narrow(session.path(), words_needed(["result 31:"]))
    assert narrowed is not None
    with narrowed:
        found = list(reversed(narrowed))
        known = [entry for entry in found if entry.seq < 300]
        assert 31 in {entry.seq for entry in known}
        assert narrowed.decoded < 40
    assert history_of(session).loads.blocks <= 1, "what the index knows nothing of is in memory"
    assert "#31 " in ask(session, "^result 31:", regex=True)


def test_s8_a_step_is_bounded_and_the_next_one_goes_on(tmp_path):
    session = long_session(tmp_path)
    ends = []
    done, whole = grow_search(history_of(session))
    while done < whole:
        ends.append(done)
        done, whole = grow_search(history_of(session))
    steps = [after - before for before, after in zip([0, *ends], ends, strict=False)]
    largest = max(block.size for block in history_of(session).blocks)
    assert len(steps) > 5
    assert max(steps) <= index_module.STEP_BYTES + largest
    assert grow_search(history_of(session)) == (whole, whole)


def test_s8_only_its_owner_can_read_it(tmp_path):
    before = os.umask(0)
    try:
        session = long_session(tmp_path)
        grow(session)
    finally:
        os.umask(before)
    assert stat.S_IMODE((session.directory / SEARCH_NAME).stat().st_mode) == 0o600


def spoil_nothing(_: Path) -> None: ...
def spoil_by_cutting(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def spoil_by_emptying(path: Path) -> None:
    path.write_bytes(b"")


def spoil_by_text(path: Path) -> None:
    path.write_bytes(b"not a database " * 1000)


def spoil_the_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for at in range(4096, len(data), 4096):
        data[at : at + 64] = b"\xff" * 64
    path.write_bytes(data)


def spoil_the_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")


def spoil_the_runs(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM runs")


def spoil_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_nothing,
        spoil_by_cutting,
        spoil_by_emptying,
        spoil_by_text,
        spoil_the_middle,
        spoil_the_version,
        spoil_the_runs,
        spoil_by_a_folder,
    ],
)
def test_s8_a_damaged_index_hides_nothing_and_is_made_again(tmp_path, spoil):
    session = long_session(tmp_path)
    queries = ["Answer 39", "part 25 of", "result", "nothing of the kind"]
    plain = [ask(session, query) for query in queries]
    grow(session)
    spoil(session.directory / SEARCH_NAME)
    assert [ask(session, query) for query in queries] == plain
    if spoil is not spoil_the_runs:  # told apart from a whole one only when it is asked
        grow_search(history_of(session))
        while spoil is not spoil_by_a_folder and index_module.search_index_lags(history_of(session)):
            grow_search(history_of(session))
    assert [ask(session, query) for query in queries] == plain
    assert (open_search(history_of(session)) is None) == (spoil is spoil_by_a_folder)


def test_s8_the_index_of_another_log_is_not_believed(tmp_path):
    session = long_session(tmp_path)
    grow(session)
    other = Session.open(write_session(tmp_path / "other", tmp_path, 400, 230_000, "openai-chat/test"))
    (session.directory / SEARCH_NAME).rename(other.directory / SEARCH_NAME)
    assert open_search(history_of(other)) is None
    grow(other)
    assert open_search(history_of(other)) is not None


def test_s8_without_fts5_the_log_itself_is_read(tmp_path, monkeypatch):
    session = long_session(tmp_path)
    monkeypatch.setattr(index_module, "_TABLES", ("CREATE VIRTUAL TABLE texts USING fts99 (text)",))
    done, whole = grow_search(history_of(session))
    assert done == whole, "nothing that somebody would wait for"
    assert "#31 " in ask(session, "result 31:")


KILLED = """
import sys
from pathlib import Path
from tenuto.session.search import index
from tenuto.session.session import Session
index.WORTH_BYTES, index.STEP_BYTES = 0, 100_000
session = Session.open(Path(sys.argv[1]), read_only=True)
print("ready", flush=True)
while True:
    done, whole = session.grow_search()
    print(done, flush=True)
    if done == whole:
        index.remove_search(session.directory)
"""


def test_s8_killed_in_the_middle_nothing_is_lost(tmp_path):
    session = long_session(tmp_path, 4_000)
    plain = [ask(session, query) for query in ("Answer 391", "part 25 of")]
    session.close()
    monitor = subprocess.Popen([sys.executable, "-c", KILLED, str(session.directory)], stdout=subprocess.PIPE)
    assert monitor.stdout is not None
    for _ in range(6):
        monitor.stdout.readline()
    monitor.send_signal(signal.SIGKILL)
    monitor.wait()
    monitor.stdout.close()
    session = Session.open(session.directory)
    assert [ask(session, query) for query in ("Answer 391", "part 25 of")] == plain
    while index_module.search_index_lags(history_of(session)):
        grow_search(history_of(session))
    assert [ask(session, query) for query in ("Answer 391", "part 25 of")] == plain


def test_an_index_goes_away_with_its_session(tmp_path):
    session = long_session(tmp_path)
    grow(session)
    remove_search(session.directory)
    assert not list(session.directory.glob(f"{SEARCH_NAME}*"))
