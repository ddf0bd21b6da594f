"""The rows at the bottom that are painted again and again: what still changes, status, panels, the prompt, footer.

They are arranged, made into cells, and what differs from what stands there is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import NamedTuple

from tenuto.guard.terminal import BLANK, blank_for_terminal
from tenuto.tui.chrome import ABOVE_PROMPT, Chrome
from tenuto.tui.complete.commands import ghost_hint
from tenuto.tui.first_paint.paint import ERASE_DOWN
from tenuto.tui.inline.output import Size
from tenuto.tui.inline.printer import Printer
from tenuto.tui.inline.prompt import PromptEditor
from tenuto.tui.paint import Paint
from tenuto.tui.render.line import EMPTY, Line, Span, plain
from tenuto.tui.render.theme import Theme
from tenuto.tui.render.width import cell_width, split_graphemes, truncate
from tenuto.tui.state.state import UiState
from tenuto.tui.terminal.emoji_width import is_unsure_alone, pin_alone

Spans = tuple[Span, ...]
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"


class Cell(NamedTuple):
    """A character and the cells that it takes. `mark` tells apart rows of which all is to be written again."""

    text: str
    codes: str
    width: int
    mark: int = 0


Row = Sequence[Cell]


class Place(NamedTuple):
    """A row, and a cell of it."""

    row: int
    column: int


class CellRows:
    """Makes rows in the colours of `paint`. It knows those that were asked for since the last but one `turn`."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint
        self._theme: Theme = paint.theme
        self._columns = 0
        self._before: dict[Spans, Row] = {}
        self._now: dict[Spans, Row] = {}
        self._marks = 0

    def turn(self, columns: int) -> None:
        """Begin another frame, `columns` cells wide."""
        same = columns == self._columns and self._theme is self._paint.theme
        self._before, self._now = self._now if same else {}, {}
        self._columns, self._theme = columns, self._paint.theme

    def row(self, spans: Spans) -> Row:
        """Return the row of these spans, cut to the screen. Control characters in it are blanks."""
        row = self._now.get(spans)
        if row is None:
            row = self._now[spans] = self._before.get(spans) or self._make(spans)
        return row

    def _make(self, spans: Spans) -> Row:
        row: list[Cell] = []
        used = mark = 0
        for text, name in spans:
            codes = self._paint.codes(name)
            safe = blank_for_terminal(text).replace("\t", " ")
            watched = not safe.isascii()
            for start, end, width in split_graphemes(safe):
                if not width:
                    continue
                if used + width > self._columns:
                    return row
                if watched and not mark and is_unsure_alone(safe[start:end]):
                    # What a terminal shows of a character beyond its cells lies on those behind it.
                    mark = self._marks = self._marks + 1
                row.append(Cell(safe[start:end], codes, width, mark))
                used += width
        return row


class Painter:
    """Knows the rows that stand at the bottom of the terminal, and the cursor in them. `write` takes sequences."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.rows: Sequence[Row] | None = None
        self.cursor = Place(0, 0)
        self._shows_cursor = True
        self._doubted = False

    def paint(self, rows: Sequence[Row], cursor: Place, *, caret: bool, columns: int) -> None:
        """Make the terminal show these rows, each at most `columns` wide, and the cursor, visible with `caret`."""
        painted = self.rows or ()
        pieces: list[str] = []
        at = self.cursor if self.rows is not None else Place(0, 0)
        for number, (old, new) in enumerate(zip_longest(painted, rows)):
            if new is None:
                pieces += [_move(at, Place(number, 0)), ERASE_DOWN]
                at = Place(number, 0)
                break
            same = 0 if old is None or self._doubted else len(new) if old is new else _count_same(old, new)
            if old is not None and not self._doubted and same == len(new) == len(old):
                continue
            begin = Place(number, sum(cell.width for cell in new[:same]))
            pieces += [_move(at, begin), _write_cells(new[same:])]
            end = sum(cell.width for cell in new)
            if end < columns:
                pieces.append("\x1b[K")
            at = Place(number, end)  # behind the last column nobody knows where the terminal has its cursor
        if pieces:
            pieces = [HIDE_CURSOR * self._shows_cursor, NO_WRAP, *pieces, WRAP]
            self._shows_cursor = False
        pieces.append(_move(at, cursor))
        if caret != self._shows_cursor:
            pieces.append(SHOW_CURSOR if caret else HIDE_CURSOR)
            self._shows_cursor = caret
        self._write("".join(pieces))
        self.rows, self.cursor, self._doubted = rows, cursor, False

    def erase(self) -> None:
        """Take the rows away; the cursor is where the first of them began."""
        self._write(f"{_move(self.cursor, Place(0, 0))}{ERASE_DOWN}")
        self.forget()

    def erase_from(self, up: int) -> None:
        """Take away what begins so many rows above the cursor: the terminal has moved the rows itself."""
        move = f"\x1b[{up}A" if up else ""
        self._write(f"\r{move}{ERASE_DOWN}")
        self.forget()

    def doubt(self) -> None:
        """Write all rows again the next time: the terminal may have dropped some, as at another height."""
        self._doubted = True

    def forget(self) -> None:
        """Begin where the cursor is: nobody knows what stands there."""
        self.rows, self.cursor = None, Place(0, 0)

    def show_cursor(self) -> None:
        """Show the cursor, if it is hidden."""
        if not self._shows_cursor:
            self._shows_cursor = True
            self._write(SHOW_CURSOR)


def row_cells(row: Row) -> list[int]:
    """Return how many cells each character of a row takes, without the blanks at its end."""
    end = max((number + 1 for number, cell in enumerate(row) if cell.text.strip()), default=0)
    return [cell.width for cell in row[:end]]


def _count_same(old: Row, new: Row) -> int:
    """Return how many characters both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(old), len(new)))


