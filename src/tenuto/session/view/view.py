"""The live view: the projection, kept up by appending, at a cost that does not grow with the session."""

from __future__ import annotations

from typing import get_args

from tenuto.protocol.entry import BranchEntry, ModelEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.message import CompactionEntry, HistoryEvent, Message, SystemMessage
from tenuto.protocol.operation import CompactionReason
from tenuto.session.view.pairing import Memo
from tenuto.session.view.path import EntryPath
from tenuto.session.view.projection import Reading, ViewBuilder, read_path

_REBUILDS = (CompactionEntry, ViewEditEntry, UndoEntry, BranchEntry, SystemMessage)


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
        if isinstance(entry, _REBUILDS) or (isinstance(entry, ModelEntry) and model != self._model):
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
                self._reading.system = before.system  # it may lie far back and have been read anew
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
