"""A reader of server-sent events: bytes in, events out, whatever the boundaries of the chunks."""

from __future__ import annotations

import re
from typing import NamedTuple

from tenuto.protocol.model import ModelError

MAX_EVENT_BYTES = 16_000_000
"""The largest that was ever seen is the last event of a Responses stream, with the whole answer in it."""
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data", b"event", b"id", b"retry")
_OTHER_FIELD = re.compile(rb"[A-Za-z][\w-]{0,31}:?\Z|[A-Za-z][\w-]{0,31}:")
_LINE = re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)")


class ServerEvent(NamedTuple):
    """One event: its name (empty when it has none) and its data, still bytes of UTF-8."""

    name: str
    data: bytes


class EventReader:
    """Cuts a byte stream into events.

    Works on bytes and splits only on CR, LF and CR LF, so a chunk may end anywhere, also inside a character, and
    U+2028 is no line end. An event that no blank line closes is not an event (the stream was cut).
    """

    def __init__(self) -> None:
        self._rest = b""
        self._taken = self._pending = 0
        """Bytes of the event that is not complete yet: in whole lines, and behind them."""
        self._pieces: list[bytes] = []
        self._name = ""
        self._data: list[bytes] = []
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that are complete after `chunk`. Raises `ModelError` for one that is too large."""
        if not self._begun:
            chunk = self._skip_mark(chunk)
        if self._after_cr and chunk:
            # The CR before this chunk ended a line already: its LF is not a second end.
            self._after_cr = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if not chunk:
            return []
        if b"\n" not in chunk and b"\r" not in chunk:
            # A line of megabytes is put together once, at its end.
            self._pieces.append(chunk)
            self._pending += len(chunk)
            self._check_size()
            return []
        data = b"".join((self._rest, *self._pieces, chunk))
        self._pieces.clear()
        self._after_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        self._rest = lines.pop()
        events: list[ServerEvent] = []
        for line in lines:
            if line:
                self._take(line)
                continue
            if self._data:
                events.append(ServerEvent(self._name, b"\n".join(self._data)))
            self._name, self._data, self._taken = "", [], 0
        self._pending = len(self._rest)
        self._check_size()
        return events

    def _check_size(self) -> None:
        if self._taken + self._pending > MAX_EVENT_BYTES:
            limit = MAX_EVENT_BYTES // 1_000_000
            raise ModelError("invalid", f"the server sent an event of more than {limit} MB, which is no answer")

    def _skip_mark(self, chunk: bytes) -> bytes:
        """Leave out a byte order mark, which may come in pieces; empty while that is not decided."""
        self._rest += chunk
        if len(self._rest) < len(_BOM) and _BOM.startswith(self._rest):
            return b""
        self._begun = True
        start, self._rest = self._rest.removeprefix(_BOM), b""
        return start

    def _take(self, line: bytes) -> None:
        self._taken += len(line)
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line.startswith(b"event:"):
            self._name = line[6:].removeprefix(b" ").decode("utf-8", "replace")
        elif line == b"data":
            self._data.append(b"")


def ends_in_field_name(opening: bytes) -> bool:
    """Say whether a body was cut off within the name of one of the four fields."""
    last = re.split(rb"[\r\n]", opening)[-1]
    return bool(last) and any(field.startswith(last) for field in _FIELDS)


def is_event_stream(opening: bytes) -> bool | None:
    """Say whether a body that begins so is a stream of events; `None` while that is not decided.

    The first line with one of the four fields makes it one. Empty lines, comments and fields with other names, which
    the standard passes over, decide nothing; any other text, a page or JSON above all, is no stream.
    """
    if _BOM.startswith(opening[: len(_BOM)]):
        opening = opening[len(_BOM) :]
    for found in _LINE.finditer(opening):
        line, is_whole = found[1], bool(found[2])
        for field in _FIELDS:
            if line.startswith(field + b":") or (line == field and is_whole):
                return True
        if line.startswith(b":") or not line.strip() or _OTHER_FIELD.match(line):
            continue
        return False
    return None
