from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
from tenuto.tui.machine.item import CompactionItem, NoticeItem
from tests.tui.machine.driving import SESSION, Driver, finished, started

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
