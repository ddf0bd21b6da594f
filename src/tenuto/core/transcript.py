"""The transcript: entries as the events that they stand for, and searching entries that no screen has loaded.

A resumed transcript is the live one (DESIGN section 2). A search goes by the log's bytes; only entries that may have
the words are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, NoticeEntry, ShellEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    ChildTranscriptEvent,
    CompactionEndEvent,
    EarlierEntriesEvent,
    EarlierFoundEvent,
    NoticeEvent,
    ShellFinishedEvent,
    ToolResultEvent,
    ToolStartedEvent,
    UndoneEvent,
    UserMessageEvent,
)
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, ToolResultMessage, UserMessage
from tenuto.protocol.operation import FindEarlierOperation, ShowEarlierOperation
from tenuto.protocol.part import ToolCallPart
from tenuto.session.plans import as_shown
from tenuto.session.session import Session
from tenuto.session.view.projection import compaction_of_edits
from tenuto.session.view.tree import EntryPath
from tenuto.text.matching import count_in_prose, may_contain

if TYPE_CHECKING:
    from tenuto.core.state.live import SessionServices


def replay(session_id: str, entries: Iterable[HistoryEvent]) -> Iterator[AnyEvent]:
    """Yield what the front-ends would have been told when these entries were made; deltas are left out."""
    for entry in map(as_shown, entries):
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
            case ExtensionEntry() if entry.in_view:
                from tenuto.session.describe import describe_added

                yield NoticeEvent(session_id=session_id, text=describe_added(entry))
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


SHOWN_ENTRIES = 400
"""Entries that are replayed at a time; some at an end are left out so that it begins with a turn, or ends with one."""


def recent_events(services: SessionServices) -> list[AnyEvent]:
    """Return the events of the end of the path; the first says how much is before it, if anything is."""
    begin, shown = _newest(services.session.path(), SHOWN_ENTRIES)
    events: list[AnyEvent] = list(replay(services.id, shown))
    if begin:
        events.insert(0, EarlierEntriesEvent(session_id=services.id, remaining=begin, before=shown[0].seq))
    return events


def newest_events(session_id: str, path: EntryPath, count: int) -> list[AnyEvent]:
    """Return the events of the last entries of a path, `count` at most."""
    return list(replay(session_id, _newest(path, count)[1]))


def child_transcript(parent: str, session: Session, *, working: bool) -> ChildTranscriptEvent:
    """Return the end of a sub-agent's transcript, for the session that it works for. Raises `SessionUnreadable`."""
    begin, shown = _newest(session.path(), SHOWN_ENTRIES)
    return ChildTranscriptEvent(
        session_id=parent,
        child=session.id,
        working=working,
        remaining=begin,
        events=tuple(replay(session.id, shown)),
    )


def _newest(path: EntryPath, count: int) -> tuple[int, Sequence[HistoryEvent]]:
    """Return the end of a path that is shown at once, and how much is before it."""
    begin = _begin(path, 0, len(path), count)
    return begin, path[begin:]


def earlier_events(services: SessionServices, question: ShowEarlierOperation) -> EarlierEntriesEvent:
    """Return what was asked for. Raises `SessionUnreadable`."""
    path = services.session.path().up_to(question.before - 1)
    first = len(path.up_to(question.after)) if question.after else 0
    if question.at:
        begin = _begin_of_turn(path, first, len(path.up_to(question.at)))
        end = _end(path, begin, len(path.up_to(question.at)))
    else:
        begin, end = _begin(path, first, len(path), SHOWN_ENTRIES), len(path)
    shown = path[begin:end]
    return EarlierEntriesEvent(
        session_id=services.id,
        remaining=begin - first,
        before=shown[0].seq if shown else 0,
        last=shown[-1].seq if shown else 0,
        later=len(path) - end,
        upto=question.before,
        count=len(shown),
        events=tuple(replay(services.id, shown)),
    )


def _begin(path: EntryPath, first: int, end: int, count: int) -> int:
    """Return where the last `count` entries of a stretch begin: with a turn, or a step, of their older half."""
    begin = max(first, end - count)
    if begin == first:
        return first
    return begin + _first_boundary(path[begin : begin + count // 2])


def _begin_of_turn(path: EntryPath, first: int, end: int) -> int:
    """Return where the turn of the entry before `end` begins; if that is far back, where one of its steps does."""
    begin = max(first, end - SHOWN_ENTRIES // 2)
    entries = path[begin:end]
    turns = [index for index, entry in enumerate(entries) if isinstance(entry, UserMessage)]
    if turns:
        return begin + turns[-1]
    return first if begin == first else begin + _first_boundary(entries)


def _end(path: EntryPath, begin: int, least: int) -> int:
    """Return where a part ends that begins at `begin` and goes to `least` at least: before a turn, or before a step."""
    end = min(len(path), begin + SHOWN_ENTRIES)
    if end == len(path):
        return end
    newer = path[least:end]
    for kind in (UserMessage, AssistantMessage):
        for index in range(len(newer) - 1, -1, -1):
            if isinstance(newer[index], kind) and least + index > begin:
                return least + index
    return end


def _first_boundary(entries: Sequence[HistoryEvent]) -> int:
    """Return where the first turn begins, or the first step if no turn does: calls stay with their results."""
    for kind in (UserMessage, AssistantMessage):
        for index, entry in enumerate(entries):
            if isinstance(entry, kind):
                return index
    return 0


BYTES_AT_A_TIME = 32 << 20
"""Bytes of the log that are looked through before there is an answer, so that whoever asked can stop asking."""


def find_earlier(services: SessionServices, question: FindEarlierOperation) -> EarlierFoundEvent:
    """Return the nearest entry that has the words, or what is left to look through. Raises `SessionUnreadable`."""
    answer = partial(EarlierFoundEvent, session_id=services.id, query=question.query, upto=question.upto)
    path = services.session.path()
    outputs = services.session.store.outputs
    looked_at = 0
    may_have = partial(may_contain, query=question.query)
    for part in path.parts(question.after + 1, question.before - 1, may_have, newest=question.newest):
        looked_at += part.size
        for entry in part.entries:
            if question.after < entry.seq < question.before and _says(entry, question.query, outputs):
                return answer(seq=entry.seq)
        if looked_at >= BYTES_AT_A_TIME:
            if question.newest:
                return answer(after=question.after, before=part.first)
            return answer(after=part.last, before=question.before)
    return answer()


def _says(entry: HistoryEvent, query: str, outputs: Path) -> bool:
    return any(count_in_prose(text, query) for text in _texts(entry, outputs))


def _texts(entry: HistoryEvent, outputs: Path) -> Iterator[str]:
    """Yield what the screen shows of an entry, near enough."""
    from tenuto.protocol.message import DiffView
    from tenuto.session.describe import Place, is_shown, pieces_of

    if not is_shown(entry, Place.SCREEN):
        return
    for piece in pieces_of(entry, outputs):
        yield piece.text
    if isinstance(entry, ToolResultMessage):
        yield from (view.diff for view in entry.ui if isinstance(view, DiffView))
