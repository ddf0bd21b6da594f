"""A session read whole, in the plainest way: what a session that was opened by its end has to be equal to."""

from __future__ import annotations

from pathlib import Path

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.message import HistoryEvent, Message
from tenuto.session.log.log import LOG_NAME, Damage, read_log
from tenuto.session.session import Session
from tenuto.session.view.projection import project
from tenuto.session.view.state import SessionState, apply_entry, apply_path_entry


class WholeSession:
    """Everything of a log in lists."""

    def __init__(self, directory: Path) -> None:
        damages: list[Damage] = []
        with (directory / LOG_NAME).open("rb") as file:
            self.entries = [record.entry for record in read_log(file, damages)]
        self.damage = tuple(damages)
        self.parents: list[int] = []
        self.state = SessionState()
        for position, entry in enumerate(self.entries):
            self.parents.append(self._parent(position))
            apply_entry(self.state, entry)
        self.path = self._path(len(self.entries) - 1)
        for entry in self.path:
            apply_path_entry(self.state, entry)

    def _parent(self, position: int) -> int:
        """Return the position after which the entry continues, -1 for the root; for a branch the one that it names."""
        entry = self.entries[position]
        if isinstance(entry, BranchEntry):
            return self._position(entry.parent, position + 1)
        before = position - 1
        if before >= 0 and isinstance(self.entries[before], BranchEntry):
            return self.parents[before]
        return before

    def _position(self, seq: int, end: int) -> int:
        seqs = [entry.seq for entry in self.entries[:end]]
        if seq > 0 and seq in seqs:
            return seqs.index(seq)
        return max((position for position, other in enumerate(seqs) if 0 < other < seq), default=-1)

    def _path(self, position: int) -> list[HistoryEvent]:
        path: list[HistoryEvent] = []
        if position >= 0 and isinstance(self.entries[position], BranchEntry):
            position = self.parents[position]
        while position >= 0:
            entry = self.entries[position]
            if isinstance(entry, BranchEntry):
                # Somebody branched from a branch, which is on no path: what is before it in the file is.
                position -= 1
                if position >= 0 and isinstance(self.entries[position], BranchEntry):
                    position = self.parents[position]
                continue
            if not isinstance(entry, HeaderEntry):
                path.append(entry)
            position = self.parents[position]
        return path[::-1]

    @property
    def next_seq(self) -> int:
        return max((entry.seq for entry in self.entries), default=0) + 1

    @property
    def view(self) -> list[Message]:
        return project(self.path, self.state.model)


def check_equal(session: Session, whole: WholeSession) -> None:
    """Everything that a session says is what its whole log says."""
    path = session.path()
    assert list(path) == whole.path
    assert list(reversed(path)) == whole.path[::-1]
    assert [path[index] for index in range(len(path))] == whole.path
    assert list(session.entries()) == whole.entries
    assert list(session.everything()) == [entry for entry in whole.entries if not isinstance(entry, HeaderEntry)]
    assert session.state == whole.state
    assert session.get_llm_history() == whole.view
    # Why a line that was cut off is damaged sounds different once it is closed off.
    assert [(one.line, one.size) for one in session.damage] == [(one.line, one.size) for one in whole.damage]
    seqs = [entry.seq for entry in whole.entries]
    for seq in range(0, whole.next_seq + 1, 1 + whole.next_seq // 12):
        found = next((entry for entry in whole.entries if entry.seq == seq), None) if seq else None
        assert session.find(seq) == found, f"seq {seq} of {seqs}"
        assert list(path.since(seq)) == [entry for entry in whole.path if entry.seq >= seq]
