"""A plain sequence of messages becomes an outcome: common tail kept, the rest replaced (seed 004)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.errors import StrategyError
from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.strategy import Message, system
from tenuto.compaction.ways.validate import Standing, find_flaw, view_after, weigh
from tenuto.core.compacting.strategies import outcome_of
from tenuto.protocol.message import SystemMessage, ToolResultMessage, UserMessage
from tests.compaction.build import MODEL, History, budget, text, words
from tests.session.build import check_pairs


def history() -> History:
    made = History()
    for number in range(6):
        made.user(f"request {number}")
        made.step(words(300), words(200))
        made.answer(f"answer {number}")
    return made


def standing_of(made: History) -> Standing:
    return Standing(path=made.path, view=made.view(), size=made.size(), budget=budget(), meter=Meter(), model_id=MODEL)


def bare(messages):
    return [msgspec.structs.replace(message, seq=0, ts=0.0) for message in messages]


def test_the_view_as_it_is_is_no_change():
    standing = standing_of(history())
    assert outcome_of(standing.view, standing) is None
    assert outcome_of(standing.view[1:], standing) is None, "the system prompt may be left out: it always stays"


def test_the_longest_common_tail_stays_and_the_rest_is_replaced():
    standing = standing_of(history())
    note = UserMessage(parts=text("what happened before"))
    outcome = outcome_of([standing.view[0], note, *standing.view[-5:]], standing)
    assert outcome is not None
    assert outcome.first_kept_index == standing.view[-5].seq
    assert outcome.replacement == (note,)
    assert "what happened before" in outcome.summary
    assert find_flaw(weigh(outcome, standing), standing) == ""
    assert bare(view_after(outcome, standing)) == bare([standing.view[0], note, *standing.view[-5:]])


def test_a_tail_that_begins_within_a_step_begins_behind_it():
    standing = standing_of(history())
    view = list(standing.view)
    place = next(index for index in range(len(view) - 1, 0, -1) if isinstance(view[index], ToolResultMessage))
    first_result = place - 1
    view[first_result] = Message(role="tool", tool_call_id=view[first_result].call_id, content=[system("gone")])
    outcome = outcome_of(view, standing)
    assert outcome is not None
    assert outcome.first_kept_index == view[place + 1].seq
    assert find_flaw(weigh(outcome, standing), standing) == ""
    after = view_after(outcome, standing)
    check_pairs(after)
    assert bare(after) == bare(view)


def test_everything_may_be_replaced():
    standing = standing_of(history())
    outcome = outcome_of([SystemMessage(text="all of it")], standing)
    assert outcome is not None
    assert outcome.first_kept_index == standing.path[-1].seq + 1
    assert find_flaw(weigh(outcome, standing), standing) == ""
    assert [message.text for message in view_after(outcome, standing)[1:]] == ["all of it"]


def test_r048_a_result_without_its_call_is_refused():
    standing = standing_of(history())
    result = next(message for message in standing.view if isinstance(message, ToolResultMessage))
    outcome = outcome_of([result, *standing.view[-3:]], standing)
    assert outcome is not None
    assert "without its call" in find_flaw(weigh(outcome, standing), standing)


def test_another_order_of_events_is_refused():
    standing = standing_of(history())
    with pytest.raises(StrategyError, match="order"):
        outcome_of([*standing.view[-3:], *standing.view[1:4]], standing)


@given(st.data())
def test_whatever_is_dropped_or_replaced_the_view_that_follows_is_the_one_proposed_or_is_refused(data):
    standing = standing_of(history())
    proposed = []
    for message in standing.view[1:]:
        match data.draw(st.sampled_from(["keep", "keep", "keep", "drop", "replace"])):
            case "keep":
                proposed.append(message)
            case "replace" if isinstance(message, ToolResultMessage):
                proposed.append(Message(role="tool", tool_call_id=message.call_id, content="short"))
            case "replace":
                proposed.append(Message(role="user", content="short"))
    outcome = outcome_of(proposed, standing)
    if outcome is None or find_flaw(weigh(outcome, standing), standing):
        return
    after = view_after(outcome, standing)
    check_pairs(after)
    assert bare(after[1:]) == bare(proposed)