def _move(at: Place, to: Place) -> str:
    """Return what moves the cursor. A row that is not there yet is made, and the screen scrolls for it."""
    if to.row > at.row:
        down = "\r\n" * (to.row - at.row)
        return down + (f"\x1b[{to.column}C" if to.column else "")
    up = f"\x1b[{at.row - to.row}A" if at.row > to.row else ""
    if to.column == at.column:
        return up
    return f"{up}\r" + (f"\x1b[{to.column}C" if to.column else "")


def _write_cells(cells: Row) -> str:
    """Return characters with their colours; what stands in a colour is in no other one's sequence."""
    pieces: list[str] = []
    codes = ""
    for cell in cells:
        if cell.codes != codes:
            pieces.append(f"\x1b[0;{cell.codes}m" if cell.codes else "\x1b[0m")
            codes = cell.codes
        text = pin_alone(cell.text) if is_unsure_alone(cell.text) else cell.text
        pieces.append(text.replace(BLANK, ""))
    if codes:
        pieces.append("\x1b[0m")
    return "".join(pieces)


PROMPT_GLYPH = "❯ "
INDENT = "  "
LIVE_SHARE = 3
"""What still changes takes at most one of so many parts of the screen."""
PROMPT_SHARE = 3
"""So does the prompt; it scrolls then."""
MIN_PANEL_ROWS = 4
LIST_SHARE = 2
"""So does a list: the rows that it takes are scrolled away, and stay empty when it closes."""
LEAST_LIST_ROWS = 12
RULED_ROWS = 16
"""With fewer, neither a rule nor an empty row keeps what is open from what is above and below it."""
WHOLE_SCREEN = frozenset({"approval", "feedback", "block", "search", "found"})
"""What is read as a whole takes what it needs."""


@dataclass(slots=True)
class Rows:
    """What stands above the prompt and below it, and how many rows the prompt has."""

    above: list[Line] = field(default_factory=list[Line])
    below: list[Line] = field(default_factory=list[Line])
    prompt: int = 1
    placeholder: str = ""
    caret: bool = True


