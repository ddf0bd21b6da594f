"""The LLM view: what the model is sent, as a pure function of the path (DESIGN section 3, "Projection").

`project` computes it at once, `LiveView` keeps it up by appending; both go through `ViewBuilder`. No clock, no
I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

import msgspec

from tenuto.protocol.entry import (
    BranchEntry,
    BranchSummaryEntry,
    ExtensionEntry,
    ModelEntry,
    ShellEntry,
    UndoEntry,
    ViewEdit,
    ViewEditEntry,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.operation import CompactionReason
from tenuto.protocol.part import ContentPart, TextPart, text_of
from tenuto.session.view.pairing import Memo, PairedMessages
from tenuto.session.view.tree import EntryPath, find_on, newest_of_kind, since
from tenuto.text.writable import keep_within, tagged

OMITTED_TEXT = "(left out of the context)"


class Reading(msgspec.Struct, kw_only=True):
    """What a path says about its view: the compaction in effect, the system prompt, and the edits by target seq."""

    compaction: CompactionEntry | None = None
    system: SystemMessage | None = None
    edits: dict[int, ViewEdit] = {}

    @property
    def first_kept(self) -> int:
        """The seq from which on messages stand in the view as themselves."""
        return self.compaction.first_kept_index if self.compaction else 0


def read_path(path: Sequence[HistoryEvent], model: str = "") -> Reading:
    """Find the compaction, system prompt and edits in effect on a path, for the model `provider/name`.

    An undone compaction takes the system prompt and the edits that it brought with it. A compaction whose provider
    items the model cannot read is passed over, as is one that lost what it needs to stand for history (R-102). An edit
    concerns what was there before it. Looks from the newest entry back to the first kept one, and further only for the
    system prompt.
    """
    cancelled = cancelled_by_undo(path)
    brought = {mark.system_seq for mark in _compactions(path, cancelled)}
    reading = Reading()
    for mark in newest_of_kind(path, CompactionEntry, ViewEditEntry, SystemMessage):
        if reading.compaction is not None and mark.seq < reading.first_kept:
            break
        if isinstance(mark, SystemMessage):
            if reading.system is None and mark.seq not in brought:
                reading.system = mark
        elif mark.seq not in cancelled:
            if isinstance(mark, CompactionEntry):
                if not is_usable(mark, model):
                    continue
                reading.compaction = reading.compaction or mark
            for edit in reversed(mark.edits):
                if edit.target < mark.seq:
                    reading.edits.setdefault(edit.target, edit)
    if reading.system is None:
        prompts = newest_of_kind(path, SystemMessage)
        reading.system = next((prompt for prompt in prompts if prompt.seq not in brought), None)
    reading.edits = {target: edit for target, edit in reading.edits.items() if target >= reading.first_kept}
    return reading


def view_changes_in_effect(path: Sequence[HistoryEvent]) -> Iterator[CompactionEntry | ViewEditEntry | UndoEntry]:
    """Yield what changes a path's view and is not cancelled by an undo, undos included, the newest first."""
    cancelled = cancelled_by_undo(path)
    marks = newest_of_kind(path, CompactionEntry, ViewEditEntry, UndoEntry)
    return (mark for mark in marks if mark.seq not in cancelled)


def cancelled_by_undo(path: Sequence[HistoryEvent]) -> set[int]:
    """Return the seqs that an undo cancels; the undo of an undo gives its target back."""
    cancelled: set[int] = set()
    for undo in newest_of_kind(path, UndoEntry):
        if undo.seq not in cancelled and undo.target < undo.seq:
            cancelled.add(undo.target)
    return cancelled


def _compactions(path: Sequence[HistoryEvent], seqs: Iterable[int]) -> Iterator[CompactionEntry]:
    found = (find_on(path, seq) for seq in seqs)
    return (entry for entry in found if isinstance(entry, CompactionEntry))


def is_usable(entry: CompactionEntry, model: str) -> bool:
    """Return whether a compaction can stand for history in a request to `model`."""
    if entry.first_kept_index < 1:
        return False
    items = entry.provider_items
    return items is None or model in (items.model, f"{items.provider}/{items.model}")


