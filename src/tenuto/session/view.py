"""The live view: the projection, kept up by appending, at a cost that does not grow with the session."""

from __future__ import annotations

from tenuto.protocol.entry import BranchEntry, ModelEntry, UndoEntry, ViewEdit, ViewEditEntry
from tenuto.protocol.message import CompactionEntry, HistoryEvent, Message, SystemMessage
from tenuto.session.projection import Memo, Reading, ViewBuilder, read_path

_REBUILDS = (CompactionEntry, ViewEditEntry, UndoEntry, BranchEntry, SystemMessage)


class LiveView:
    """The view of a path that grows. Equal to `project(path, model)` at every moment (a property test says so).

    Messages keep their identity from one view to the next, so that a client may cache what it encoded by it.
    """

    def __init__(self, path: list[HistoryEvent], model: str) -> None:
        self._path = path
        self._model = model
        self._memo: Memo = {}
        self._builder: ViewBuilder | None = None
        self._reading = Reading()
        self._edits: dict[int, ViewEdit] = {}
        self._snapshot: list[Message] | None = None

    @property
    def reading(self) -> Reading:
        """The compaction, system prompt and edits in effect."""
        self._build()
        return self._reading

    def follow(self, entry: HistoryEvent, path: list[HistoryEvent], model: str) -> None:
        """Take note of an entry that was just added to the history; `path` and `model` are those after it."""
        self._path = path
        if isinstance(entry, _REBUILDS) or (isinstance(entry, ModelEntry) and model != self._model):
            self._builder = None
        elif self._builder is not None and entry.seq >= self._reading.first_kept:
            self._builder.add(entry, self._edits.pop(entry.seq, None) if self._edits else None)
        self._model = model
        self._snapshot = None

    def messages(self) -> list[Message]:
        """Return the view; the same list until something is appended."""
        if self._snapshot is None:
            self._snapshot = list(self._build().messages)
        return self._snapshot

    def _build(self) -> ViewBuilder:
        if self._builder is None:
            self._reading = read_path(self._path, self._model)
            self._builder = ViewBuilder(self._memo)
            self._edits = self._builder.build(self._path, self._reading)
        return self._builder
