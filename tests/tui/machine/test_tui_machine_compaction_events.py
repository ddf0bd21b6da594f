from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenuto.core.transcript import compaction_end
from tenuto.protocol.event import (
    AssistantTextDeltaEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionStartEvent,
    NoticeEvent,
    StepStartedEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import CompactionEntry
from tenuto.tui.state.effects import Bell, DraftSet, ItemRemoved, StatusChanged, TranscriptReset
from tenuto.tui.state.item import AssistantItem, CompactionItem, NoticeItem
from tests.tui.machine.driving import SESSION, Driver, finished, started, user

START = CompactionStartEvent(session_id=SESSION, reason="threshold")
END = CompactionEndEvent(session_id=SESSION, reason="threshold", aborted=True)
under = st.sampled_from(
    [
        (started(),),
        (started(), StepStartedEvent(session_id=SESSION, step=1)),
        (started(), AssistantTextDeltaEvent(session_id=SESSION, text="x")),
        (started(), ToolStartedEvent(session_id=SESSION, call_id="c", name="bash", arguments="{}")),
        (started("shell"),),
        (),
    ]
)


@given(under, st.floats(0, 50), st.integers(1, 3))
def test_the_end_of_a_compaction_shows_what_was_there(events, seconds, rounds):
    driver = Driver()
    driver.feed(*events)
    top = driver.state.spinner.top
    before = None if top is None else (top.kind, top.label, top.detail, top.since)
    for _ in range(rounds):
        driver.after(seconds).feed(START)
        assert driver.state.spinner.label == "Compacting"
        driver.feed(CompactionProgressEvent(session_id=SESSION, stage="summarising", summary_tokens=120))
        assert driver.state.spinner.top is not None
        assert driver.state.spinner.top.detail == "summarising, 120 tokens"
        driver.after(seconds).feed(END)
    top = driver.state.spinner.top
    assert before == (None if top is None else (top.kind, top.label, top.detail, top.since))


def test_what_happens_under_a_compaction_shows_after_it():
    driver = Driver()
    driver.feed(started("compaction", "k"), START, started("agent", "a"), StepStartedEvent(session_id=SESSION, step=1))
    assert driver.state.spinner.label == "Compacting"
    driver.feed(END)
    assert driver.state.spinner.label == "Waiting for the model"
    driver.feed(finished("agent", "a"), finished("compaction", "k"))
    assert driver.state.spinner.top is None


def test_one_block_stands_where_the_entry_is_in_the_log():
    driver = Driver()
    driver.feed(START, NoticeEvent(session_id=SESSION, text="the remote one failed", level="warning"))
    entry = CompactionEntry(summary="S", first_kept_index=4, duration=2.5, seq=12)
    driver.after(9).feed(CompactionEndEvent(session_id=SESSION, reason="threshold", entry=entry))
    notice, item = driver.items
    assert isinstance(notice, NoticeItem)
    assert isinstance(item, CompactionItem)
    assert (item.entry, item.running, item.final, item.seconds) == (entry, False, True, 2.5)


def test_a_failed_or_cancelled_compaction_says_so():
    driver = Driver()
    driver.feed(START)
    driver.after(3).feed(CompactionEndEvent(session_id=SESSION, reason="manual", error="too big"))
    failed = driver.last
    driver.feed(START, END)
    cancelled = driver.last
    assert isinstance(failed, CompactionItem) and isinstance(cancelled, CompactionItem)
    assert (failed.error, failed.aborted, failed.seconds) == ("too big", False, 3.0)
    assert (cancelled.error, cancelled.aborted) == ("", True)


def talked() -> Driver:
    """A transcript with a turn in it, and a task that runs."""
    driver = Driver()
    driver.feed(user(3, "hello"), started(), StepStartedEvent(session_id=SESSION, step=1))
    driver.feed(AssistantTextDeltaEvent(session_id=SESSION, text="so far"))
    return driver


ENTRY = CompactionEntry(
    seq=40, summary="## Goal\nS", first_kept_index=31, tokens_before=182_000, tokens_after=24_000, duration=4.0
)
ENDS = {
    "done": compaction_end(SESSION, ENTRY),
    "retried": CompactionEndEvent(session_id=SESSION, reason="overflow", will_retry=True, entry=ENTRY),
    "aborted": END,
    "failed": CompactionEndEvent(session_id=SESSION, reason="manual", error="nothing to compact: too short"),
}


@given(st.sampled_from(sorted(ENDS)), st.integers(0, 4))
def test_a_compaction_never_clears_the_screen(name, progress):
    """Seed 000: not the screen, not an item, not what is streaming, not the draft; one block is added."""
    driver = talked()
    driver.type("half a sen")
    before = [(item.id, type(item)) for item in driver.items]
    effects = driver.feed(START)
    for number in range(progress):
        effects += driver.feed(CompactionProgressEvent(session_id=SESSION, stage="summarising", summary_tokens=number))
    effects += driver.feed(ENDS[name])
    assert not [effect for effect in effects if isinstance(effect, TranscriptReset | ItemRemoved | DraftSet)]
    assert [(item.id, type(item)) for item in driver.items[: len(before)]] == before
    assert len(driver.items) == len(before) + 1
    assert driver.state.draft.text == "half a sen"
    driver.feed(AssistantTextDeltaEvent(session_id=SESSION, text=" and on"))
    assert any(isinstance(item, AssistantItem) and "so far" in item.text for item in driver.items)


def test_the_status_follows_the_stage_and_seconds_and_the_block_folds():
    driver = talked()
    driver.feed(START)
    item = driver.last
    assert isinstance(item, CompactionItem)
    assert (item.running, item.final, item.reason) == (True, False, "threshold")
    for stage, tokens in (("summarising", 0), ("summarising", 250), ("summarising the present turn", 40)):
        effects = driver.feed(CompactionProgressEvent(session_id=SESSION, stage=stage, summary_tokens=tokens))
        assert StatusChanged() in effects
        assert (item.stage, item.summary_tokens) == (stage, tokens)
        assert driver.state.spinner.label == "Compacting"
    driver.after(4).feed(ENDS["done"])
    assert driver.state.spinner.label != "Compacting"
    assert (item.running, item.final, item.folded, item.entry, item.seconds) == (False, True, True, ENTRY, 4.0)


def test_an_end_without_a_start_is_shown_all_the_same():
    """A resumed transcript has only the ends."""
    driver = Driver()
    driver.feed(ENDS["done"])
    item = driver.last
    assert isinstance(item, CompactionItem)
    assert item.entry == ENTRY
    assert driver.state.spinner.top is None


def test_a_compaction_that_failed_calls_the_user_and_one_that_was_stopped_does_not():
    def bells(**fields):
        driver = Driver()
        driver.feed(started("compaction", "k"), START)
        end = CompactionEndEvent(session_id=SESSION, reason="threshold", **fields)
        return [each for each in driver.feed(end) if isinstance(each, Bell)]

    assert bells(error="the model refused") == [Bell("compaction")]
    assert bells(error="stopped", aborted=True) == []
    assert bells(error="nothing to do", needless=True) == []
    assert bells(entry=ENTRY) == []
