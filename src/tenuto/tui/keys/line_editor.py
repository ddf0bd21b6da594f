"""A one-line text with a cursor: the filter of a picker, the feedback to a denial. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from tenuto.tui.complete.paste import mark_at
from tenuto.tui.render.width import split_graphemes

REACH = 64
"""Characters that are looked at for the end of a user-perceived character."""
MAX_CUTS = 60


def stop_before(text: str, cursor: int) -> int:
    """Return where the cursor goes when it goes left: over a whole character as people see it, or a paste's mark."""
    if cursor <= 0:
        return 0
    mark = mark_at(text, cursor, side="before")
    if mark is not None:
        return mark[0]
    if text[cursor - 1].isascii():
        return cursor - 1
    begin = max(0, cursor - REACH, text.rfind("\n", 0, cursor) + 1)
    return begin + split_graphemes(text[begin:cursor])[-1][0]


def stop_after(text: str, cursor: int) -> int:
    """Return where the cursor goes when it goes right."""
    if cursor >= len(text):
        return len(text)
    mark = mark_at(text, cursor, side="after")
    if mark is not None:
        return mark[1]
    following = text[cursor : cursor + REACH].partition("\n")[0]
    if following[1:2].isascii():
        return cursor + 1
    return cursor + split_graphemes(following)[0][1] if following else cursor + 1


def word_before(text: str, cursor: int) -> int:
    """Return where the word before the cursor begins, as readline has it: letters and digits, so that `a/b.c` is three.

    The mark of a paste is never taken apart.
    """
    start = cursor
    while start and not _is_word(text, start - 1):
        start -= 1
    while start and _is_word(text, start - 1):
        start -= 1
    return _outside_mark(text, start, side=0)


def word_after(text: str, cursor: int) -> int:
    """Return where the word after the cursor ends."""
    end = cursor
    while end < len(text) and not _is_word(text, end):
        end += 1
    while end < len(text) and _is_word(text, end):
        end += 1
    return _outside_mark(text, end, side=1)


def blank_before(text: str, cursor: int) -> int:
    """Return where what stands between the cursor and the blank before it begins: a whole path, an option."""
    start = cursor
    while start and text[start - 1].isspace():
        start -= 1
    while start and not text[start - 1].isspace():
        start -= 1
    return _outside_mark(text, start, side=0)


def _is_word(text: str, place: int) -> bool:
    """Say whether a character belongs to a word; a mark does if what it stands on does."""
    least = max(0, place - REACH)
    while place > least and unicodedata.category(text[place])[0] == "M":
        place -= 1
    return text[place].isalnum() or text[place] == "_"


def _outside_mark(text: str, place: int, side: Literal[0, 1]) -> int:
    mark = mark_at(text, place)
    return mark[side] if mark is not None and mark[0] < place < mark[1] else place


class CutTexts:
    """The kill ring: what was cut comes back by yanking, and an older one by yanking again.

    Cuts in a row are one text. Whoever does anything else in between says so with `rest`.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._place = 0
        self._last: Literal["", "cut", "yank"] = ""

    def cut(self, text: str, *, before: bool) -> None:
        """Keep what was cut; `before` says that it stood before the cursor."""
        if self._last == "cut" and self._texts:
            self._texts[-1] = text + self._texts[-1] if before else self._texts[-1] + text
        else:
            self._texts.append(text)
            del self._texts[:-MAX_CUTS]
        self._place = len(self._texts) - 1
        self._last = "cut"

    def yank(self) -> str:
        """Return what was cut last, empty when nothing was."""
        if not self._texts:
            return ""
        self._place = len(self._texts) - 1
        self._last = "yank"
        return self._texts[-1]

    def yank_older(self) -> tuple[str, str]:
        """Return the text that was just put in and the one to put in its place; twice nothing where that is not so."""
        if self._last != "yank" or len(self._texts) < 2:
            return "", ""
        present = self._texts[self._place]
        self._place = (self._place - 1) % len(self._texts)
        return present, self._texts[self._place]

    def rest(self) -> None:
        """Something else was done."""
        self._last = ""


class LineEditor(Struct):
    """`cursor` is an offset in characters."""

    text: str = ""
    cursor: int = 0

    def set(self, text: str) -> None:
        """Take another text over, the cursor at its end; the same text leaves the cursor where it is."""
        if text != self.text:
            self.text = text
            self.cursor = len(text)

    def insert(self, text: str) -> None:
        """Insert at the cursor; line ends become spaces."""
        flat = " ".join(text.splitlines()) if "\n" in text or "\r" in text else text
        self.text = self.text[: self.cursor] + flat + self.text[self.cursor :]
        self.cursor += len(flat)

    def press(self, key: str) -> bool:
        """Do what an editing key asks; say whether it was one."""
        action = _ACTIONS.get(key)
        if action is None:
            return False
        action(self)
        return True

    def move(self, cursor: int) -> None:
        """Put the cursor there, or at the nearest end."""
        self.cursor = max(0, min(cursor, len(self.text)))

    def delete(self, begin: int, end: int) -> None:
        """Take the characters from `begin` to `end` out."""
        self.text = self.text[: max(0, begin)] + self.text[end:]
        self.cursor = max(0, begin)


def _each(keys: str, action: Callable[[LineEditor], None]) -> dict[str, Callable[[LineEditor], None]]:
    return dict.fromkeys(keys.split(), action)


_ACTIONS: dict[str, Callable[[LineEditor], None]] = {
    **_each("left ctrl+b", lambda editor: editor.move(editor.cursor - 1)),
    **_each("right ctrl+f", lambda editor: editor.move(editor.cursor + 1)),
    **_each("home ctrl+a", lambda editor: editor.move(0)),
    **_each("end ctrl+e", lambda editor: editor.move(len(editor.text))),
    **_each("ctrl+left alt+b alt+left", lambda editor: editor.move(word_before(editor.text, editor.cursor))),
    **_each("ctrl+right alt+f alt+right", lambda editor: editor.move(word_after(editor.text, editor.cursor))),
    **_each("backspace ctrl+h", lambda editor: editor.delete(editor.cursor - 1, editor.cursor)),
    **_each("delete ctrl+d", lambda editor: editor.delete(editor.cursor, editor.cursor + 1)),
    **_each("ctrl+w", lambda editor: editor.delete(blank_before(editor.text, editor.cursor), editor.cursor)),
    **_each(
        "alt+backspace ctrl+backspace",
        lambda editor: editor.delete(word_before(editor.text, editor.cursor), editor.cursor),
    ),
    **_each("alt+d alt+delete", lambda editor: editor.delete(editor.cursor, word_after(editor.text, editor.cursor))),
    **_each("ctrl+u", lambda editor: editor.delete(0, editor.cursor)),
    **_each("ctrl+k", lambda editor: editor.delete(editor.cursor, len(editor.text))),
}
