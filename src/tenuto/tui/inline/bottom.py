"""The rows at the bottom that are painted again and again: what still changes, status, panels, the prompt, footer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest

from prompt_toolkit.application.current import get_app
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.containers import Container, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

from tenuto.guard.terminal import blank_for_terminal
from tenuto.tui.chrome import ABOVE_PROMPT, Chrome
from tenuto.tui.complete.commands import ghost_hint
from tenuto.tui.inline.output import REST
from tenuto.tui.inline.printer import Printer
from tenuto.tui.inline.prompt import PromptEditor
from tenuto.tui.machine.state import UiState
from tenuto.tui.paint import Paint
from tenuto.tui.render.line import EMPTY, Line, Span, plain
from tenuto.tui.render.theme import Theme
from tenuto.tui.render.width import cell_width, split_graphemes, truncate
from tenuto.tui.terminal.emoji_width import is_unsure_alone

Row = defaultdict[int, Char]
"""The characters of a row by cell."""
Spans = tuple[Span, ...]
MARKS = 64
_UNPAINTED = Char(" ", "[transparent]")
_COVERED = Char("", "")
"""The second cell of a wide character."""


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
        row: Row = defaultdict(lambda: _UNPAINTED)
        cell, mark = 0, ""
        for text, name in spans:
            style = self._paint.name(name)
            safe = blank_for_terminal(text).replace("\t", " ")
            watched = not safe.isascii()
            for start, end, width in split_graphemes(safe):
                if not width:
                    continue
                if cell + width > self._columns:
                    return row
                if watched and not mark and is_unsure_alone(safe[start:end]):
                    mark = self._next_mark()
                row[cell] = _char(safe[start:end], style + mark, width)
                for covered in range(cell + 1, cell + width):
                    row[covered] = _COVERED
                cell += width
        if mark and cell < self._columns:
            row[cell] = _char(REST, mark, 1)
        return row

    def _next_mark(self) -> str:
        """Return what makes the rest of a row differ from any that stood there.

        What a terminal shows of a character beyond its cells lies on those behind it: they are all written again.
        """
        self._marks = (self._marks + 1) % MARKS
        return f" class:again{self._marks}"


def cells_of(row: Row) -> list[int]:
    """Return how many cells each character of a row takes, without the blanks at its end."""
    end = max((cell + 1 for cell, char in row.items() if char.char.strip() and char.char != REST), default=0)
    return [row[cell].width for cell in range(end) if row[cell] is not _COVERED]


@lru_cache(maxsize=4_096)
def _char(text: str, style: str, width: int) -> Char:
    """Return a character that is `width` cells wide; prompt-toolkit would add up those that an emoji is joined of."""
    char = Char(text, style)
    char.width = width
    return char


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


class Bottom(Container):
    """prompt-toolkit's layout of those rows. `rows` is what shows; whoever paints sets it before."""

    def __init__(self, editor: PromptEditor, paint: Paint, state: Callable[[], UiState]) -> None:
        self.rows = Rows()
        self._editor = editor
        self._state = state
        self._cells = CellRows(paint)
        self._first = 0
        self._painted: list[Row] = []
        # What prompt-toolkit takes for the place that is typed in; it is painted here.
        self._window = Window(BufferControl(editor.buffer))
        self.layout = Layout(self, focused_element=self._window)

    def write_to_screen(  # noqa: PLR0917 - prompt-toolkit's
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        """Put the rows and the cursor on prompt-toolkit's screen."""
        rows, columns = self.rows, write_position.width
        self._cells.turn(columns)
        prompt, cursor = self._prompt(columns)
        shown = [*(line.spans for line in rows.above), *prompt, *(line.spans for line in rows.below)]
        self._put(screen, [self._cells.row(spans) for spans in shown[: write_position.height]])
        screen.height = min(len(shown), write_position.height)
        screen.width = columns
        screen.visible_windows_to_write_positions[self._window] = write_position
        screen.set_cursor_position(
            self._window, Point(x=min(cursor.x, columns - 1), y=min(len(rows.above) + cursor.y, screen.height - 1))
        )
        screen.show_cursor = rows.caret

    def _put(self, screen: Screen, rows: list[Row]) -> None:
        """Put the rows on the screen, without those that stand where they stood.

        prompt-toolkit looks at every cell of the two screens; rows that are on neither cost nothing.
        """
        before = get_app().renderer.last_rendered_screen
        painted, self._painted = self._painted, rows
        if before is None:
            screen.data_buffer.update(enumerate(rows))
            return
        before.data_buffer.clear()
        for y, (old, new) in enumerate(zip_longest(painted, rows)):
            if old is new:
                continue
            if old is not None:
                before.data_buffer[y] = old
            if new is not None:
                screen.data_buffer[y] = new

    def painted_cells(self) -> list[list[int]]:
        """Return the cells of each character in the rows that were painted last, without the blanks at their ends."""
        return [cells_of(row) for row in self._painted]

    def _prompt(self, columns: int) -> tuple[list[Spans], Point]:
        """Return the rows of the prompt that show, and where the cursor is in them."""
        text, cursor = self._editor.text, self._editor.cursor
        rows = self._editor.rows()
        present = self._editor.row_of(rows, cursor)
        self._first = max(present - self.rows.prompt + 1, min(self._first, present, len(rows) - self.rows.prompt), 0)
        shown: list[Spans] = []
        for number, (start, end) in enumerate(rows[self._first : self._first + self.rows.prompt], self._first):
            mark = (INDENT, "text") if number else (PROMPT_GLYPH, self._mark_style())
            shown.append((mark, (truncate(text[start:end], max(1, columns - len(INDENT)), ""), "text")))
        if self._first + len(shown) == len(rows):
            last = shown[-1]
            said = ghost_hint(text, cursor) if text else self.rows.placeholder
            hint = truncate(said, columns - sum(cell_width(piece) for piece, _style in last))
            shown[-1] = (*last, (hint, "placeholder")) if hint else last
        before = blank_for_terminal(text[rows[present][0] : cursor])
        return shown, Point(x=max(0, min(len(INDENT) + cell_width(before), columns - 1)), y=present - self._first)

    def _mark_style(self) -> str:
        return "prompt.shell" if self._state().draft.text.startswith("!") else "prompt"

    # --- what prompt-toolkit asks of a container ---

    def reset(self) -> None:
        """Nothing is kept that a new run should not find."""

    def preferred_width(self, max_available_width: int) -> Dimension:
        """Return that all of the width is taken."""
        return Dimension.exact(max_available_width)

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        """Return how many rows there are."""
        return Dimension.exact(len(self.rows.above) + self.rows.prompt + len(self.rows.below))

    def get_children(self) -> list[Container]:
        """Return where the keys go."""
        return [self._window]
