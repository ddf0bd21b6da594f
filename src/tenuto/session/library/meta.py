"""`meta.json`: the fold of a session's state as of a place in its log, so that nobody has to read the log for it.

Opening a session reads it, the index, and the part of the log after them; an open session keeps both up.
It can always be rebuilt. It is believed if the log still has, at that place, the line that was the last one then.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from tenuto.private_files import replace_file
from tenuto.protocol.entry import BranchEntry, HeaderEntry, UsageEntry
from tenuto.protocol.usage import Usage
from tenuto.session.log.history import History, IndexWriter, StoredIndex, log_check, read_index, remove_index
from tenuto.session.log.log import LOG_NAME, Damage, LogLine, LogWriter, Place, read_log, scan_log
from tenuto.session.log.record import DamagedLine, decode
from tenuto.session.view.state import SessionState, apply_entry, apply_path_entry, reset_path_state
from tenuto.session.view.tree import Tree
from tenuto.text.writable import to_json

META_NAME = "meta.json"
META_VERSION = 3
UNFINISHED = "unfinished calls"
"""The purpose of the `usage` entry that takes over what the metadata holds."""
_NO_SUM = "00000000"
_SUM_KEY = b'"sum":"'


class Meta(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What `meta.json` holds. `version` is its own format's, `format` that of the log's.

    `size` is the log's length in bytes then, `check` the CRC-32 of the bytes before it. `held_usage` is what calls cost
    that are not in the log yet. `path_stale` says that the path state (todo, pins) in `state` is not that of the leaf,
    because the leaf moved and nobody followed it. `damaged` counts the lines that could not be read as they stand,
    `first_damage` names the first of them. `sum` is the CRC-32 of the file with eight zeros in the place of the sum.
    """

    version: int = 0
    sum: str = ""
    format: int = 1
    session_id: str = ""
    cwd: str = ""
    parent_session: str = ""
    seq: int = 0
    size: int = 0
    check: int = 0
    held_usage: Usage | None = None
    path_stale: bool = False
    damaged: int = 0
    first_damage: str = ""
    state: SessionState = msgspec.field(default_factory=SessionState)


def read_meta(directory: Path) -> Meta | None:
    """Return the stored fold, `None` when there is none that can be used."""
    try:
        data = (directory / META_NAME).read_bytes()
        meta = msgspec.json.decode(data, type=Meta)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return meta if meta.version == META_VERSION and meta.sum == _sum(data) else None


def write_meta(directory: Path, meta: Meta) -> None:
    """Store the fold in one atomic step. Raises `OSError`."""
    meta.version, meta.sum = META_VERSION, _NO_SUM
    data = to_json(meta)
    replace_file(directory / META_NAME, _with_sum(data, _sum(data)))


def _with_sum(data: bytes, value: str) -> bytes:
    head, key, rest = data.partition(_SUM_KEY)
    return head + key + value.encode() + rest[len(value) :]


def _sum(data: bytes) -> str:
    return f"{zlib.crc32(_with_sum(data, _NO_SUM)):08x}"


def current_meta(directory: Path) -> Meta:
    """Return the fold as of now: the stored one, brought up to date with what the log has gained since.

    Reads the whole log only where the stored one is missing or does not belong to it. Raises `OSError`.
    """
    return fold_log(directory)[0]


def fold_all(directory: Path) -> Meta:
    """Return the fold of the whole log, whatever is stored, and with a last line that has no end. Raises `OSError`."""
    meta = Meta(session_id=directory.name)
    with (directory / LOG_NAME).open("rb") as file:
        _bring_up(meta, file)
    return meta


def fold_log(directory: Path) -> tuple[Meta, int]:
    """Return the same as `current_meta`, and how many bytes of the log were read for it. Raises `OSError`."""
    with (directory / LOG_NAME).open("rb") as file:
        meta = believed_meta(directory, file) or Meta(session_id=directory.name)
        folded = meta.size
        if folded < file.seek(0, os.SEEK_END):
            file.seek(folded)
            _bring_up(meta, _whole_lines(file, meta))
            meta.check = log_check(file, meta.size)
    return meta, meta.size - folded