def project(path: Sequence[HistoryEvent], model: str = "") -> list[Message]:
    """Return the view of a path (root to leaf) for the model `provider/name`, system prompt first."""
    builder = ViewBuilder(Memo())
    builder.build(path, read_path(path, model))
    return builder.messages


class ViewBuilder:
    """A view that grows at its end."""

    def __init__(self, memo: Memo) -> None:
        self._memo = memo
        self._paired = PairedMessages(memo)

    @property
    def messages(self) -> list[Message]:
        """The view so far."""
        return self._paired.messages

    def build(self, path: Sequence[HistoryEvent], reading: Reading) -> None:
        """Fill an empty view from a path."""
        if reading.system is not None:
            self._paired.add(reading.system)
        if reading.compaction is not None:
            for message in self._replacement(reading.compaction):
                self._paired.add(message)
        edits = dict(reading.edits)
        for entry in since(path, reading.first_kept):
            self.add(entry, edits.pop(entry.seq, None) if edits else None)

    def add(self, entry: HistoryEvent, edit: ViewEdit | None = None) -> None:
        """Add what an entry shows to the model, if it shows anything."""
        if not isinstance(entry, _SHOWN):
            return
        message = self._memo.get(entry, edit)
        if message is None:
            message = show_entry(entry)
            if message is not None and edit is not None:
                message = edit_message(message, edit)
            if message is None:
                return
            if message is not entry:
                self._memo.keep(message, entry, edit)
        self._paired.add(message)

    def _replacement(self, compaction: CompactionEntry) -> tuple[Message, ...]:
        if compaction.replacement or not compaction.summary:
            return compaction.replacement
        message = self._memo.get(compaction)
        if message is None:
            message = self._memo.keep(SystemMessage(text=compaction.summary), compaction)
        return (message,)


_SHOWN = (
    UserMessage,
    AssistantMessage,
    ToolResultMessage,
    DeveloperMessage,
    ShellEntry,
    BranchSummaryEntry,
    ExtensionEntry,
)


def show_entry(entry: HistoryEvent) -> Message | None:
    """Return the message that an entry is to the model, `None` where it is none. Messages are themselves."""
    if isinstance(entry, (UserMessage, AssistantMessage, ToolResultMessage, DeveloperMessage)):
        return entry
    if isinstance(entry, ShellEntry):
        return None if entry.excluded else _framed(entry, (TextPart(text=frame_shell(entry)),))
    if isinstance(entry, BranchSummaryEntry):
        return _framed(entry, (TextPart(text=frame_branch_summary(entry)),))
    if isinstance(entry, ExtensionEntry) and entry.in_view and entry.parts:
        return _framed(entry, entry.parts)
    return None


def _framed(entry: ShellEntry | BranchSummaryEntry | ExtensionEntry, parts: tuple[ContentPart, ...]) -> UserMessage:
    return UserMessage(seq=entry.seq, ts=entry.ts, parts=parts, origin="extension")


def frame_shell(entry: ShellEntry) -> str:
    """Return the text by which the model learns of a command that the user ran."""
    status = "did not finish" if entry.exit_code is None else f"exit code {entry.exit_code}"
    status = "interrupted; may have taken effect" if entry.interrupted else status
    lines = ["The user ran a command in this directory:", "<command>", entry.command, "</command>"]
    lines += [f"<output>  ({status})", keep_within(entry.output.rstrip("\n"), "output"), "</output>"]
    if entry.truncated and entry.output_path:
        lines.append(f"The output is shortened here; all of it is in {entry.output_path}")
    return "\n".join(lines)


def frame_branch_summary(entry: BranchSummaryEntry) -> str:
    """Return the text by which the model learns of a branch that was left."""
    return (
        "From this point the conversation first went another way, which was then left. What happened there:\n"
        f"{tagged('branch-summary', entry.summary)}"
    )


def edit_message(message: Message, edit: ViewEdit) -> Message | None:
    """Return the message as an edit makes it look, `None` when it leaves the view.

    A result that is omitted keeps its place, because its call does. Answers cannot be shortened, only omitted: their
    blocks may be signed.
    """
    if edit.kind == "omitted" and not isinstance(message, ToolResultMessage):
        return None
    if isinstance(message, (UserMessage, ToolResultMessage)):
        return msgspec.structs.replace(message, parts=_edit_parts(message.parts, edit))
    if isinstance(message, DeveloperMessage):
        return msgspec.structs.replace(message, text=_edit_text(message.text, edit))
    return message


