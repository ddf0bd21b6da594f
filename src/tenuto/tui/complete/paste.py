"""Folding of large pastes: the editor shows a short mark, the model gets every byte (R-099). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

FOLD_CHARACTERS = 1_000
FOLD_LINES = 15
_MARK = re.compile(r"\[Pasted text #(\d+)(?: \+\d+ lines)?\]")


def is_long(text: str) -> bool:
    """Say whether a paste is so long that the editor shows a mark in its place."""
    return len(text) > FOLD_CHARACTERS or text.count("\n") >= FOLD_LINES


class Pastes:
    """The pastes that marks in a draft stand for, by number. Numbers are never used twice in a session."""

    __slots__ = ("_next", "_texts")

    def __init__(self) -> None:
        self._next = 1
        self._texts: dict[int, str] = {}

    def __len__(self) -> int:
        """Return how many pastes are kept."""
        return len(self._texts)

    def fold(self, text: str) -> str:
        """Return what the editor shows for a paste: the text itself, or a mark when it is long."""
        if not is_long(text):
            return text
        number = self._next
        self._next += 1
        self._texts[number] = text
        lines = text.count("\n") + 1
        return f"[Pasted text #{number} +{lines} lines]" if lines > 1 else f"[Pasted text #{number}]"

    def expand(self, text: str) -> str:
        """Return the text with every mark of a kept paste replaced by what was pasted; marks inside it stay."""
        return _MARK.sub(lambda mark: self._texts.get(int(mark[1]), mark[0]), text) if self._texts else text

    def keep(self, texts: Iterable[str]) -> None:
        """Forget the pastes that no mark in `texts` stands for."""
        used = {int(mark[1]) for text in texts for mark in _MARK.finditer(text)}
        self._texts = {number: text for number, text in self._texts.items() if number in used}
