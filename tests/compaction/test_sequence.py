"""A plain sequence of messages becomes an outcome: common tail kept, the rest replaced (seed 004)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.strategy import Message, system
from tenuto.compaction.ways.validate import CurrentContext, evaluate, find_flaw, view_after
from tenuto.core.compacting.strategies import outcome_of
from tenuto.protocol.compaction import StrategyError
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


def current_of(made: History) -> CurrentContext:
    return CurrentContext(
        path=made.path, view=made.view(), size=made.size(), budget=budget(), meter=Meter(), model_id=MODEL
    )


def bare(messages):
    return [msgspec.structs.replace(message, seq=0, ts=0.0) for message in messages]


def test_the_view_as_it_is_is_no_change():
    current = current_of(history())
    assert outcome_of(current.view, current) is None
    assert outcome_of(current.view[1:], current) is None, "the system prompt may be left out: it always stays"


def test_the_longest_common_tail_stays_and_the_rest_is_replaced():
    current = current_of(history())
    note = UserMessage(parts=text("what happened before"))
    outcome = outcome_of([current.view[0], note, *current.view[-5:]], current)
    assert outcome is not None
    assert outcome.first_kept_index == current.view[-5].seq
    assert outcome.replacement == (note,)
    assert "what happened before" in outcome.summary
    assert find_flaw(evaluate(outcome, current), current) == ""
    assert bare(view_after(outcome, current)) == bare([current.view[0], note, *current.view[-5:]])


def test_a_tail_that_begins_within_a_step_begins_behind_it():
    current = current_of(history())
    view = list(current.view)
    place = next(index for index in range(len(view) - 1, 0, -1) if isinstance(view[index], ToolResultMessage))
    first_result = place - 1
    view[first_result] = Message(role="tool", tool_call_id=view[first_result].call_id, content=[system("gone")])
    outcome = outcome_of(view, current)
    assert outcome is not None
    assert outcome.first_kept_index == view[place + 1].seq
    assert find_flaw(evaluate(outcome, current), current) == ""
    after = view_after(outcome, current)
    check_pairs(after)
    assert bare(after) == bare(view)


def test_everything_may_be_replaced():
    current = current_of(history())
    outcome = outcome_of([SystemMessage(text="all of it")], current)
    assert outcome is not None
    assert outcome.first_kept_index == current.path[-1].seq + 1
    assert find_flaw(evaluate(outcome, current), current) == ""
    assert [message.text for message in view_after(outcome, current)[1:]] == ["all of it"]


def test_r048_a_result_without_its_call_is_refused():
    current = current_of(history())
    result = next(message for message in current.view if isinstance(message, ToolResultMessage))
    outcome = outcome_of([result, *current.view[-3:]], current)
    assert outcome is not None
    assert "without its call" in find_flaw(evaluate(outcome, current), current)


def test_another_order_of_events_is_refused():
    current = current_of(history())
    with pytest.raises(StrategyError, match="order"):
        outcome_of([*current.view[-3:], *current.view[1:4]], current)


@given(st.data())
def test_whatever_is_dropped_or_replaced_the_view_that_follows_is_the_one_proposed_or_is_refused(data):
    current = current_of(history())
    proposed = []
    for message in current.view[1:]:
        match data.draw(st.sampled_from(["keep", "keep", "keep", "drop", "replace"])):
            case "keep":
                proposed.append(message)
            case "replace" if isinstance(message, ToolResultMessage):
                proposed.append(Message(role="tool", tool_call_id=message.call_id, content="short"))
            case "replace":
                proposed.append(Message(role="user", content="short"))
    outcome = outcome_of(proposed, current)
    if outcome is None or find_flaw(evaluate(outcome, current), current):
        return
    after = view_after(outcome, current)
    check_pairs(after)
    assert bare(after[1:]) == bare(proposed)
