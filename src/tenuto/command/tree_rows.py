"""The rows of `/tree`: one for each entry that says or does something, with where it stands and what it is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import takewhile

from tenuto.command.outcome import Choice, RowFilter
from tenuto.command.session_rows import age
from tenuto.core.destination import prompt_of
from tenuto.protocol.entry import UndoEntry, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, ToolResultMessage
from tenuto.session.branches import TreeRow, read_rows
from tenuto.session.describe import LINE_CHARACTERS, Place, is_shown, line_of, pieces_of
from tenuto.session.session import Session
from tenuto.session.view_edits import compaction_of_edits
from tenuto.text.bounding import bound_middle, shorten
from tenuto.text.figures import plural

REACH = 4_000
"""Entries of the log that are shown at a time; the first row leads to those before."""
PREVIEW_CHARACTERS = 8_000
LEAF, ON_PATH = "●", "│"
PROMPT, RESULT, OTHER = "prompt", "result", "other"
FILTERS = (
    RowFilter("hide tool results", (PROMPT, OTHER)),
    RowFilter("your messages", (PROMPT,)),
    RowFilter("everything"),
)


def tree_choices(session: Session, before: int) -> tuple[Choice, ...]:
    """Return the rows for the newest entries of the log, or with `before` for the newest before that seq."""
    entries = _stretch(session, before)
    if not entries:
        return ()
    first = entries[0].seq
    on_path = {entry.seq for entry in takewhile(lambda entry: entry.seq >= first, reversed(session.path()))}
    leaf = next((entry.seq for entry in reversed(session.path()) if is_shown(entry, Place.TREE)), 0)
    describe = _Describer(session, on_path, leaf, time.time())
    rows = [describe.row(row) for row in read_rows(entries, on_path, partial(is_shown, place=Place.TREE))]
    if any(session.entries_between(1, first - 1)):
        rows.insert(0, Choice(f"before {first}", "… what came before", f"entries up to #{first - 1}"))
    return tuple(rows)


class _Describer:
    def __init__(self, session: Session, on_path: set[int], leaf: int, now: float) -> None:
        self._session = session
        self._on_path = on_path
        self._leaf = leaf
        self._now = now

    def row(self, row: TreeRow) -> Choice:
        entry = row.entry
        label = self._session.state.labels.get(entry.seq, "")
        facts = [f"#{entry.seq}"]
        if label:
            facts.insert(0, f"⚑ {label}")
        if len(row.ways) > 1:
            facts.append(plural(len(row.ways), "way") + " on")
        if entry.ts:
            facts.append(age(self._now - entry.ts))
        return Choice(
            value=str(entry.seq),
            label=shorten(line_of(entry), LINE_CHARACTERS),
            detail=" · ".join(facts),
            present=entry.seq == self._leaf,
            indent=row.depth,
            mark=LEAF if entry.seq == self._leaf else ON_PATH if entry.seq in self._on_path else " ",
            kind=_kind(entry),
            preview=self._preview(row, label),
        )

    def _preview(self, row: TreeRow, label: str) -> str:
        entry = row.entry
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.ts)) if entry.ts else "at an unknown time"
        where = "the conversation is here" if entry.seq == self._leaf else ""
        where = where or ("on the present path" if entry.seq in self._on_path else "on a branch that was left")
        head = " · ".join(part for part in (f"#{entry.seq}", when, where, label and f"⚑ {label}") if part)
        lines = [head]
        if len(row.ways) > 1:
            lines.append("goes on in " + ", ".join(f"#{seq}" for seq in row.ways))
        text = "\n".join(self._texts(entry)).strip() or self._in_words(entry)
        bounded = bound_middle(text, PREVIEW_CHARACTERS)
        notice = f"… {bounded.omitted_chars:,} characters; /recall #{entry.seq} has them …" if bounded else ""
        return "\n".join([*lines, "", bounded.joined(notice) if bounded else text])

    def _in_words(self, entry: HistoryEvent) -> str:
        """Return what an entry is that has no words of its own."""
        match entry:
            case UndoEntry():
                target = next(iter(self._session.entries_between(entry.target, entry.target)), None)
                if isinstance(target, UndoEntry):
                    return f"Taken back: the undo #{target.seq}. #{target.target} holds again."
                what = line_of(target) if target is not None else f"#{entry.target}"
                return f"Undone: #{entry.target}, {what}. What it had replaced is in the view again."
            case ViewEditEntry():
                return f"{line_of(entry)}. {compaction_of_edits(entry).summary}"
            case CompactionEntry():
                kept = f" From #{entry.first_kept_index} on everything stays." if entry.first_kept_index else ""
                return f"{line_of(entry)}, without a summary.{kept}"
            case ToolResultMessage():
                return "(no output)"
            case AssistantMessage():
                return "(an answer without words)"
            case _:
                return "(an empty message)"

    def _texts(self, entry: HistoryEvent) -> list[str]:
        pieces = list(pieces_of(entry, self._session.store.outputs)) or []
        alone = len(pieces) == 1
        return [
            piece.text if alone or piece.kind == "assistant" else f"[{piece.kind}]\n{piece.text}" for piece in pieces
        ]


def _kind(entry: HistoryEvent) -> str:
    if prompt_of(entry):
        return PROMPT
    return RESULT if isinstance(entry, ToolResultMessage) else OTHER


def _stretch(session: Session, before: int) -> Sequence[HistoryEvent]:
    """Return a stretch of the log, `REACH` long at most, that ends before `before` (0: at its end)."""
    last = before - 1 if before else session.highest_seq
    return list(session.entries_between(max(1, last - REACH + 1), last))