def _edit_parts(parts: tuple[ContentPart, ...], edit: ViewEdit) -> tuple[ContentPart, ...]:
    edited = TextPart(text=_edit_text(text_of(parts), edit))
    if edit.kind != "truncated":
        return (edited,)
    images = tuple(part for part in parts if not isinstance(part, TextPart))
    if not edit.image_text or len(images) <= edit.keep_images:
        return (edited, *images)
    kept = images[len(images) - edit.keep_images :]
    # Providers take no empty text.
    return (*((edited,) if edited.text else ()), TextPart(text=edit.image_text), *kept)


def _edit_text(text: str, edit: ViewEdit) -> str:
    if edit.kind != "truncated":
        return edit.text or OMITTED_TEXT
    head, tail = max(edit.keep_head, 0), max(edit.keep_tail, 0)
    if len(text) <= head + tail:
        return text
    return text[:head] + edit.text + (text[-tail:] if tail else "")


REBUILDS = (CompactionEntry, ViewEditEntry, UndoEntry, BranchEntry, SystemMessage)
"""Entries behind which the view does not begin with the whole one before."""


class LiveView:
    """The view of a path that grows. Equal to `project(path, model)` at every moment (a property test says so).

    Messages keep their identity from one view to the next, so that a client may cache what it encoded by it.
    """

    def __init__(self, path: EntryPath, model: str) -> None:
        self._path = path
        self._model = model
        self._memo = Memo()
        self._builder: ViewBuilder | None = None
        self._reading = Reading()
        self._snapshot: list[Message] | None = None

    @property
    def reading(self) -> Reading:
        """The compaction, system prompt and edits in effect."""
        self._build()
        return self._reading

    @property
    def first_kept(self) -> int:
        """The seq from which on the present view has messages as themselves; 0 while there is no view."""
        return self._reading.first_kept if self._builder is not None else 0

    def follow(self, entry: HistoryEvent, path: EntryPath, model: str) -> None:
        """Take note of an entry that was just added to the history; `path` and `model` are those after it."""
        self._path = path
        if isinstance(entry, REBUILDS) or (isinstance(entry, ModelEntry) and model != self._model):
            self._builder = None
        elif self._builder is not None and entry.seq >= self._reading.first_kept:
            self._builder.add(entry)
        self._model = model
        self._snapshot = None

    def messages(self) -> list[Message]:
        """Return the view; the same list until something is appended."""
        if self._snapshot is None:
            self._snapshot = list(self._build().messages)
        return self._snapshot

    def _build(self) -> ViewBuilder:
        if self._builder is None:
            before, self._reading = self._reading, read_path(self._path, self._model)
            if self._reading.system == before.system:
                self._reading.system = before.system  # it may lie far back and have been read again
            self._path.hold(self._reading.first_kept)
            self._memo.begin()
            self._builder = ViewBuilder(self._memo)
            self._builder.build(self._path, self._reading)
        return self._builder


_WHAT_WAS_DONE = {"hide": "results are hidden", "images": "messages are without some of their images"}
_REASONS: dict[str, CompactionReason] = {reason: reason for reason in get_args(CompactionReason)}


def compaction_of_edits(entry: ViewEditEntry) -> CompactionEntry:
    """Return a compaction that only edits the view in the form in which all are shown; it is no entry of the log."""
    what = _WHAT_WAS_DONE.get(entry.rung, "results are shortened")
    seqs = ", ".join(str(edit.target) for edit in entry.edits[:20]) + (" …" if len(entry.edits) > 20 else "")
    return CompactionEntry(
        seq=entry.seq,
        ts=entry.ts,
        summary=f"{len(entry.edits)} {what} in the model's view; the history has them whole: {seqs}.",
        edits=entry.edits,
        tokens_before=entry.tokens_before,
        tokens_after=entry.tokens_after,
        rough=entry.rough,
        trigger=entry.trigger,
        reason=_REASONS.get(entry.reason, "manual"),
        rung=entry.rung,
        duration=entry.duration,
    )
