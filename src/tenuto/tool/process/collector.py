"""Takes any amount of output in bounded memory: two ends in memory, all of it in a file (R-097)."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from pathlib import Path

from tenuto.guard.terminal import sanitize_output
from tenuto.text.bounding import Bounded, bound_middle, take_head, take_tail
from tenuto.tool.output import format_size, notice_text

_END_BYTES = 256_000
"""Bytes kept in memory of either end; longer outputs go to a file from there on."""
SPOOL_LIMIT = 256_000_000
"""Bytes of one output that are written to disk at most; a command that prints for ever must not fill it."""


class CollectedText:
    """What became of an output: the text for the model and where the whole is."""

    __slots__ = ("output_path", "output_size", "text", "truncated")

    def __init__(self, text: str, output_size: int, output_path: str = "", *, truncated: bool = False) -> None:
        self.text = text
        self.output_size = output_size
        self.output_path = output_path
        self.truncated = truncated


class Collector:
    """Collects the bytes of one command. `make_path` is asked for a file only when one is needed."""

    def __init__(self, make_path: Callable[[], Path], *, spool_limit: int = SPOOL_LIMIT) -> None:
        self._make_path = make_path
        self._spool_limit = spool_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._descriptor: int | None = None
        self._stored = 0
        self.fault = ""
        self.path: Path | None = None
        self.size = 0
        self.lines = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.size += len(chunk)
        self.lines += chunk.count(b"\n")
        if self._descriptor is not None:
            self._write(chunk)
        room = _END_BYTES - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail += chunk
            if len(self._tail) > 2 * _END_BYTES:
                self.spool()
                del self._tail[:-_END_BYTES]

    def spool(self) -> Path | None:
        """Write to a file from now on, what came before included; returns its path, `None` when that cannot be."""
        if self.path is None and not self.fault:
            try:
                path = self._make_path()
                self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except OSError as error:
                self.fault = error.strerror or str(error)
                return None
            self.path = path
            self._write(bytes(self._head) + bytes(self._tail))
        return self.path

    @property
    def line_count(self) -> int:
        """Lines so far, one that has no end yet included."""
        end = self._tail or self._head
        return self.lines + bool(end and not end.endswith(b"\n"))

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, data: bytes) -> None:
        """Append to the file; a disk that takes no more ends the spooling, not the command."""
        if self._stored >= self._spool_limit:
            return
        view = memoryview(data)[: self._spool_limit - self._stored]
        try:
            while view and self._descriptor is not None:
                written = os.write(self._descriptor, view)
                self._stored += written
                view = view[written:]
        except OSError as error:
            self.fault = error.strerror or str(error)
            self.close()

    def text(self, max_chars: int, max_lines: int) -> CollectedText:
        """Return the text within the limits, safe for every terminal; stores the whole where something is cut."""
        if self.size <= len(self._head) + len(self._tail):
            text = sanitize_output(bytes(self._head + self._tail).decode("utf-8", "replace"))
            bounded = bound_middle(text, max_chars, max_lines)
            if bounded is None:
                return CollectedText(text, self.size)
            self.spool()
            return self._cut(bounded)
        head = take_head(_clean(bytes(self._head)), max_chars // 2, max_lines // 2)
        tail = take_tail(_clean(bytes(self._tail)), max_chars - max_chars // 2, max_lines - max_lines // 2)
        return self._cut(
            Bounded(
                head=head,
                tail=tail,
                omitted_chars=max(self.size - len(head.encode()) - len(tail.encode()), 0),
                omitted_lines=max(self.lines - head.count("\n") - tail.count("\n"), 0),
            )
        )

    def _cut(self, bounded: Bounded) -> CollectedText:
        path = "" if self.path is None else str(self.path)
        notice = notice_text(bounded, self.size, path)
        if self.fault or self._stored < self.size:
            why = f": {self.fault}" if self.fault else ""
            notice = f"{notice[:-1]} Only its first {format_size(self._stored)} were stored{why}.]"
        return CollectedText(bounded.joined(notice), self.size, path, truncated=True)


def _clean(data: bytes) -> str:
    """Decode a piece of a longer output: characters that the cut broke are left out at both ends."""
    start = 0
    while start < min(len(data), 3) and data[start] & 0xC0 == 0x80:
        start += 1
    return sanitize_output(codecs.getincrementaldecoder("utf-8")("replace").decode(data[start:]))
