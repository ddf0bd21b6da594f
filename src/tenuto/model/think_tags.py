"""`<think>` at the start of an answer's text, as servers without a reasoning parser send it."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


class ThinkSplitter:
    """Sorts streamed text into thinking and answer.

    Only an answer that *begins* with the tag has thinking in it; a later `<think>` is text (an answer may be about
    it). What could be the start of a tag is held back until that is decided.
    """

    def __init__(self) -> None:
        self._held = ""
        self._state = "start"

    def feed(self, text: str) -> tuple[str, str]:
        """Return the thinking and the answer text that are certain after `text`."""
        if self._state == "answer":
            return "", text
        self._held += text
        if self._state == "start":
            begun = self._held.lstrip()
            if OPEN.startswith(begun) and begun != OPEN:
                return "", ""
            if not begun.startswith(OPEN):
                self._state = "answer"
                answer, self._held = self._held, ""
                return "", answer
            self._state, self._held = "thinking", begun.removeprefix(OPEN)
        if self._state == "thinking":
            return self._think()
        return self._after()

    def flush(self) -> tuple[str, str]:
        """Return what is still held back when the stream has ended."""
        held, self._held = self._held, ""
        if self._state == "thinking":
            return held, ""
        return "", "" if self._state == "after" else held

    def _think(self) -> tuple[str, str]:
        place = self._held.find(CLOSE)
        if place < 0:
            keep = _tag_start(self._held)
            thinking, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
            return thinking, ""
        thinking, self._held = self._held[:place], self._held[place + len(CLOSE) :]
        self._state = "after"
        return thinking, self._after()[1]

    def _after(self) -> tuple[str, str]:
        """Leave out the blank lines between the thinking and the answer."""
        answer, self._held = self._held.lstrip("\r\n"), ""
        if answer:
            self._state = "answer"
        return "", answer


def _tag_start(text: str) -> int:
    """Return how many characters at the end may be the beginning of the closing tag."""
    for length in range(min(len(text), len(CLOSE) - 1), 0, -1):
        if text.endswith(CLOSE[:length]):
            return length
    return 0
