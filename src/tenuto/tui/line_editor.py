"""A one-line text with a cursor: the filter of a picker, the feedback to a denial. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tenuto.tui.editing import blank_before, word_after, word_before


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
