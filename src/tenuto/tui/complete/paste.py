"""Folding of large pastes: the editor shows a short mark, the model gets every byte (R-099). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

FOLD_CHARACTERS = 1_000
FOLD_LINES = 15
MARK_CHARACTERS = 60
"""No mark is longer."""
_MARK = re.compile(r"\[Pasted text #(\d+)(?: \+\d+ lines)?\]")

Fold = tuple[int, int]
"""Where a paste begins in the whole text, and how many characters it has."""


def is_long(text: str) -> bool:
    """Say whether a paste is so long that the editor shows a mark in its place."""
    return len(text) > FOLD_CHARACTERS or text.count("\n") >= FOLD_LINES


def mark_at(text: str, cursor: int, side: Literal["before", "after", "any"] = "any") -> tuple[int, int] | None:
    """Return where the mark that the cursor is in begins and ends, or the one that ends or begins right there."""
    begin = max(0, cursor - MARK_CHARACTERS)
    if "]" not in text[begin : cursor + MARK_CHARACTERS]:
        return None
    for mark in _MARK.finditer(text, begin, cursor + MARK_CHARACTERS):
        start, end = mark.span()
        touches = (side != "after" and cursor == end) or (side != "before" and cursor == start)
        if start < cursor < end or touches:
            return start, end
    return None


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
        return self.mark(text) if is_long(text) else text

    def mark(self, text: str) -> str:
        """Return a mark that stands for this text from now on."""
        number = self._next
        self._next += 1
        self._texts[number] = text
        lines = text.count("\n") + 1
        return f"[Pasted text #{number} +{lines} lines]" if lines > 1 else f"[Pasted text #{number}]"

    def expand(self, text: str) -> str:
        """Return the text with every mark of a kept paste replaced by what was pasted; marks inside it stay."""
        return _MARK.sub(lambda mark: self._texts.get(int(mark[1]), mark[0]), text) if self._texts else text

    def folds(self, text: str) -> tuple[Fold, ...]:
        """Return where in the expanded text the pastes stand."""
        found: list[Fold] = []
        grown = 0
        for mark in _MARK.finditer(text) if self._texts else ():
            pasted = self._texts.get(int(mark[1]))
            if pasted is not None:
                found.append((mark.start() + grown, len(pasted)))
                grown += len(pasted) - len(mark[0])
        return tuple(found)

    def fold_at(self, text: str, folds: Sequence[Fold]) -> str:
        """Return a whole text with marks where the pastes stand; the reverse of `expand`."""
        pieces: list[str] = []
        place = 0
        for start, length in folds:
            if place <= start and start + length <= len(text):
                pieces += [text[place:start], self.mark(text[start : start + length])]
                place = start + length
        return "".join([*pieces, text[place:]])

    def fold_again(self, text: str) -> str:
        """Return a text in which the pastes that are kept stand as their marks again, where they are as they were."""
        for number, pasted in self._texts.items():
            if is_long(pasted) and pasted in text:
                lines = pasted.count("\n") + 1
                mark = f"[Pasted text #{number} +{lines} lines]" if lines > 1 else f"[Pasted text #{number}]"
                text = text.replace(pasted, mark, 1)
        return text

    def keep(self, texts: Iterable[str]) -> None:
        """Forget the pastes that no mark in `texts` stands for."""
        used = {int(mark[1]) for text in texts for mark in _MARK.finditer(text)}
        self._texts = {number: text for number, text in self._texts.items() if number in used}
