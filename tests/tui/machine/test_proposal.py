"""A proposed compaction on the screen: shown unfolded, asked about, and never in the way of who is typing."""

from __future__ import annotations

from tenuto.command.outcome import Edit, ShowContext
from tenuto.protocol.event import (
    CompactionEndEvent,
    CompactionProposedEvent,
    CompactionStartEvent,
    SessionOpenedEvent,
)
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.usage import ContextPart, ContextReport
from tenuto.tui.render.items import render_item
from tenuto.tui.state.effects import DraftSet, RunCommand
from tenuto.tui.state.intents import Escape, PickChoice, Tick
from tenuto.tui.state.item import CompactionItem, ContextItem
from tests.tui.machine.driving import SESSION, Driver, finished, started

ENTRY = CompactionEntry(
    summary="## Goal\nmend it", first_kept_index=41, tokens_before=30_000, tokens_after=8_000, rung="same prefix"
)
START = CompactionStartEvent(session_id=SESSION, reason="manual")
PROPOSED = CompactionProposedEvent(session_id=SESSION, entry=ENTRY, kept_tokens=5_000, summary=ENTRY.summary)


def proposed(draft: str = "") -> Driver:
    driver = Driver()
    driver.feed(started("compaction", "k"), START)
    if draft:
        driver.type(draft)
    driver.feed(PROPOSED, finished("compaction", "k"))
    return driver


def text_of(driver: Driver) -> str:
    return "\n".join("".join(text for text, _ in line.spans) for line in render_item(driver.last, 100))


def test_it_is_shown_whole_and_asked_about():
    driver = proposed()
    assert driver.state.spinner.top is None
    shown = text_of(driver)
    for text in (
        "nothing is written yet",
        "30k → ~8k tokens",
        "summarised in place",
        "mend it",
        "#41",
        "/compact accept",
    ):
        assert text in shown
    picker = driver.state.picker
    assert picker is not None
    assert [choice.value for choice in picker.choices] == ["accept", "edit", "drop"]
    assert driver.feed(PickChoice(0))[-1] == RunCommand("/compact accept")


def test_who_is_typing_is_not_interrupted_and_esc_leaves_it_waiting():
    driver = proposed("half a sentence")
    driver.after(5).feed(Tick())
    assert driver.state.picker is None and not driver.state.animating, "nothing has to be looked at until then"
    driver.type("")
    assert driver.state.picker is None and driver.state.animating
    driver.after(0.4).feed(Tick())
    assert driver.state.picker is not None and driver.state.held_picker is None
    driver = proposed()
    driver.feed(Escape())
    assert driver.state.picker is None
    assert "nothing is written yet" in text_of(driver)


def test_accepted_it_becomes_the_one_block_and_dropped_it_says_so():
    driver = proposed()
    written = CompactionEndEvent(session_id=SESSION, reason="manual", entry=ENTRY)
    driver.feed(PickChoice(0), written)
    (item,) = driver.items
    assert isinstance(item, CompactionItem)
    assert (item.final, item.proposed, item.folded) == (True, False, True)
    assert "nothing is written yet" not in text_of(driver)
    driver = proposed()
    driver.feed(CompactionEndEvent(session_id=SESSION, reason="manual", aborted=True))
    assert "nothing changed" in text_of(driver)


def test_the_question_goes_when_it_was_answered_elsewhere():
    for draft in ("", "half a sentence"):
        driver = proposed(draft)
        driver.feed(CompactionEndEvent(session_id=SESSION, reason="manual", aborted=True))
        driver.type("")
        driver.after(1).feed(Tick())
        assert driver.state.picker is None


def test_without_a_summary_nothing_can_be_edited():
    driver = Driver()
    entry = CompactionEntry(tokens_before=30_000, tokens_after=20_000, rung="hide")
    driver.feed(START, CompactionProposedEvent(session_id=SESSION, entry=entry))
    assert driver.state.picker is not None
    assert [choice.value for choice in driver.state.picker.choices] == ["accept", "drop"]


def test_another_session_takes_the_question_away():
    driver = proposed()
    driver.feed(SessionOpenedEvent(session_id="other", cwd="/x", model="offline/rules", mode="ask"))
    assert driver.state.picker is None


def test_a_text_that_a_command_offers_goes_into_the_editor_and_the_draft_into_the_history():
    driver = Driver()
    driver.type("a draft")
    assert DraftSet("/compact accept\nlong", 20) in driver.feed(Edit("/compact accept\nlong"))
    assert driver.state.draft.text == "/compact accept\nlong"
    assert driver.state.history.prompts[-1] == "a draft"


def test_the_picture_of_the_window_is_an_item_of_its_own_as_wide_as_the_screen():
    driver = Driver()
    report = ContextReport(
        parts=(ContextPart(name="system", tokens=500), ContextPart(name="results", tokens=9_500)),
        tokens=10_000, estimated=False, window=40_000, known=True, trigger=30_000, free=20_000, reserve=10_000,
    )  # fmt: skip
    driver.feed(ShowContext(report))
    assert isinstance(driver.last, ContextItem)
    for width in (40, 80, 200):
        lines = render_item(driver.last, width)
        assert all(line.width <= width for line in lines)
    assert "▲" in text_of(driver) and "tool results" in text_of(driver) and "9,500" in text_of(driver)
    styles = {style for line in render_item(driver.last, 80) for _, style in line.spans}
    assert {"context.system", "context.results", "context.free", "context.reserve", "context.trigger"} <= styles
