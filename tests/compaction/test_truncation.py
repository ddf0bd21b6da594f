"""Oversized results: the ceiling, how a result is cut, and both forms of cutting (seed 001)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.plan.truncation import (
    cut_result,
    looks_diagnostic,
    session_likely_has_oversized_tool_results,
    truncate_oversized_tool_results_in_messages,
    truncate_result,
)
from tenuto.compaction.ways.validate import CurrentContext
from tenuto.core.compacting.view_edits import truncate_oversized_tool_results_in_session
from tenuto.protocol.entry import UndoEntry, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import ImagePart, TextPart, ToolCallPart, text_of
from tenuto.session.session import Session
from tenuto.session.view.projection import edit_message
from tenuto.text.bounding import (
    HARD_MAX_TOOL_RESULT_CHARS,
    MAX_TOOL_RESULT_CONTEXT_SHARE,
    MIN_KEEP_CHARS,
    calculate_max_tool_result_chars,
    result_ceiling,
)
from tests.compaction.build import MODEL, budget, text

WINDOW = 10_000
CEILING = 12_000
LINE = "a line of some forty characters, as usual\n"


def result(value: str, seq: int = 7, **more: object) -> ToolResultMessage:
    return ToolResultMessage(seq=seq, call_id="c1", name="bash", parts=text(value), **more)


def shortened(message: ToolResultMessage, max_chars: int = CEILING) -> str:
    edit = cut_result(message, max_chars)
    assert edit is not None
    shown = edit_message(message, edit)
    assert isinstance(shown, ToolResultMessage)
    return text_of(shown.parts)


def test_the_constants_are_the_seeds():
    assert (HARD_MAX_TOOL_RESULT_CHARS, MIN_KEEP_CHARS, MAX_TOOL_RESULT_CONTEXT_SHARE) == (400_000, 2_000, 0.3)


@pytest.mark.parametrize(
    ("window", "chars"),
    [(128_000, 153_600), (200_000, 240_000), (1_000_000, 400_000), (2_000_000, 400_000), (4_097, 4_916), (0, 0)],
)
def test_the_ceiling_of_one_result(window, chars):
    assert calculate_max_tool_result_chars(window) == chars


def test_a_tiny_or_unknown_window_has_a_ceiling_too():
    assert result_ceiling(100) == MIN_KEEP_CHARS
    assert result_ceiling(None) == HARD_MAX_TOOL_RESULT_CHARS


def test_whether_truncating_is_worth_a_try_is_a_look_at_lengths():
    assert not session_likely_has_oversized_tool_results([], WINDOW)
    assert not session_likely_has_oversized_tool_results([result("x" * CEILING)], WINDOW)
    assert session_likely_has_oversized_tool_results([result("x" * (CEILING + 1))], WINDOW)
    assert not session_likely_has_oversized_tool_results([UserMessage(seq=1, parts=text("x" * 99_999))], WINDOW)
    two = ToolResultMessage(seq=3, call_id="c", name="x", parts=(*text("x" * 7_000), *text("y" * 7_000)))
    assert session_likely_has_oversized_tool_results([two], WINDOW), "all text parts of a result count together"


def test_the_head_stays_and_the_cut_falls_on_a_line():
    whole = LINE * 2_000
    shown = shortened(result(whole))
    head, _, notice = shown.partition("[…")
    assert whole.startswith(head)
    assert len(head) % len(LINE) == 0, "whole lines"
    assert 0.75 * CEILING <= len(shown) <= CEILING
    assert notice.endswith("]\n"), "a tail that tells nothing is left out"


def test_without_a_line_in_the_last_fifth_the_cut_falls_where_the_budget_ends():
    shown = shortened(result("first line\n" + "x" * 50_000))
    head = shown.partition("\n[…")[0]
    assert CEILING - 500 <= len(head) <= CEILING
    assert head.startswith("first line\nxxx")


@pytest.mark.parametrize(
    "end",
    [
        "E   AssertionError: 3 != 4\nFAILED tests/test_a.py::test_b\n1 failed, 3 passed in 0.2s\n",
        "Traceback (most recent call last):\n  File 'a.py', line 3\nKeyError: 'a'\n",
        '  "last": [1, 2]\n}\n',
        "make: *** [all] Error 2\n",
        "(exit code 1)",
    ],
)
def test_a_tail_that_tells_how_it_ended_stays(end):
    whole = LINE * 2_000 + end
    assert looks_diagnostic(whole)
    shown = shortened(result(whole))
    assert shown.endswith(end)
    assert shown.startswith(LINE * 100)
    assert len(shown) <= CEILING
    tail = shown.rpartition("]\n")[2]
    assert len(tail) <= 4_000


def test_an_ordinary_end_is_not_diagnostic():
    assert not looks_diagnostic(LINE * 100)
    assert not looks_diagnostic("Traceback\n" + LINE * 200), "only the end counts"


@pytest.mark.parametrize(("path", "way"), [("/tmp/outputs/c1", "read it with offset and limit"), ("", "recall")])
def test_the_notice_says_how_much_is_gone_and_how_to_read_it(path, way):
    whole = LINE * 2_000
    shown = shortened(result(whole, output_path=path))
    assert way in shown
    assert (path or "Entry 7") in shown
    edit = cut_result(result(whole, output_path=path), CEILING)
    assert f"{len(whole) - edit.keep_head - edit.keep_tail:,} of {len(whole):,} characters" in edit.text


def test_all_text_parts_of_a_result_share_the_budget_and_images_stay():
    image = ImagePart(sha256="a" * 64, media_type="image/png", size=10)
    message = ToolResultMessage(
        seq=7, call_id="c", name="x", parts=(TextPart(text=LINE * 300), image, TextPart(text=LINE * 300))
    )
    found = truncate_oversized_tool_results_in_messages([message], WINDOW)
    (shown,) = found.messages
    assert len(text_of(shown.parts)) <= CEILING
    assert image in shown.parts
    assert found.truncated_count == 1


@given(
    st.text(alphabet="ab\n é👩\u200d👧}", min_size=0, max_size=9_000).map(lambda piece: piece * 3),
    st.integers(0, 20_000),
)
def test_what_is_cut_is_smaller_and_keeps_at_least_two_thousand_characters(whole, max_chars):
    message = result(whole)
    edit = cut_result(message, max_chars)
    if edit is None:
        assert len(whole) <= max(max_chars, MIN_KEEP_CHARS + 400)
        return
    shown = text_of(edit_message(message, edit).parts)
    kept = edit.keep_head + edit.keep_tail
    assert kept >= MIN_KEEP_CHARS
    assert kept < len(whole)
    assert shown == whole[: edit.keep_head] + edit.text + (whole[-edit.keep_tail :] if edit.keep_tail else "")
    assert len(shown) <= max(max_chars, MIN_KEEP_CHARS + len(edit.text))
    assert cut_result(message, max_chars) == edit, "the same every time"


def test_in_messages_nothing_else_is_touched():
    big, small, user = result(LINE * 2_000), result("ok", seq=8), UserMessage(seq=2, parts=text("x" * 50_000))
    messages = [user, big, small]
    found = truncate_oversized_tool_results_in_messages(messages, WINDOW)
    assert found.messages[0] is user
    assert found.messages[2] is small
    assert found.messages[1].call_id == big.call_id
    assert [edit.target for edit in found.edits] == [7]
    assert truncate_oversized_tool_results_in_messages(found.messages, WINDOW).truncated_count == 0
    assert truncate_oversized_tool_results_in_messages(messages, WINDOW, untouched={7}).truncated_count == 0


def test_a_text_that_is_dense_or_wide_is_brought_to_its_token_limit():
    for piece in ("word and ", "漢字かな", "4f3a9c2e"):
        whole = piece * 9_000
        found = truncate_result(result(whole), 3_000)
        assert found is not None
        assert 1_500 <= found.tokens <= 3_300, piece


def session_with_results(home, *sizes: int) -> Session:
    session = Session.create(home / "home", home, durability="none")
    session.append(SystemMessage(text="You are an agent."))
    for number, size in enumerate(sizes):
        session.append(UserMessage(parts=text(f"question {number}")))
        session.append(AssistantMessage(parts=(ToolCallPart(id=f"c{number}", name="read"),), model=MODEL))
        lines = LINE * (size // len(LINE) + 1)
        session.append(ToolResultMessage(call_id=f"c{number}", name="read", parts=text(lines[:size])))
    return session


def test_in_a_session_one_view_edit_shortens_them_the_history_stays_and_it_can_be_undone(tmp_path):
    session = session_with_results(tmp_path, 50_000, 100, 60_000)
    before, path = list(session.get_llm_history()), list(session.path())
    done = truncate_oversized_tool_results_in_session(session, WINDOW, current=current(session))
    assert (done.truncated, done.truncated_count, done.reason) == (True, 2, "")
    entry = session.path()[-1]
    assert isinstance(entry, ViewEditEntry)
    assert entry == done.entry
    assert (entry.rung, entry.reason) == ("truncate", "overflow")
    assert 0 < entry.tokens_after < entry.tokens_before
    assert list(session.path())[:-1] == path, "the history is untouched"
    assert max(len(text_of(m.parts)) for m in session.get_llm_history() if isinstance(m, ToolResultMessage)) <= CEILING
    assert [m.seq for m in session.get_llm_history()] == [m.seq for m in before], "ids and pairs stay"

    again = truncate_oversized_tool_results_in_session(session, WINDOW)
    assert (again.truncated, again.truncated_count, again.reason) == (False, 0, "no oversized tool results")

    shown = session.get_llm_history()
    session.close()
    session = Session.open(session.directory, durability="none")
    assert session.get_llm_history() == shown, "the same after a restart"
    session.append(UndoEntry(target=entry.seq))
    assert session.get_llm_history() == before
    session.close()


def test_a_second_smaller_window_cuts_anew_from_the_whole(tmp_path):
    session = session_with_results(tmp_path, 90_000)
    truncate_oversized_tool_results_in_session(session, 40_000)
    truncate_oversized_tool_results_in_session(session, WINDOW)
    (shown,) = [m for m in session.get_llm_history() if isinstance(m, ToolResultMessage)]
    assert text_of(shown.parts).count("left out") == 1
    assert "of 90,000 characters" in text_of(shown.parts)
    session.close()


def current(session: Session) -> CurrentContext:
    meter = Meter()
    return CurrentContext(
        path=session.path(),
        view=session.get_llm_history(),
        size=meter.measure(session, MODEL),
        budget=budget(WINDOW),
        meter=meter,
        model_id=MODEL,
    )


def test_nothing_oversized_is_said_and_nothing_is_written(tmp_path):
    session = session_with_results(tmp_path, 500)
    entries = list(session.entries())
    done = truncate_oversized_tool_results_in_session(session, WINDOW)
    assert (done.truncated, done.reason) == (False, "no oversized tool results")
    assert list(session.entries()) == entries
    session.close()


@given(st.integers(MIN_KEEP_CHARS, 6_000), st.integers(100, 6_000), st.booleans())
def test_polish_h_a_shortened_result_is_shorter(size, max_chars, lines):
    """seeds-001-002-004.md, polish h: 2,050 characters became 2,154 in a tiny window."""
    whole = ("some words in a line\n" * 400)[:size] if lines else "x" * size
    message = result(whole)
    edit = cut_result(message, max_chars)
    if edit is not None:
        assert len(text_of(edit_message(message, edit).parts)) < size
