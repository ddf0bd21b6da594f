"""Random histories with several compactions, edits, undos and branches: what must hold after every one of them."""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.measure.weight import estimate_message
from tenuto.compaction.plan.entries import starts_turn, visible_items
from tenuto.compaction.plan.plan import CompactionPlan, NothingToCompact, plan_compaction
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.view import SessionData
from tenuto.compaction.ways.rungs import propose_digest, propose_summary
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.entry import BranchEntry, ShellEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.session import Session
from tests.compaction.build import MODEL, SUMMARY, History, budget, gated, text, words
from tests.examples import few_examples
from tests.session.build import check_pairs

SIZES = st.one_of(st.integers(1, 3_000), st.integers(1, 3_000), st.integers(1, 20_000))
OPERATIONS = st.one_of(
    st.tuples(st.just("user"), SIZES),
    st.tuples(st.just("answer"), SIZES),
    st.tuples(st.just("developer"), st.integers(1, 200)),
    st.tuples(st.just("shell"), SIZES),
    st.tuples(st.just("step"), st.lists(st.integers(1, 12_000), min_size=1, max_size=4)),
    st.tuples(st.just("compact"), st.sampled_from([None, 1, 500, 3_000])),
)


def play(history: History, operation: str, value: object) -> None:
    if operation == "user":
        history.user(words(value))
    elif operation == "answer":
        history.answer(words(value))
    elif operation == "developer":
        history.developer(words(value))
    elif operation == "shell":
        history.add(ShellEntry(command="make", output=words(value)))
    else:
        history.step(*map(words, value), arguments=json.dumps({"path": "src/a.py"}))


def make_outcome(plan: CompactionPlan, number: int) -> CompactionOutcome:
    if number % 2:
        return propose_digest(plan, SessionData(), Prompts())
    return propose_summary(plan, SUMMARY, SessionData(), Prompts(), None)


def check_plan(history: History, plan: CompactionPlan) -> None:
    summarised = [entry.seq for entry in (*plan.history, *plan.turn_prefix)]
    kept = [entry.seq for entry in plan.kept]
    assert summarised + kept == sorted(summarised + kept)
    assert summarised
    if not kept:
        assert plan.cut > summarised[-1]
        return
    assert kept[0] == plan.cut
    assert not isinstance(plan.kept[0], ToolResultMessage | DeveloperMessage)
    calls = {call.id for entry in plan.kept if isinstance(entry, AssistantMessage) for call in entry.tool_calls}
    assert all(entry.call_id in calls for entry in plan.kept if isinstance(entry, ToolResultMessage))
    if plan.is_split_turn:
        assert not isinstance(plan.kept[0], UserMessage)
    else:
        view = {message.seq: message for message in history.view() if message.seq}
        items = visible_items(history.path, view, Meter())
        place = next(index for index, item in enumerate(items) if item.entry.seq == plan.cut)
        assert starts_turn(items, place) or not any(isinstance(item.entry, UserMessage) for item in items[:place])


def estimated(view: list[Message]) -> int:
    return sum(map(estimate_message, view))


@given(st.lists(OPERATIONS, min_size=8, max_size=60), st.sampled_from([16_000, 32_000, 100_000]))
def test_every_compaction_of_any_history_fits_its_target_and_pairs_every_call(operations, window):
    history = History()
    compactions = 0
    last_cut = 0
    for operation, value in [*operations, ("compact", None)]:
        if operation != "compact":
            play(history, operation, value)
            continue
        plan = history.plan(window, keep_tokens=value)
        if isinstance(plan, NothingToCompact):
            assert plan.reason
            continue
        check_plan(history, plan)
        assert plan.cut > last_cut, "the summarised part only ever grows"
        proposal, flaw = gated(make_outcome(plan, compactions), plan)
        if flaw:
            continue
        history.add(proposal.to_entry("manual"))
        compactions, last_cut = compactions + 1, plan.cut
        view = history.view()
        check_pairs(view)
        size = history.size()
        assert abs(size.tokens - proposal.tokens_after) <= 5, "what was proposed is what is sent"
        if plan.tokens_before > plan.budget.trigger:
            assert size.tokens <= plan.budget.trigger, "R-004: the next request is under the trigger"
        request = estimate_message(plan.turn_message) if plan.turn_message is not None else 0
        if plan.kept_tokens <= plan.allowance.tail_ceiling and request <= plan.allowance.user_messages:
            assert size.tokens <= plan.budget.target, "it fits wherever the tail alone can be made to fit"


