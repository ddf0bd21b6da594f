"""What strategies of others return is read once as the log would read it, and refused by name.

Findings F4 and F5 of seeds-001-002-004.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.strategy import Message, system
from tenuto.compaction.ways.strategies import convert_output
from tenuto.compaction.ways.validate import Proposal, evaluate, find_flaw, view_after
from tenuto.core.compacting.strategies import outcome_of
from tenuto.protocol.compaction import CompactionOutcome, RungError, StrategyError
from tenuto.protocol.entry import PinEntry, ViewEdit
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionDetails,
    ProviderItems,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.view.projection import project
from tests.compaction.build import MODEL, text
from tests.compaction.test_sequence import current_of, history
from tests.session.build import check_pairs

STANDING = current_of(history())
VIEW = STANDING.view
LEAF = STANDING.path[-1].seq
RESULT = next(message.seq for message in VIEW if isinstance(message, ToolResultMessage))
PROMPT = next(message.seq for message in VIEW if isinstance(message, UserMessage))
LAST_PROMPT = [message.seq for message in VIEW if isinstance(message, UserMessage)][-1]
NOTES = SystemMessage(text="notes on everything")


def take(output: object) -> Proposal | None:
    """Return what would be written of an output, as the compaction does it. Raises `RungError`."""
    read = convert_output(output, VIEW)
    outcome = read if read is None or isinstance(read, CompactionOutcome) else outcome_of(read, STANDING)
    if outcome is None:
        return None
    proposal = evaluate(outcome, STANDING)
    flaw = find_flaw(proposal, STANDING)
    if flaw:
        raise RungError(flaw)
    return proposal


def outcome(**values) -> CompactionOutcome:
    return CompactionOutcome(**{"replacement": (NOTES,), "first_kept_index": LAST_PROMPT, **values})


class Strange:
    """An object that no log can hold."""


class OwnOutcome(CompactionOutcome, frozen=True, kw_only=True):
    more: int = 0


def cyclic() -> list:
    made: list = []
    made.append(made)
    return made


CALL = AssistantMessage(parts=(ToolCallPart(id="c1", name="bash", arguments="{}"),))
RIGHT = {
    "nothing": None,
    "the view as it is": list(VIEW),
    "notes and the last turn": [NOTES, *VIEW[-5:]],
    "a tuple": (NOTES, *VIEW[-5:]),
    "notes of everything": [Message(role="user", content="notes")],
    "system helper": [Message(role="user", content=[system("notes")])],
    "an outcome": outcome(),
    "an outcome behind everything": outcome(first_kept_index=LEAF + 1),
    "an outcome with all": outcome(
        summary="notes", details=CompactionDetails(extension={"a": [1, None]}), usage=Usage(input=1), notes=("a", "b")
    ),
    "a replacement as a list": outcome(replacement=[NOTES]),
    "a class of one's own": OwnOutcome(replacement=(NOTES,), first_kept_index=LAST_PROMPT, more=1),
    "edits alone": CompactionOutcome(edits=(ViewEdit(target=RESULT, kind="hidden", text="gone"),)),
    "a message with a seq": outcome(replacement=(SystemMessage(text="notes", seq=3),)),
    "a call with its result": outcome(
        replacement=(NOTES, CALL, Message(role="tool", tool_call_id="c1", content="done"))
    ),
}
WRONG = {
    "a text": ("a text", "returned str"),
    "bytes": (b"a", "returned bytes"),
    "a number": (3, "returned int"),
    "a dict": ({"messages": []}, "returned dict"),
    "a generator": ((message for message in VIEW), "returned generator"),
    "a class": (CompactionOutcome, "returned"),
    "an object": (Strange(), "returned Strange"),
    "numbers": ([1, 2], "not int"),
    "texts": (["a"], "not str"),
    "dicts": ([{"role": "user", "content": "x"}], "not dict"),
    "nothing in a list": ([None], "not NoneType"),
    "an empty list": ([], "nothing would stand"),
    "an outcome in a list": ([outcome()], "not CompactionOutcome"),
    "a message without parts": ([UserMessage(parts=None), *VIEW[-5:]], "place 0"),
    "a message of numbers": ([Message(role="user", content=[1]), *VIEW[-5:]], "place 0"),
    "a system text that is none": ([SystemMessage(text=7), *VIEW[-5:]], "place 0"),
    "half of a surrogate": ([SystemMessage(text="\ud800"), *VIEW[-5:]], "place 0"),
    "a longer view": ([*VIEW, Message(role="user", content="more")], "smaller"),
    "another order": ([*VIEW[-2:], *VIEW[1:3]], "order"),
    "a result alone": ([Message(role="tool", tool_call_id="gone", content="x"), *VIEW[-5:]], "without its call"),
    "a call alone": ([CALL, *VIEW[-5:]], "without its result"),
    "an empty text for everything": ([SystemMessage(text=" ")], "nothing would stand"),
    "an empty prompt for everything": ([Message(role="user", content="")], "nothing would stand"),
    "an index far behind the end": (outcome(first_kept_index=999_999), "999999 is not a place"),
    "an index two behind the end": (outcome(first_kept_index=LEAF + 2), "is not a place"),
    "a negative index": (outcome(first_kept_index=-1), "is not a place"),
    "an index of a result": (outcome(first_kept_index=RESULT), "is not a place"),
    "an index as text": (outcome(first_kept_index="7"), "first_kept_index has to be the `seq`"),
    "an index as a fraction": (outcome(first_kept_index=7.5), "first_kept_index"),
    "an index as a truth": (outcome(first_kept_index=True), "first_kept_index"),
    "an index that is nothing": (outcome(first_kept_index=None), "first_kept_index"),
    "a huge index": (outcome(first_kept_index=10**30), "is not a place"),
    "a replacement of dicts": (outcome(replacement=({"role": "user"},)), r"replacement has to be .*Message\(role="),
    "a replacement of texts": (outcome(replacement=("notes",)), "replacement"),
    "a replacement that is a text": (outcome(replacement="notes"), "replacement"),
    "a replacement that is nothing": (outcome(replacement=None), "replacement"),
    "a replacement of entries": (outcome(replacement=(PinEntry(text="x"),)), "replacement"),
    "an empty replacement": (outcome(replacement=()), "nothing would stand"),
    "a replacement without words": (outcome(replacement=(SystemMessage(text="\n"),)), "nothing would stand"),
    "a summary that is nothing": (outcome(summary=None), "summary has to be a text"),
    "a summary in bytes": (outcome(summary=Strange()), "summary"),
    "notes that are none": (outcome(notes=(1, None)), "notes has to be a tuple of texts"),
    "notes that are a text": (outcome(notes="a"), "notes"),
    "details that are an object": (outcome(details=object()), "details has to be"),
    "details with an object": (outcome(details=CompactionDetails(extension={"a": Strange()})), "details"),
    "details in a circle": (outcome(details=CompactionDetails(extension={"a": cyclic()})), "details"),
    "usage as a number": (outcome(usage=5), "usage"),
    "usage of texts": (outcome(usage=Usage(input="many")), "usage"),
    "a rung that is nothing": (outcome(rung=None), "rung"),
    "items that are no JSON": (
        outcome(provider_items=ProviderItems(provider="p", model="m", items=(msgspec.Raw(b"{"),))),
        "provider_items",
    ),
    "edits that are none": (CompactionOutcome(edits=("a",)), "edits"),
    "an edit of another kind": (CompactionOutcome(edits=(ViewEdit(target=RESULT, kind="burnt"),)), "edits"),
    "an edit of no entry": (CompactionOutcome(edits=(ViewEdit(target=0, kind="omitted"),)), "names no entry"),
    "an edit that omits a prompt": (CompactionOutcome(edits=(ViewEdit(target=PROMPT, kind="omitted"),)), "words"),
    "an edit that shortens a prompt": (
        CompactionOutcome(edits=(ViewEdit(target=PROMPT, kind="truncated", text="…"),)),
        "words of entry",
    ),
    "no change": (CompactionOutcome(), "changes nothing"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_f5_what_has_the_right_shape_is_taken(name):
    proposal = take(RIGHT[name])
    assert (proposal is None) is (name in {"nothing", "the view as it is"})
    if proposal is not None:
        check_pairs(view_after(proposal.outcome, STANDING))
        assert all(message.seq == 0 for message in proposal.outcome.replacement)
        entry = proposal.to_entry("manual")
        assert msgspec.json.decode(msgspec.json.encode(entry), type=type(entry)) == entry, "the log can hold it"


@pytest.mark.parametrize("name", WRONG)
def test_f4_f5_what_has_another_shape_is_refused_by_name(name):
    output, words = WRONG[name]
    with pytest.raises(RungError, match=words):
        take(output)


def test_what_somebody_else_keeps_hold_of_is_copied():
    mine = {"a": [1]}
    taken = convert_output(outcome(details=CompactionDetails(extension=mine)), VIEW)
    mine["a"].append(2)
    assert taken.details.extension == {"a": [1]}


def test_an_unknown_role_is_refused():
    with pytest.raises(StrategyError, match="roles are"):
        Message(role="robot", content="x")


ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.just(Strange()), st.just(NOTES)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner), st.dictionaries(st.text(), inner, max_size=2)
    ),
    max_leaves=6,
)
SEQS = st.one_of(st.integers(-2, LEAF + 4), st.sampled_from([message.seq for message in VIEW if message.seq]))
REPLACED = st.lists(st.sampled_from([NOTES, *VIEW[1:], CALL, SystemMessage(text="")]), max_size=3).map(tuple)
EDITS = st.lists(
    st.builds(
        ViewEdit,
        target=SEQS,
        kind=st.sampled_from(["hidden", "truncated", "omitted", "burnt"]),
        text=st.text(max_size=5),
        keep_head=st.integers(-5, 50),
        keep_tail=st.integers(-5, 50),
    ),
    max_size=3,
).map(tuple)
OUTCOMES = st.builds(
    CompactionOutcome,
    replacement=st.one_of(REPLACED, REPLACED, ANYTHING),
    first_kept_index=st.one_of(SEQS, SEQS, SEQS, ANYTHING),
    edits=st.one_of(st.just(()), EDITS, ANYTHING),
    summary=st.one_of(st.text(), st.text(), ANYTHING),
    details=st.one_of(st.none(), st.none(), ANYTHING),
    usage=st.one_of(st.none(), st.none(), ANYTHING),
    notes=st.one_of(st.just(()), st.just(()), ANYTHING),
)


@given(st.one_of(OUTCOMES, OUTCOMES, ANYTHING))
def test_f4_f5_whatever_a_strategy_returns_it_is_refused_or_what_is_said_later_reaches_the_model(output):
    try:
        proposal = take(output)
    except RungError as error:
        assert str(error).strip()
        assert "\n" not in str(error)
        return
    if proposal is None:
        return
    entry = msgspec.structs.replace(proposal.to_entry("manual"), seq=LEAF + 1)
    path = [*STANDING.path]
    if proposal.outcome.first_kept_index:
        path.append(entry)
    later = [UserMessage(parts=text(f"said later {n}"), seq=LEAF + 2 + n) for n in range(2)]
    view = project([*path, *later], MODEL)
    check_pairs(view)
    assert view[-2:] == later, "every later prompt is sent"
    kept = [message for message in VIEW if isinstance(message, UserMessage) and message.seq >= entry.first_kept_index]
    assert all(message in view for message in kept), "no prompt that stays has lost its words"
    assert all(isinstance(part, TextPart) for message in kept for part in message.parts)
