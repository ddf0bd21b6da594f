"""A reader of server-sent events: bytes in, events out, whatever the boundaries of the chunks."""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


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
        self._pieces: list[bytes] = []
        self._name = ""
        self._data: list[bytes] = []
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Return the events that are complete after `chunk`."""
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
            elif self._data or self._name:
                if self._data:
                    events.append(ServerEvent(self._name, b"\n".join(self._data)))
                self._name, self._data = "", []
        return events

    def _skip_mark(self, chunk: bytes) -> bytes:
        """Leave out a byte order mark, which may come in pieces; empty while that is not decided."""
        self._rest += chunk
        if len(self._rest) < len(_BOM) and _BOM.startswith(self._rest):
            return b""
        self._begun = True
        start, self._rest = self._rest.removeprefix(_BOM), b""
        return start

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line.startswith(b"event:"):
            self._name = line[6:].removeprefix(b" ").decode("utf-8", "replace")
        elif line == b"data":
            self._data.append(b"")