@given(st.lists(OPERATIONS, min_size=5, max_size=40), st.sampled_from([16_000, 64_000]))
def test_a_plan_is_a_pure_function_of_its_history(operations, window):
    history = History()
    for operation, value in operations:
        if operation != "compact":
            play(history, operation, value)
    assert history.plan(window) == history.plan(window)
    meter = Meter()
    assert history.plan(window, meter=meter) == history.plan(window, meter=meter)


@given(st.lists(OPERATIONS, min_size=12, max_size=40))
def test_the_request_of_a_split_turn_is_in_the_view_exactly_once(operations):
    history = History()
    history.user("before")
    history.answer("ok")
    history.user("NONCE-REQUEST do it")
    for operation, value in operations:
        if operation in {"step", "developer"}:
            play(history, operation, value)
        elif operation == "compact":
            plan = history.plan(32_000, keep_tokens=value)
            if isinstance(plan, CompactionPlan):
                history.add(gated(make_outcome(plan, 0), plan)[0].to_entry("threshold"))
    requests = [m for m in history.view() if isinstance(m, UserMessage) and "NONCE-REQUEST" in str(m.parts)]
    assert len(requests) == 1
    systems = [m for m in history.view() if isinstance(m, SystemMessage)]
    assert all("<message>\nNONCE-REQUEST" not in message.text for message in systems)


def next_entry(source: random.Random, session: Session) -> list[object]:
    """Return what happens next in a session: usually a turn's part, sometimes something that changes the view."""
    number = itertools.count(len(list(session.path())))
    kind = source.random()
    seqs = [entry.seq for entry in session.path()]
    if kind < 0.3:
        return [UserMessage(parts=text(words(source.randrange(1, 900))))]
    if kind < 0.85:
        ids = [f"c{next(number)}-{n}" for n in range(source.randrange(1, 4))]
        calls = tuple(ToolCallPart(id=name, name="read") for name in ids)
        results = [
            ToolResultMessage(call_id=name, name="read", parts=text(words(source.randrange(1, 4_000)))) for name in ids
        ]
        usage = Usage(input=source.randrange(1, 9_000), output=5) if source.random() < 0.3 else None
        return [AssistantMessage(parts=calls, model=MODEL, usage=usage, estimate=3_000), *results]
    changes = [e.seq for e in session.path() if isinstance(e, CompactionEntry | ViewEditEntry | UndoEntry)]
    if kind < 0.93 and changes:
        return [UndoEntry(target=source.choice(changes))]
    return [BranchEntry(parent=source.choice(seqs))] if len(seqs) > 3 else []


@few_examples()
@given(st.integers(0, 2**32))
def test_r028_compact_reload_compact_reload_with_undos_and_branches(seed):
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        session = Session.create(Path(home), Path(home), durability="none")
        session.append(SystemMessage(text="You are an agent."))
        meter = Meter()
        for step in range(60):
            for entry in next_entry(source, session):
                session.append(entry)
                kept, fresh = meter.measure(session, MODEL), Meter().measure(session, MODEL)
                assert (kept.estimate, kept.estimated, kept.thinking) == (
                    fresh.estimate,
                    fresh.estimated,
                    fresh.thinking,
                )
                assert kept.tokens - kept.uncounted == fresh.tokens - fresh.uncounted, "kept sums are never stale"
            if step % 7 == 6:
                compact(session, source.choice([None, 400, 2_000]))
            if step % 20 == 19:
                view = session.get_llm_history()
                session.close()
                session = Session.open(session.directory, durability="none")
                assert session.get_llm_history() == view
            check_pairs(session.get_llm_history())
        session.close()


def compact(session: Session, keep_tokens: int | None) -> None:
    meter = Meter()
    path, view = session.path(), session.get_llm_history()
    size = meter.measure_view(view, path, model_id="")
    plan = plan_compaction(path, view, size=size, budget=budget(), meter=meter, model_id="", keep_tokens=keep_tokens)
    if isinstance(plan, NothingToCompact):
        return
    proposal, flaw = gated(propose_digest(plan, SessionData(), Prompts()), plan, model="")
    if not flaw:
        session.append(proposal.to_entry("threshold"))
        after = meter.measure(session, "")
        assert after.estimated
        assert after.tokens == proposal.tokens_after
