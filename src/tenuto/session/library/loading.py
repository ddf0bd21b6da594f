"""Reading a session from its folder at the cost of its end: metadata, index, and the part of the log after them."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.usage import Usage
from tenuto.session.library.meta import Meta, believed_meta, read_meta
from tenuto.session.log.history import History
from tenuto.session.log.index import StoredIndex, read_index
from tenuto.session.log.log import LOG_NAME, LogLine, Place, scan_log
from tenuto.session.log.record import DamagedLine, decode
from tenuto.session.view.state import SessionState, apply_entry, apply_path_entry, reset_path_state
from tenuto.session.view.tree import Tree

_HEADER_BYTES = 1 << 16


class Loaded(msgspec.Struct, kw_only=True):
    """A session as it is on disk. `unfolded` is how many bytes of the log the metadata did not know of."""

    header: HeaderEntry
    tree: Tree
    state: SessionState
    held_usage: Usage
    index: StoredIndex
    unfolded: int


def load_session(directory: Path) -> Loaded:
    """Read a session. Raises `OSError` when its log cannot be read."""
    with (directory / LOG_NAME).open("rb") as file:
        index = read_index(directory, file)
        believed = believed_meta(directory, file)
        history = History(directory / LOG_NAME, list(index.blocks))
        meta = believed or Meta()
        folded, known = meta.size, history.place.offset
        start = _start(history, min(folded, known))
        length = file.seek(0, os.SEEK_END)
        file.seek(start.offset)
        for line in scan_log(file, start):
            if line.offset >= known:
                history.add_line(line)
            if line.offset >= folded:
                _fold(meta, line)
    tree = Tree(history)
    if meta.path_stale:
        reset_path_state(meta.state, tree.path)
    return Loaded(
        header=_find_header(directory, history, believed),
        tree=tree,
        state=meta.state,
        held_usage=_held_usage(directory, believed),
        index=index,
        unfolded=max(0, length - folded),
    )


def _start(history: History, offset: int) -> Place:
    """Return the begin of the block that the offset falls into."""
    number = next((at for at in range(len(history.blocks) - 1, -1, -1) if history.blocks[at].offset <= offset), -1)
    if number < 0:
        return Place() if history.blocks else history.place
    return history.place if offset >= history.place.offset else history.blocks[number].place


def _fold(meta: Meta, line: LogLine) -> None:
    for record in line.records:
        entry = record.entry
        apply_entry(meta.state, entry)
        apply_path_entry(meta.state, entry)
        meta.path_stale = meta.path_stale or isinstance(entry, BranchEntry)


def _held_usage(directory: Path, believed: Meta | None) -> Usage:
    """Return what calls cost that are not in the log; known even where the rest of the metadata is out of date."""
    meta = believed or read_meta(directory)
    return (meta.held_usage if meta is not None else None) or Usage()


def _find_header(directory: Path, history: History, meta: Meta | None) -> HeaderEntry:
    """Return the first header; for a log that lost it, one with what the metadata knows."""
    if history.headers:
        entry = _first_entry(history.log) if history.headers[0] == 0 else history[history.headers[0]]
        entry = entry if isinstance(entry, HeaderEntry) else history[history.headers[0]]
        if isinstance(entry, HeaderEntry) and entry.cwd:
            return entry
    meta = meta or read_meta(directory) or Meta()
    return HeaderEntry(
        session_id=meta.session_id or directory.name,
        cwd=meta.cwd,
        version=meta.format,
        parent_session=meta.parent_session,
    )


def _first_entry(log: Path) -> object:
    with log.open("rb") as file:
        try:
            return decode(file.readline(_HEADER_BYTES))
        except DamagedLine:
            return None
