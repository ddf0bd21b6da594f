"""From entries to the events that they stand for, so that a resumed transcript is the live one (DESIGN section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tenuto.protocol.entry import BranchSummaryEntry, NoticeEntry, ShellEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    CompactionEndEvent,
    NoticeEvent,
    ShellFinishedEvent,
    ToolResultEvent,
    ToolStartedEvent,
    UndoneEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    HistoryEvent,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ToolCallPart
from tenuto.session.view_edits import compaction_of_edits


def replay(session_id: str, entries: Iterable[HistoryEvent]) -> Iterator[AnyEvent]:
    """Yield what the front-ends would have been told when these entries were made; deltas are left out."""
    for entry in entries:
        match entry:
            case UserMessage():
                yield UserMessageEvent(
                    session_id=session_id,
                    seq=entry.seq,
                    parts=entry.parts,
                    origin=entry.origin,
                    from_queued=entry.from_queued,
                )
            case AssistantMessage():
                yield AssistantMessageEvent(session_id=session_id, message=entry)
                yield from _started_calls(session_id, entry)
            case ToolResultMessage():
                yield ToolResultEvent(session_id=session_id, message=entry)
            case ShellEntry():
                yield ShellFinishedEvent(session_id=session_id, entry=entry)
            case NoticeEntry():
                yield NoticeEvent(session_id=session_id, text=entry.text, level=entry.level, kind=entry.kind)
            case CompactionEntry():
                yield compaction_end(session_id, entry, will_retry=entry.reason == "overflow")
            case ViewEditEntry() if entry.rung:
                yield compaction_end(session_id, compaction_of_edits(entry), will_retry=entry.reason == "overflow")
            case UndoEntry():
                yield UndoneEvent(session_id=session_id, seq=entry.seq, target=entry.target)
            case BranchSummaryEntry():
                yield compaction_end(session_id, compaction_of_branch(entry))
            case _:
                continue


def compaction_end(
    session_id: str, entry: CompactionEntry, submission_id: str = "", *, will_retry: bool = False
) -> CompactionEndEvent:
    """Return the event of a compaction that is on disk. One that leaves too much has an `error` as well (R-004)."""
    return CompactionEndEvent(
        session_id=session_id,
        submission_id=submission_id,
        reason=entry.reason,
        tokens_before=entry.tokens_before,
        tokens_after=entry.tokens_after,
        kept_from_index=entry.first_kept_index,
        will_retry=will_retry,
        entry=entry,
        error=_still_over(entry),
    )


def compaction_of_branch(entry: BranchSummaryEntry) -> CompactionEntry:
    """Return notes on a part that was left in the form in which all compactions are shown."""
    return CompactionEntry(
        seq=entry.seq,
        ts=entry.ts,
        summary=entry.summary,
        reason="branch",
        rung="branch",
        usage=entry.usage,
        from_extension=entry.from_extension,
    )


def _still_over(entry: CompactionEntry) -> str | None:
    before, after, trigger = entry.tokens_before, entry.tokens_after, entry.trigger
    if before is None or after is None or not trigger or after <= trigger:
        return None
    return f"the context is smaller ({before:,} → {after:,} tokens) but still over its limit of {trigger:,} tokens"


def _started_calls(session_id: str, message: AssistantMessage) -> Iterator[ToolStartedEvent]:
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            yield ToolStartedEvent(session_id=session_id, call_id=part.id, name=part.name, arguments=part.arguments)
