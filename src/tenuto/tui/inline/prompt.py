"""The editor that the prompt is written in, with the keys of the full screen's composer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from tenuto.tui.keys.line_editor import CutTexts, blank_before, stop_after, stop_before, word_after, word_before
from tenuto.tui.render.line import break_text
from tenuto.tui.render.width import cell_width, take_cells

MAX_UNDO = 100

Row = tuple[int, int]
"""(start, end) of a row on the screen, as offsets in the text."""


class PromptEditor:
    """`text` is what is written, `cursor` an offset in characters; `changed` hears both. `width`: cells of a row."""

    def __init__(self, changed: Callable[[str, int], None], width: Callable[[], int]) -> None:
        self.text = ""
        self.cursor = 0
        self._changed = changed
        self._width = width
        self._cuts = CutTexts()
        self._cutting = False
        self._undone: list[tuple[str, int]] = []
        self._before: list[tuple[str, int]] = []
        self._typing = False
        self.marked: tuple[int, int] | None = None
        self._known: tuple[tuple[str, int], list[Row]] = (("", 0), [])

    # --- the draft ---

    def set_draft(self, text: str, cursor: int) -> None:
        """Put a text in, the cursor at `cursor`. Can be undone, unless it is empty."""
        text = text.replace("\r\n", "\n")
        if text != self.text:
            self._remember(typing=False)
            if not text:
                self._before.clear()
        self._put(text, cursor)

    def insert_text(self, text: str) -> None:
        """Insert at the cursor, and tell."""
        self._remember(typing=False)
        self._put(self.text[: self.cursor] + text + self.text[self.cursor :], self.cursor + len(text))
        self.tell()

    def mark(self, span: tuple[int, int] | None) -> None:
        """Show these characters as selected."""
        self.marked = span

    def tell(self) -> None:
        """Say what the draft is now."""
        self._changed(self.text, self.cursor)

    def _put(self, text: str, cursor: int) -> None:
        self.text = text
        self.cursor = max(0, min(cursor, len(text)))

    # --- rows ---

    def rows(self) -> list[Row]:
        """Return the rows as they show."""
        width = max(1, self._width())
        known = self.text, width
        if self._known[0] != known:
            self._known = (known, break_prompt(self.text, width))
        return self._known[1]

    def row_of(self, rows: list[Row], cursor: int) -> int:
        """Return the row that the cursor is in."""
        return bisect_right(rows, cursor, key=lambda row: row[0]) - 1

    def _row(self, rows: list[Row]) -> int:
        return self.row_of(rows, self.cursor)

    @property
    def on_first_row(self) -> bool:
        """Whether Up has nowhere to go."""
        return self._row(self.rows()) == 0

    @property
    def on_last_row(self) -> bool:
        """Whether Down has nowhere to go."""
        rows = self.rows()
        return self._row(rows) == len(rows) - 1

    # --- keys ---

    def press(self, key: str, character: str | None) -> None:
        """Do an editing key: insert what it types, else what it stands for; nothing for any other."""
        self._cutting = False
        if character is not None:
            self._remember(typing=not character.isspace())
            self._put(self.text[: self.cursor] + character + self.text[self.cursor :], self.cursor + len(character))
        else:
            action = _ACTIONS.get(key)
            if action is None:
                return
            action(self)
        if not self._cutting:
            self._cuts.rest()
        self.tell()

    def _remember(self, *, typing: bool) -> None:
        """Make the present text one that undo comes back to; the characters of a word count as one change."""
        if not (typing and self._typing):
            self._before.append((self.text, self.cursor))
            del self._before[:-MAX_UNDO]
        self._undone.clear()
        self._typing = typing

    def undo(self) -> None:
        """Go back by one change."""
        self._restore(self._before, self._undone)

    def redo(self) -> None:
        """Take the last undo back."""
        self._restore(self._undone, self._before)

    def _restore(self, source: list[tuple[str, int]], target: list[tuple[str, int]]) -> None:
        if source:
            target.append((self.text, self.cursor))
            self._put(*source.pop())
        self._typing = False

    def move(self, cursor: int) -> None:
        """Put the cursor there, or at the nearest end."""
        self.cursor = max(0, min(cursor, len(self.text)))
        self._typing = False

    def move_row(self, step: int) -> None:
        """Go a row up or down, in the same column as far as there is one."""
        rows = self.rows()
        present = self._row(rows)
        wanted = max(0, min(len(rows) - 1, present + step))
        if wanted == present:
            return
        column = cell_width(self.text[rows[present][0] : self.cursor])
        start, end = rows[wanted]
        last = end if wanted == len(rows) - 1 or self.text[end : end + 1] == "\n" else max(start, end - 1)
        self.move(min(start + take_cells(self.text[start:end], column), last))

    def move_in_row(self, *, to_end: bool) -> None:
        """Go to the beginning or the end of the line."""
        if to_end:
            end = self.text.find("\n", self.cursor)
            self.move(len(self.text) if end < 0 else end)
        else:
            self.move(self.text.rfind("\n", 0, self.cursor) + 1)

    def delete(self, begin: int, end: int) -> None:
        """Take the characters from `begin` to `end` out."""
        if max(0, begin) < min(end, len(self.text)):
            self._remember(typing=False)
            self._put(self.text[: max(0, begin)] + self.text[end:], max(0, begin))

    def kill(self, begin: int, end: int) -> None:
        """Cut: what was cut last can be put in again."""
        self._cutting = True
        if begin < end:
            self._cuts.cut(self.text[begin:end], before=end == self.cursor)
            self.delete(begin, end)

    def kill_line_left(self) -> None:
        """Cut to the beginning of the line; there, the line end before it."""
        start = self.text.rfind("\n", 0, self.cursor) + 1
        self.kill(start if start < self.cursor else max(0, self.cursor - 1), self.cursor)

    def kill_line_right(self) -> None:
        """Cut to the end of the line; there, the line end itself."""
        end = self.text.find("\n", self.cursor)
        self.kill(self.cursor, len(self.text) if end < 0 else max(end, self.cursor + 1))

    def yank(self) -> None:
        """Insert what was cut last."""
        self._cutting = True
        self._replace(self.cursor, self._cuts.yank())

    def yank_older(self) -> None:
        """Put what was cut before that in its place."""
        self._cutting = True
        present, older = self._cuts.yank_older()
        if present:
            self._replace(self.cursor - len(present), older)

    def _replace(self, begin: int, text: str) -> None:
        """Put a text in the place of what stands between `begin` and the cursor."""
        if text:
            self._remember(typing=False)
            self._put(self.text[:begin] + text + self.text[self.cursor :], begin + len(text))

    def delete_left(self) -> None:
        """Take the character before the cursor out, or the mark of a paste."""
        self.delete(stop_before(self.text, self.cursor), self.cursor)

    def delete_right(self) -> None:
        """Take the character after the cursor out, or the mark of a paste."""
        self.delete(self.cursor, stop_after(self.text, self.cursor))


def break_prompt(text: str, width: int) -> list[Row]:
    """Return the rows of a prompt, broken between words; the blanks there belong to the row that they end.

    No character is lost. Behind a line that fills its last row there is one for the cursor.
    """
    rows: list[Row] = []
    offset = 0
    for line in text.split("\n"):
        starts = [start for start, _end in break_text(line.replace("\t", " "), width)]
        ends = [*starts[1:], len(line)]
        rows.extend((offset + start, offset + end) for start, end in zip(starts, ends, strict=True))
        if cell_width(line[starts[-1] :]) >= width:
            rows.append((offset + len(line), offset + len(line)))
        offset += len(line) + 1
    return rows


def _each(keys: str, action: Callable[[PromptEditor], None]) -> dict[str, Callable[[PromptEditor], None]]:
    return dict.fromkeys(keys.split(), action)


_ACTIONS: dict[str, Callable[[PromptEditor], None]] = {
    **_each("left ctrl+b", lambda editor: editor.move(stop_before(editor.text, editor.cursor))),
    **_each("right ctrl+f", lambda editor: editor.move(stop_after(editor.text, editor.cursor))),
    **_each("up", lambda editor: editor.move_row(-1)),
    **_each("down", lambda editor: editor.move_row(1)),
    **_each("home ctrl+a", lambda editor: editor.move_in_row(to_end=False)),
    **_each("end ctrl+e", lambda editor: editor.move_in_row(to_end=True)),
    **_each("ctrl+left alt+b alt+left", lambda editor: editor.move(word_before(editor.text, editor.cursor))),
    **_each("ctrl+right alt+f alt+right", lambda editor: editor.move(word_after(editor.text, editor.cursor))),
    **_each("backspace ctrl+h", PromptEditor.delete_left),
    **_each("delete ctrl+d", PromptEditor.delete_right),
    **_each("ctrl+w", lambda editor: editor.kill(blank_before(editor.text, editor.cursor), editor.cursor)),
    **_each(
        "ctrl+backspace alt+backspace",
        lambda editor: editor.kill(word_before(editor.text, editor.cursor), editor.cursor),
    ),
    **_each("alt+d alt+delete", lambda editor: editor.kill(editor.cursor, word_after(editor.text, editor.cursor))),
    **_each("ctrl+u super+backspace", PromptEditor.kill_line_left),
    **_each("ctrl+k", PromptEditor.kill_line_right),
    **_each("ctrl+y", PromptEditor.yank),
    **_each("alt+y", PromptEditor.yank_older),
    **_each("ctrl+underscore super+z", PromptEditor.undo),
    **_each("ctrl+shift+z", PromptEditor.redo),
}
