"""The rows of `/tree`: one for each entry that says or does something, with where it stands and what it is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import takewhile

from tenuto.command.outcome import Choice, RowFilter
from tenuto.command.session_rows import age
from tenuto.core.destination import prompt_of
from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, ShellEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    HistoryEvent,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import text_of
from tenuto.session.branches import TreeRow, read_rows
from tenuto.session.session import Session
from tenuto.text.bounding import bound_middle, shorten
from tenuto.text.call_summary import summarise_call
from tenuto.text.figures import format_change, plural
from tenuto.text.rungs import describe_rung
from tenuto.tool.history import pieces_of

REACH = 4_000
"""Entries of the log that are shown at a time; the first row leads to those before."""
LABEL_CHARACTERS = 160
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
    leaf = next((entry.seq for entry in reversed(session.path()) if is_shown(entry)), 0)
    describe = _Describer(session, on_path, leaf, time.time())
    rows = [describe.row(row) for row in read_rows(entries, on_path, is_shown)]
    if any(session.entries_between(1, first - 1)):
        rows.insert(0, Choice(f"before {first}", "… what came before", f"entries up to #{first - 1}"))
    return tuple(rows)


def is_shown(entry: HistoryEvent) -> bool:
    """Say whether an entry is a row: what was said and done, and what changed the view."""
    if isinstance(entry, ExtensionEntry):
        return entry.in_view
    if isinstance(entry, ViewEditEntry):
        return bool(entry.rung)
    return isinstance(
        entry,
        UserMessage
        | AssistantMessage
        | ToolResultMessage
        | ShellEntry
        | CompactionEntry
        | BranchSummaryEntry
        | UndoEntry,
    )


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
            label=shorten(describe_entry(entry), LABEL_CHARACTERS),
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
                what = describe_entry(target) if target is not None else f"#{entry.target}"
                return f"Undone: #{entry.target}, {what}. What it had replaced is in the view again."
            case ViewEditEntry():
                return f"{describe_entry(entry)}: {plural(len(entry.edits), 'entry')} shortened in the view."
            case CompactionEntry():
                kept = f" From #{entry.first_kept_index} on everything stays." if entry.first_kept_index else ""
                return f"{describe_entry(entry)}, without a summary.{kept}"
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


def describe_entry(entry: HistoryEvent) -> str:
    """Return what a row says of an entry: who or what, and how it begins."""
    match entry:
        case UserMessage():
            who = "You" if prompt_of(entry) else entry.origin.capitalize()
            return f"{who}: {text_of(entry.parts) or '(image)'}"
        case AssistantMessage():
            calls = [f"{call.name} {summarise_call(call.name, call.arguments)}".strip() for call in entry.tool_calls]
            return f"Model: {' · '.join(part for part in (text_of(entry.parts).strip(), *calls) if part)}"
        case ToolResultMessage():
            return f"{entry.name}: {text_of(entry.parts)[: 4 * LABEL_CHARACTERS]}"
        case ShellEntry():
            return f"{'!!' if entry.excluded else '!'}{entry.command}"
        case CompactionEntry():
            sizes = format_change(entry.tokens_before or 0, entry.tokens_after or 0, rough=entry.rough)
            return f"Compaction: {sizes} tokens, {describe_rung(entry.rung, entry.from_extension)}"
        case ViewEditEntry():
            return f"Compaction: {describe_rung(entry.rung)}"
        case BranchSummaryEntry():
            return f"Notes on #{entry.from_seq}: {_first_words(entry.summary)}"
        case UndoEntry():
            return f"Undo of #{entry.target}"
        case ExtensionEntry():
            return f"{entry.extension}: {text_of(entry.parts)}"
        case _:
            return entry.__struct_config__.tag if isinstance(entry.__struct_config__.tag, str) else ""


def _first_words(summary: str) -> str:
    """Return how a summary begins, behind its first heading."""
    return " ".join(line for line in summary.splitlines() if line.strip() and not line.startswith("#"))


def _kind(entry: HistoryEvent) -> str:
    if prompt_of(entry):
        return PROMPT
    return RESULT if isinstance(entry, ToolResultMessage) else OTHER


def _stretch(session: Session, before: int) -> Sequence[HistoryEvent]:
    """Return a stretch of the log, `REACH` long at most, that ends before `before` (0: at its end)."""
    last = before - 1 if before else session.highest_seq
    return list(session.entries_between(max(1, last - REACH + 1), last))
