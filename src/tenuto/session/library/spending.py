"""What sessions used, by day and model: read from the logs, and kept so that nothing is read twice.

A log only grows, so what was read once is kept with the place up to which it was read. The file can be thrown away.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from tenuto.private_files import replace_file
from tenuto.protocol.entry import ForkOrigin
from tenuto.protocol.usage import Usage
from tenuto.session.log.history import log_check
from tenuto.session.log.log import LOG_NAME
from tenuto.text.writable import to_json

FILE = "spending.json"
VERSION = 1


class Spent(msgspec.Struct, frozen=True):
    """What one model used on one day (`YYYY-MM-DD`, local) in one session; `calls` counts what used something."""

    day: str
    model: str
    usage: Usage
    calls: int = 0


class Read(msgspec.Struct, frozen=True):
    """What was read of a log: its bytes up to `size`, the last of which have the CRC-32 `check`.

    `since` is the entry up to which a fork copied another session; `model` answered last.
    """

    size: int = 0
    check: int = 0
    since: int = 0
    cwd: str = ""
    model: str = ""
    spent: tuple[Spent, ...] = ()


class _Kept(msgspec.Struct):
    version: int = VERSION
    logs: dict[str, Read] = {}


class _Line(msgspec.Struct):
    """What of an entry matters here; the rest of the line is skipped."""

    type: str = ""
    seq: int = 0
    ts: float = 0.0
    model: str = ""
    usage: Usage | None = None
    forked_from: ForkOrigin | None = None
    cwd: str = ""


_lines = msgspec.json.Decoder(_Line)
_MARKS = (b'"usage":', b'"type":"header"', b'"type":"moved"', b'"type":"model"')
"""Lines without one of these have nothing that matters here."""


def read_spending(
    home: Path, directories: Sequence[Path], tell: Callable[[int, int], None] = lambda _done, _all: None
) -> dict[Path, Read]:
    """Return what each session used; `tell` hears how many of how many are read. A log that cannot be read is left out.

    What a fork copied counts for the session that it came from. A sub-agent's use stands in the session above it.
    """
    kept = _read_kept(home)
    found: dict[Path, Read] = {}
    for done, directory in enumerate(directories):
        tell(done, len(directories))
        with contextlib.suppress(OSError), (directory / LOG_NAME).open("rb") as log:
            found[directory] = _read_log(log, kept.get(directory.name) or Read())
    known = kept | {directory.name: read for directory, read in found.items()}
    if known != kept:
        _write_kept(home, known)
    return found


def _read_log(log: BinaryIO, before: Read) -> Read:
    """Return what a log has used, reading on from `before` if that belongs to it. Raises `OSError`."""
    end = log.seek(0, os.SEEK_END)
    if before.size > end or (before.size and log_check(log, before.size) != before.check):
        before = Read()  # another log: one that was restored or repaired
    if before.size == end:
        return before
    size, since, cwd, model = before.size, before.since, before.cwd, before.model
    sums = {(one.day, one.model): one for one in before.spent}
    log.seek(size)
    for line in log:
        if not line.endswith(b"\n"):
            break  # still in the making
        size += len(line)
        entry = _read_line(line) if any(mark in line for mark in _MARKS) else None
        if entry is None:
            continue
        if entry.type in ("header", "moved"):
            cwd = entry.cwd
            since = entry.forked_from.seq if entry.forked_from else since
        model = entry.model or model
        if entry.usage is not None and entry.seq > since:
            _add(sums, (_day(entry.ts), model), entry.usage)
    return Read(size, log_check(log, size), since, cwd, model, tuple(sums.values()))


def _read_line(line: bytes) -> _Line | None:
    try:
        return _lines.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None  # damaged lines are told by whoever opens the session


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def _add(sums: dict[tuple[str, str], Spent], key: tuple[str, str], usage: Usage) -> None:
    before = sums.get(key) or Spent(*key, Usage())
    sums[key] = Spent(*key, before.usage + usage, before.calls + 1)


def _read_kept(home: Path) -> dict[str, Read]:
    try:
        kept = msgspec.json.decode((home / FILE).read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return kept.logs if kept.version == VERSION else {}


def _write_kept(home: Path, logs: dict[str, Read]) -> None:
    with contextlib.suppress(OSError):  # it is read again next time
        replace_file(home / FILE, to_json(_Kept(logs=logs)))