def arrange(state: UiState, printer: Printer, chrome: Chrome, size: Size, prompt_rows: int) -> Rows:
    """Return the rows of the bottom on a screen of this size: prompt and dialog first, the rest what is left."""
    columns, rows = size.columns, size.rows
    prompt = max(1, min(prompt_rows, rows // PROMPT_SHARE))
    status = chrome.status(columns)
    whole, ruled = chrome.whole, rows >= RULED_ROWS and not chrome.whole
    activity = [] if whole else [EMPTY, status] if status.spans else [EMPTY]
    footer = [] if whole else [chrome.footer(columns)]
    fixed = prompt + len(activity) + len(footer) + ruled
    spare = max(0, rows - fixed - MIN_PANEL_ROWS)
    has_list = _has_list(state, printer, columns, rows, rows - fixed)
    side = list(chrome.side(columns, min(spare, chrome.side_share(rows)), has_list=has_list))[:spare]
    most = rows if state.contexts[0] in WHOLE_SCREEN else max(LEAST_LIST_ROWS, rows // LIST_SHARE)
    panel = list(chrome.panel(columns, max(MIN_PANEL_ROWS, min(most, rows - fixed - len(side) - ruled))))
    panel = panel[: max(0, rows - fixed - len(side))]
    room = rows - fixed - len(side) - len(panel) - 1
    live = printer.live(columns, max(0, min(rows // LIVE_SHARE, room)))
    dialog = state.contexts[0] in ABOVE_PROMPT
    rule = [plain("─" * columns, "rule")] if ruled and (side or (dialog and panel)) else []
    above = [*live, *activity, *side, *rule, *(panel if dialog else ())]
    if dialog and ruled and len(above) + prompt + 1 < rows:
        above.append(EMPTY)
    below = [*(() if dialog else panel), *footer]
    return Rows(above, below, prompt, chrome.placeholder(columns - len(PROMPT_GLYPH)), chrome.takes_typing)


def _has_list(state: UiState, printer: Printer, columns: int, rows: int, room: int) -> bool:
    """Say whether the todo list stands right above, where it was printed: nobody needs it twice."""
    if not state.todo or state.todo_open or not printer.may_show(state.todo):
        return False
    return printer.shows(state.todo, room - len(printer.live(columns, rows // LIVE_SHARE)))


class Bottom:
    """Those rows in cells. `rows` is what shows; whoever paints sets it before."""

    def __init__(self, editor: PromptEditor, paint: Paint, state: Callable[[], UiState]) -> None:
        self.rows = Rows()
        self._editor = editor
        self._state = state
        self._cells = CellRows(paint)
        self._first = 0

    def cells(self, size: Size) -> tuple[list[Row], Place]:
        """Return the rows that fit a screen of this size, and where the cursor is in them."""
        rows = self.rows
        self._cells.turn(size.columns)
        prompt, cursor = self._prompt(size.columns)
        shown = [*(line.spans for line in rows.above), *prompt, *(line.spans for line in rows.below)][: size.rows]
        place = Place(min(len(rows.above) + cursor.row, len(shown) - 1), min(cursor.column, size.columns - 1))
        return [self._cells.row(spans) for spans in shown], place

    def _prompt(self, columns: int) -> tuple[list[Spans], Place]:
        """Return the rows of the prompt that show, and where the cursor is in them."""
        text, cursor = self._editor.text, self._editor.cursor
        rows = self._editor.rows()
        present = self._editor.row_of(rows, cursor)
        self._first = max(present - self.rows.prompt + 1, min(self._first, present, len(rows) - self.rows.prompt), 0)
        shown: list[Spans] = []
        for number, (start, end) in enumerate(rows[self._first : self._first + self.rows.prompt], self._first):
            mark = (INDENT, "text") if number else (PROMPT_GLYPH, self._mark_style())
            pieces = self._pieces(start, start + len(truncate(text[start:end], max(1, columns - len(INDENT)), "")))
            shown.append((mark, *pieces))
        if self._first + len(shown) == len(rows):
            last = shown[-1]
            said = ghost_hint(text, cursor, self._state().own_commands) if text else self.rows.placeholder
            hint = truncate(said, columns - sum(cell_width(piece) for piece, _style in last))
            shown[-1] = (*last, (hint, "placeholder")) if hint else last
        before = blank_for_terminal(text[rows[present][0] : cursor])
        return shown, Place(present - self._first, max(0, min(len(INDENT) + cell_width(before), columns - 1)))

    def _pieces(self, start: int, end: int) -> Spans:
        """Return a stretch of the prompt; what is selected in it has the ground of that."""
        text, marked = self._editor.text, self._editor.marked
        if marked is None:
            return ((text[start:end], "text"),)
        first, last = (max(start, min(place, end)) for place in marked)
        parts = ((start, first, "text"), (first, last, "selection"), (last, end, "text"))
        return tuple((text[begin:stop], style) for begin, stop, style in parts if begin < stop)

    def _mark_style(self) -> str:
        return "prompt.shell" if self._state().draft.text.startswith("!") else "prompt"
