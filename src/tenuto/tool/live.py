"""Live output of a running command: decoded, safe, and not more often than anyone can read."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable

from tenuto.guard.sanitize import sanitize_for_terminal
from tenuto.text.bounding import cut_tail

_FLUSH_SECONDS = 0.1
_FLUSH_BYTES = 16_384
"""A flush carries at most this much: whoever watches sees the end of a flood, the file has all of it."""
_LONGEST_SEQUENCE = 256


class LiveOutput:
    """Gathers chunks and hands their text to `emit` about ten times a second."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = bytearray()
        self._unfinished = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._pending += chunk
        if len(self._pending) > 2 * _FLUSH_BYTES:
            del self._pending[:-_FLUSH_BYTES]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._flush)

    def close(self) -> None:
        """Hand over what is left and fall silent."""
        if self._timer is not None:
            self._timer.cancel()
        self._flush()
        self._emit = _discard

    def _flush(self) -> None:
        self._timer = None
        text = self._unfinished + self._decoder.decode(bytes(self._pending))
        self._pending.clear()
        # A sequence that the flush cut in two must not lose its beginning and show its end.
        escape = text.rfind("\x1b", max(len(text) - _LONGEST_SEQUENCE, 0))
        self._unfinished = text[escape:] if escape >= 0 and _is_unfinished(text[escape:]) else ""
        text = cut_tail(text[: len(text) - len(self._unfinished)], _FLUSH_BYTES)
        safe = sanitize_for_terminal(text.replace("\r\n", "\n").replace("\r", "\n"))
        if safe:
            self._emit(safe)


def _is_unfinished(sequence: str) -> bool:
    """Whether a text that begins with ESC has not reached the end of its sequence."""
    if len(sequence) == 1:
        return True
    if sequence[1] == "[":
        return not any("@" <= char <= "~" for char in sequence[2:])
    if sequence[1] in "]PX^_":
        return not any(char in "\x07\x9c\n" for char in sequence)
    return False


def _discard(_: str) -> None:
    """The call is over."""
