"""The rows at the bottom that are painted again and again: what still changes, status, panels, the prompt, footer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tenuto.guard.terminal import blank_for_terminal
from tenuto.tui.chrome import ABOVE_PROMPT, Chrome
from tenuto.tui.complete.commands import ghost_hint
from tenuto.tui.inline.output import Size
from tenuto.tui.inline.painter import CellRows, Place, Row, Spans
from tenuto.tui.inline.printer import Printer
from tenuto.tui.inline.prompt import PromptEditor
from tenuto.tui.paint import Paint
from tenuto.tui.render.line import EMPTY, Line, plain
from tenuto.tui.render.width import cell_width, truncate
from tenuto.tui.state.state import UiState

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
            shown.append((mark, (truncate(text[start:end], max(1, columns - len(INDENT)), ""), "text")))
        if self._first + len(shown) == len(rows):
            last = shown[-1]
            said = ghost_hint(text, cursor) if text else self.rows.placeholder
            hint = truncate(said, columns - sum(cell_width(piece) for piece, _style in last))
            shown[-1] = (*last, (hint, "placeholder")) if hint else last
        before = blank_for_terminal(text[rows[present][0] : cursor])
        return shown, Place(present - self._first, max(0, min(len(INDENT) + cell_width(before), columns - 1)))

    def _mark_style(self) -> str:
        return "prompt.shell" if self._state().draft.text.startswith("!") else "prompt"
