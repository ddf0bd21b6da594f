"""Compactions as an editor shows them: an entity of the timeline with the summary that is kept.

`compaction_update` and `compaction_summary_chunk` are part of the protocol since 2026-10-09 and not yet of the package,
so their shapes stand here. They go only to clients that ask for them (`clientCapabilities.session.compaction`); others
get a line of text. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast

import msgspec

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol.event import CompactionEndEvent
from tenuto.text.bounding import cut_head

CHUNK_CHARS = 2_000
"""Characters of one chunk of a summary, about; it ends with a line where it can."""
Status = Literal["in_progress", "completed", "failed", "cancelled"]


class TextBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A text, as all content of the protocol is written."""

    text: str
    type: Literal["text"] = "text"


class CompactionUpdate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A compaction begins or has ended; the first of an id fixes its place among everything else."""

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


def begin(compaction_id: str) -> CompactionUpdate:
    """Return what says that a compaction begins."""
    return CompactionUpdate(session_update="compaction_update", compaction_id=compaction_id, status="in_progress")


def finish(event: CompactionEndEvent, compaction_id: str, *, is_open: bool) -> list[CompactionMessage]:
    """Return what says how a compaction ended: its summary in chunks where it `is_open`, else as a whole."""
    summary = sanitize_for_terminal(event.entry.summary).strip() if event.entry is not None else ""
    status = status_of(event)
    chunks: list[CompactionMessage] = []
    if is_open and status == "completed":
        chunks = [
            CompactionSummaryChunk(
                session_update="compaction_summary_chunk", compaction_id=compaction_id, content=TextBlock(text=text)
            )
            for text in split_summary(summary)
        ]
    return [
        *chunks,
        CompactionUpdate(
            session_update="compaction_update",
            compaction_id=compaction_id,
            status=status,
            summary=(TextBlock(text=summary),) if summary and not is_open and status == "completed" else None,
            error=(event.error or "it came to nothing") if status == "failed" else None,
        ),
    ]


def status_of(event: CompactionEndEvent) -> Status:
    """Return how it ended, in the protocol's words."""
    if event.entry is not None:
        return "completed"
    return "cancelled" if event.aborted else "failed"


def split_summary(text: str) -> Iterator[str]:
    """Yield a summary in pieces; together they are the whole, character for character."""
    while text:
        piece = cut_head(text, CHUNK_CHARS) or text[:1]
        end = piece.rfind("\n") + 1
        if len(piece) < len(text) and end:
            piece = piece[:end]
        yield piece
        text = text[len(piece) :]
