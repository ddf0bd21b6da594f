"""Rung 1: which results become placeholders (seed 004, section 3)."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.compaction.hiding import PRESERVED_GROUPS, hidden_text, hide_results, is_worth_a_cold_cache
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
    assert [text_of(result.parts) == hidden_text(result.seq) for result in shown] == [True] * 3 + [False] * 5


def test_parallel_calls_are_one_group_and_are_hidden_or_kept_as_a_whole():
    history = with_steps((200, 200, 200), (200, 200), *[(200,)] * 4)
    assert hide(history)
    assert [text_of(result.parts) == hidden_text(result.seq) for result in results(history)] == [True] * 3 + [False] * 6


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


@settings(max_examples=80)
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
    hidden = [result for result in results(history) if text_of(result.parts) == hidden_text(result.seq)]
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
