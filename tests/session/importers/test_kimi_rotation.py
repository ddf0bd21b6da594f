"""kimi-cli puts its file aside at each compaction, revert and clear: nothing is lost, and the view is the last file."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.session.importers.reading import bring_file, check_view, view_words
from tests.session.importers.sources import Line, said, write_lines
from tests.session.importers.test_formats import AFTER

ACTIONS = st.lists(st.one_of(st.just("turn"), st.just("compact"), st.just("clear"), st.integers(0, 8)), max_size=12)


def message(role: str, words: str) -> Line:
    return {"role": role, "content": [said(words)]}


@given(actions=ACTIONS, same_words=st.booleans())
def test_the_view_is_what_the_last_file_holds_and_everything_else_is_there(actions, same_words):
    folder = Path(tempfile.mkdtemp())
    try:
        check_actions(folder, ["turn", *actions, "turn"], same_words)
    finally:
        shutil.rmtree(folder)


def check_actions(folder: Path, actions: list[str | int], same_words: bool) -> None:
    lines: list[Line] = []
    written: list[str] = []
    aside = shortest = 0
    for number, action in enumerate(actions):
        if action == "turn":
            question, answer = ("Again?", "Again.") if same_words else (f"Question {number}?", f"Answer {number}.")
            lines += [message("user", question), message("assistant", answer)]
            written += [question, answer]
            continue
        if action == "compact" and len(lines) < 3:
            continue
        aside += 1
        write_lines(folder / f"s/context_{aside}.jsonl", lines)
        if action == "compact":
            head = said("<system>Previous context has been compacted. Here is …</system>")
            written.append(f"Summary {number}.")
            lines = [{"role": "user", "content": [head, said(f"Summary {number}.")]}, *lines[-2:]]
            shortest = len(lines)
        elif action == "clear":
            lines, shortest = [], 0
        else:
            lines = lines[: max(int(action), shortest)]
    session, made = bring_file(folder, write_lines(folder / "s/context.jsonl", lines))
    everything = str(list(session.entries()))
    assert all(words in everything for words in written)
    if not same_words:
        assert all(everything.count(f"'{words}'") == 1 for words in written if words.startswith("Answer"))
    said_here = [words_of_line(line) for line in lines]
    view = [words for words in view_words(session) if words != AFTER]
    assert [words for words in view if not words.startswith("system: ")] == [
        words for words in said_here if not words.startswith("summary: ")
    ]
    summaries = [words.removeprefix("summary: ") for words in said_here if words.startswith("summary: ")]
    assert all(summary in view[0] for summary in summaries)
    assert made.report.damaged == 0
    check_view(session.get_llm_history())


def words_of_line(line: Line) -> str:
    words = line["content"][-1]["text"]
    if len(line["content"]) == 2:
        return f"summary: {words}"
    return f"user: {words}" if line["role"] == "user" else f"model: {words}"
