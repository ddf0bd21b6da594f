"""Compactions as an editor shows them: an entity of the timeline with the summary that is kept.

`compaction_update` and `compaction_summary_chunk` are part of the protocol since 2026-10-09 and not yet of the package,
so their shapes stand here. They go only to clients that ask for them (`clientCapabilities.session.compaction`); others
get a line of text. Pure.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol.event import CompactionEndEvent

Status = Literal["in_progress", "completed", "failed", "cancelled"]


class TextBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A text, as all content of the protocol is written."""

    text: str
    type: Literal["text"] = "text"


class CompactionUpdate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A compaction begins or has ended; the first of an id fixes its place among everything else.

    `summary` replaces what there was of it, and nothing in it takes that back; only what is completed has one.
    """

    session_update: Literal["compaction_update"]
    compaction_id: str
    status: Status
    summary: tuple[TextBlock, ...] | None = None
    error: str | None = None


class CompactionSummaryChunk(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """More of the summary of a compaction that is in progress."""

    session_update: Literal["compaction_summary_chunk"]
    compaction_id: str
    content: TextBlock


CompactionMessage = CompactionUpdate | CompactionSummaryChunk


def wants_compactions(initialize: object) -> bool:
    """Say whether the parameters of `initialize` ask for compactions; the package drops what it does not know."""
    value: Any = initialize
    for name in ("clientCapabilities", "session", "compaction"):
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return isinstance(value, dict)


def begin(compaction_id: str, *, anew: bool = False) -> CompactionUpdate:
    """Return what says that a compaction begins; `anew` takes back what was shown of its summary."""
    return CompactionUpdate(
        session_update="compaction_update",
        compaction_id=compaction_id,
        status="in_progress",
        summary=() if anew else None,
    )


def summary_chunk(compaction_id: str, text: str) -> CompactionSummaryChunk:
    """Return what adds a text to the summary of a compaction that is in progress."""
    return CompactionSummaryChunk(
        session_update="compaction_summary_chunk", compaction_id=compaction_id, content=TextBlock(text=text)
    )


def finish(event: CompactionEndEvent, compaction_id: str, shown: str | None) -> list[CompactionMessage]:
    """Return what says how a compaction ended, and make the client's summary the one that is kept.

    `shown` is what it has of the summary so far; `None`: it was not told that the compaction began.
    """
    status = status_of(event)
    kept = sanitize_for_terminal(event.entry.summary).strip() if event.entry is not None else ""
    chunks: list[CompactionMessage] = []
    if shown == "" and kept:
        chunks, shown = [summary_chunk(compaction_id, kept)], kept
    summary = (TextBlock(text=kept),) if kept else ()
    return [
        *chunks,
        CompactionUpdate(
            session_update="compaction_update",
            compaction_id=compaction_id,
            status=status,
            summary=None if kept == (shown or "") else summary,
            error=(event.error or "it came to nothing") if status == "failed" else None,
        ),
    ]


def status_of(event: CompactionEndEvent) -> Status:
    """Return how it ended, in the protocol's words."""
    if event.entry is not None:
        return "completed"
    return "cancelled" if event.aborted else "failed"
