"""`meta.json`: the fold of a session's state as of a place in its log, so that nobody has to read the log for it.

It can always be rebuilt. It is believed if the log still has, at that place, the line that was the last one then.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.usage import Usage
from tenuto.session.files import replace_file
from tenuto.session.log.index import log_check
from tenuto.session.log.log import LOG_NAME, Damage, read_log
from tenuto.session.view.state import SessionState, apply_entry, apply_path_entry
from tenuto.text.writable import to_json

META_NAME = "meta.json"
META_VERSION = 3
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
