"""Rung 1: which results become placeholders (seed 004, section 3)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.summary.summary import MAX_EXACT_NAMES
from tenuto.compaction.ways.rungs import (
    PRESERVED_GROUPS,
    hidden_text,
    hide_results,
    is_hidden,
    is_worth_a_cold_cache,
    saved_by,
)
from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of
from tests.compaction.build import History, words
from tests.session.build import check_pairs


def with_steps(*sizes: tuple[int, ...]) -> History:
    history = History()
    history.user("go on")
    for results in sizes:
        history.step(*(words(size) for size in results))
    return history


def results(history: History) -> list[ToolResultMessage]:
    return [message for message in history.view() if isinstance(message, ToolResultMessage)]


def hide(history: History) -> bool:
    edits = hide_results(history.view())
    if edits:
        history.add(ViewEditEntry(edits=edits, rung="hide"))
    return bool(edits)


def test_the_results_of_all_but_the_last_five_groups_are_hidden():
    history = with_steps(*[(200,)] * 8)
    assert hide(history)
    shown = results(history)
    assert [is_hidden(result) for result in shown] == [True] * 3 + [False] * 5


def test_parallel_calls_are_one_group_and_are_hidden_or_kept_as_a_whole():
    history = with_steps((200, 200, 200), (200, 200), *[(200,)] * 4)
    assert hide(history)
    assert [is_hidden(result) for result in results(history)] == [True] * 3 + [False] * 6


def test_what_is_hidden_already_is_no_change():
    history = with_steps(*[(200,)] * 8)
    assert hide(history)
    assert not hide(history)
    history.step(words(200))
    assert hide(history), "another group is old now"
    assert len(history.path[-1].edits) == 1


def test_few_groups_and_short_results_are_left_alone():
    assert not hide_results(with_steps(*[(500,)] * PRESERVED_GROUPS).view())
    assert not hide_results(with_steps(*[(1,)] * 20).view())
    assert not hide_results(History().view())


def test_the_placeholder_says_hidden_not_empty_and_how_to_read_it():
    text = hidden_text(17)
    assert "hidden" in text
    assert "not empty" in text
    assert "recall" in text
    assert "17" in text


def test_a_warm_cache_asks_for_a_saving_that_pays():
    assert not is_worth_a_cold_cache(12_499, 100_000)
    assert is_worth_a_cold_cache(12_500, 100_000)
    assert not is_worth_a_cold_cache(12_500, 1_000_000)
    assert is_worth_a_cold_cache(50_000, 1_000_000)


@given(st.lists(st.lists(st.integers(1, 400), min_size=1, max_size=4).map(tuple), max_size=14), st.integers(1, 3))
def test_hiding_keeps_every_call_with_its_result_and_every_message_in_place(sizes, rounds):
    history = with_steps(*sizes)
    before = [(type(message), message.seq) for message in history.view()]
    calls = [result.call_id for result in results(history)]
    for _round in range(rounds):
        hide(history)
    view = history.view()
    check_pairs(view)
    assert [(type(message), message.seq) for message in view] == before
    assert [result.call_id for result in results(history)] == calls
    hidden = [result for result in results(history) if is_hidden(result)]
    kept_groups = sizes[-PRESERVED_GROUPS:]
    assert len(hidden) <= len(calls) - sum(map(len, kept_groups))


def test_polish_i_results_are_hidden_where_all_calls_have_one_id():
    """seeds-001-002-004.md, polish i: what stands before the newest groups is old, whatever its id."""
    history = History()
    history.user("go on")
    for _ in range(8):
        _, old = history.step(words(200))
        for place in (-2, -1):
            entry = history.path[place]
            parts = (
                {"call_id": "same"}
                if isinstance(entry, ToolResultMessage)
                else {"parts": tuple(msgspec.structs.replace(part, id="same") for part in entry.parts)}
            )
            history.path[place] = msgspec.structs.replace(entry, **parts)
        assert old.call_id != "same"
    assert len(hide_results(history.view())) == 3


def with_texts(*texts: str) -> History:
    history = History()
    history.user("go on")
    for text in (*texts, *["x"] * PRESERVED_GROUPS):
        history.step(text)
    return history


def test_t5_a_placeholder_keeps_the_exact_names_of_what_it_hides():
    """truth.md T5: at 65k every round hid first, and the identifiers were gone from the view."""
    log = words(400) + "\nlistening on 127.0.0.1:23484\n" + words(2_000) + "\nERR_20941 in src/shop/price.py:14"
    history = with_texts(log)
    assert hide(history)
    text = text_of(results(history)[0].parts)
    for name in ("127.0.0.1:23484", "ERR_20941", "src/shop/price.py:14"):
        assert name in text
    assert not hide(history), "recognised with its names"


def test_t5_a_placeholder_has_ten_names_at_most_and_those_that_stood_last():
    history = with_texts(f"{words(400)}\n" + "\n".join(f"ERR_{20_000 + number} once more" for number in range(30)))
    assert hide(history)
    text = text_of(results(history)[0].parts)
    assert [number for number in range(30) if f"ERR_{20_000 + number}" in text] == list(range(20, 30))


@given(
    st.lists(
        st.lists(
            st.sampled_from(["ERR_20941", "127.0.0.1:80", "a/b.py", "`x y`", "E1234", "word", "word " * 60, "\n"])
            | st.from_regex(r"ERR_[0-9]{4}", fullmatch=True),
            max_size=40,
        ).map(" ".join),
        min_size=1,
        max_size=4,
    )
)
def test_t5_a_placeholder_is_always_the_same_recognised_and_shorter(texts):
    history = with_texts(*texts)
    view = history.view()
    edits = hide_results(view)
    assert edits == hide_results(view)
    by_seq = {message.seq: message for message in view}
    for edit in edits:
        assert saved_by(edit, by_seq[edit.target]) > 0
        assert edit.text.count("`") <= 2 * MAX_EXACT_NAMES
    if edits:
        hide(history)
        assert not hide(history)
        assert {result.seq for result in results(history) if is_hidden(result)} == {edit.target for edit in edits}


def failed(history: History, index: int) -> None:
    entry = results(history)[index]
    place = history.path.index(entry)
    history.path[place] = msgspec.structs.replace(entry, is_error=True)


@pytest.mark.parametrize("length", [0, 40, 4_000])
@pytest.mark.parametrize(
    "line",
    [
        "TimeoutError: the pool was not ready within 2711 ms",
        "error[E0382]: use of moved value: `pool` at src/pool.rs:43:12",
        "Zugriff verweigert",
    ],
)
def test_t5_what_a_hidden_result_failed_with_stays_in_view(length, line):
    """truth.md T5: errors were 0 % in view at 65k, with a summariser that repeats everything it sees."""
    history = with_texts(words(length) + f"\n{line}")
    failed(history, 0)
    hide(history)
    text = text_of(results(history)[0].parts)
    assert line in text
    assert is_hidden(results(history)[0]) or length < 4_000
    assert not hide(history)


def test_a_result_that_did_not_fail_or_was_stopped_has_no_error_in_its_placeholder():
    history = with_texts("TimeoutError: no answer\n" + words(400))
    hide(history)
    assert "It failed" not in text_of(results(history)[0].parts)