def believed_meta(directory: Path, log: BinaryIO) -> Meta | None:
    """Return the stored fold if it belongs to this log. Raises `OSError` of the log."""
    meta = read_meta(directory)
    if meta is None or meta.size > log.seek(0, os.SEEK_END) or meta.check != log_check(log, meta.size):
        return None
    return meta


def _bring_up(meta: Meta, lines: Iterable[bytes]) -> None:
    damages: list[Damage] = []
    for record in read_log(lines, damages):
        entry = record.entry
        meta.seq = max(meta.seq, entry.seq)
        if isinstance(entry, HeaderEntry):
            meta.session_id, meta.cwd, meta.parent_session = entry.session_id, entry.cwd, entry.parent_session
            meta.format = max(meta.format, entry.version)
        meta.path_stale = meta.path_stale or isinstance(entry, BranchEntry)
        apply_entry(meta.state, entry)
        apply_path_entry(meta.state, entry)
    if damages:
        meta.first_damage = meta.first_damage or str(damages[0])
        meta.damaged += len(damages)


def _whole_lines(file: BinaryIO, meta: Meta) -> Iterator[bytes]:
    """Yield the lines and count them in; a last one without its end may still be in the making."""
    for line in file:
        if line.endswith(b"\n"):
            meta.size += len(line)
            yield line


_META_BYTES = 4 << 20
"""How far the log may grow before the metadata is saved although nothing has settled: a task can run for days."""


class Keeping:
    """What one writer keeps beside its log. `folded` is the length of the log, in bytes, that `meta.json` covers."""

    def __init__(self, directory: Path, stored: StoredIndex, folded: int) -> None:
        self._directory = directory
        self._index = IndexWriter(directory, stored)
        self._folded = folded

    def save_index(self, log: LogWriter, history: History) -> bool:
        """Save what the index has gained; return whether the metadata has fallen far behind."""
        if not log.is_known or not history.is_placed:
            return False
        self._index.save(history.blocks, self._directory / LOG_NAME)
        return log.size - self._folded > _META_BYTES

    def save_meta(self, log: LogWriter, history: History, meta: Meta, state: SessionState) -> None:
        """Store `meta`, with `state` and its place in the log where that is known, once the log is on the disk."""
        log.flush()
        log.sync()
        path = self._directory / LOG_NAME
        try:
            if history.is_placed:
                meta.seq, meta.size, meta.state = history.highest, log.size, state
                with path.open("rb") as file:
                    meta.check = log_check(file, meta.size)
                self._index.save(history.blocks, path)
            else:
                remove_index(self._directory)
            if log.waiting == 0:
                write_meta(self._directory, meta)
                self._folded = meta.size
        except OSError:
            return


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
        stored = believed or read_meta(directory) or Meta()
        held = stored.held_usage or Usage()
        folded, known = meta.size, history.place.offset
        start = _start(history, min(folded, known))
        length = file.seek(0, os.SEEK_END)
        file.seek(start.offset)
        for line in scan_log(file, start):
            if line.offset >= known:
                history.add_line(line)
            if line.offset >= folded:
                if _has_written(line, stored):
                    held = Usage()
                _fold(meta, line)
    tree = Tree(history)
    if meta.path_stale:
        reset_path_state(meta.state, tree.path)
    return Loaded(
        header=_find_header(directory, history, believed),
        tree=tree,
        state=meta.state,
        held_usage=held,
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


def _has_written(line: LogLine, stored: Meta) -> bool:
    """Say whether a line has what the metadata holds still, because the process was killed before it was saved again.

    What it holds counts even where the rest of it is out of date; one without a seq does not say what came before.
    """
    entries = (record.entry for record in line.records)
    is_known = stored.held_usage is not None and stored.seq > 0
    return is_known and any(
        isinstance(entry, UsageEntry) and entry.purpose == UNFINISHED and entry.seq > stored.seq for entry in entries
    )


def _find_header(directory: Path, history: History, meta: Meta | None) -> HeaderEntry:
    """Return the first header; for a log that lost it, one with what the metadata knows."""
    if history.headers:
        entry = first_entry(history.log) if history.headers[0] == 0 else history[history.headers[0]]
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


def first_entry(log: Path) -> object:
    """Return the entry of a log's first line, `None` where that is none. Raises `OSError`."""
    with log.open("rb") as file:
        try:
            return decode(file.readline(_HEADER_BYTES))
        except DamagedLine:
            return None
