"""What the transcript says of a compaction that helped too little, or failed (R-004, R-012)."""

from __future__ import annotations

from tenuto.core.transcript import compaction_end
from tenuto.protocol.event import (
    AnyEvent,
    CompactionEndEvent,
    CompactionStartEvent,
    SessionOpenedEvent,
    TaskFinishedEvent,
    TaskStartedEvent,
)
from tenuto.protocol.message import CompactionEntry
from tenuto.tui.machine.step import step
from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.state import UiState


def shown(*events: AnyEvent) -> str:
    """Return the transcript as text after these events."""
    state = UiState()
    opened = SessionOpenedEvent(session_id="s", cwd="/project", model="p/m", mode="ask")
    for number, event in enumerate((opened, *events)):
        step(state, event, float(number), 160)
    options = RenderOptions(now=100.0)
    lines = [line for item in state.transcript.items.values() for line in render_item(item, 160, options)]
    return "\n".join("".join(text for text, _style in line.spans) for line in lines)


def ended(tokens_after: int) -> list[AnyEvent]:
    entry = CompactionEntry(
        seq=9,
        summary="notes",
        first_kept_index=5,
        tokens_before=30_000,
        tokens_after=tokens_after,
        trigger=16_000,
        reason="threshold",
        rung="digest",
    )
    return [CompactionStartEvent(session_id="s", reason="threshold"), compaction_end("s", entry)]


def test_r004_what_is_under_the_trigger_is_shown_as_compacted():
    text = shown(*ended(9_000))
    assert "Compacted" in text
    assert "over" not in text


def test_r004_what_is_still_over_the_trigger_is_not_shown_as_compacted():
    text = shown(*ended(17_000))
    assert "Compacted" not in text
    assert "still over its limit of 16,000 tokens" in text


def test_r012_a_failed_compaction_is_shown_once():
    reason = "the conversation could not be made smaller: nobody knows why"
    text = shown(
        TaskStartedEvent(session_id="s", submission_id="a", kind="compaction"),
        CompactionStartEvent(session_id="s", submission_id="a", reason="threshold"),
        CompactionEndEvent(session_id="s", submission_id="a", reason="threshold", error=reason),
        TaskFinishedEvent(session_id="s", submission_id="a", kind="compaction", outcome="failed", error=reason),
    )
    assert text.count("nobody knows why") == 1
