"""The rows at the bottom that are painted again and again: what still changes, status, panels, the prompt, footer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.containers import HSplit, VerticalAlign, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import AfterInput, Processor, Transformation, TransformationInput

from tenuto.guard.sanitize import blank_for_terminal
from tenuto.tui.around import ABOVE_PROMPT, PLACEHOLDER, Around
from tenuto.tui.complete.commands import ghost_hint
from tenuto.tui.inline.printer import Printer
from tenuto.tui.machine.state import UiState
from tenuto.tui.paint import Paint
from tenuto.tui.render.line import EMPTY, Line

PROMPT_GLYPH = "❯ "
INDENT = "  "
LIVE_SHARE = 3
"""What still changes takes at most one of so many parts of the screen."""
PROMPT_SHARE = 3
"""So does the prompt; it scrolls then."""
MIN_PANEL_ROWS = 4


@dataclass(slots=True)
class Rows:
    """What stands above the prompt and below it, and how many rows the prompt has."""

    above: list[Line] = field(default_factory=list[Line])
    below: list[Line] = field(default_factory=list[Line])
    prompt: int = 1


def arrange(state: UiState, printer: Printer, around: Around, size: Size, prompt_rows: int) -> Rows:
    """Return the rows of the bottom on a screen of this size: prompt and dialog first, the rest what is left."""
    columns, rows = size.columns, size.rows
    prompt = max(1, min(prompt_rows, rows // PROMPT_SHARE))
    status = around.status(columns)
    activity = [EMPTY, status] if status.spans else [EMPTY]
    fixed = prompt + len(activity) + 1
    side = list(around.side(columns))[: max(0, rows - fixed - MIN_PANEL_ROWS)]
    panel = list(around.panel(columns, max(MIN_PANEL_ROWS, rows - fixed - len(side) - 1)))
    panel = panel[: max(0, rows - fixed - len(side))]
    room = rows - fixed - len(side) - len(panel) - 1
    live = printer.live(columns, max(0, min(rows // LIVE_SHARE, room)))
    dialog = state.contexts[0] in ABOVE_PROMPT
    above = [*live, *activity, *side, *(panel if dialog else ())]
    if dialog and len(above) + prompt + 1 < rows:
        above.append(EMPTY)
    return Rows(above, [*(() if dialog else panel), around.footer(columns)], prompt)


def _hint(buffer: Buffer) -> str:
    """Return what stands dim behind the cursor: what to do here, or what a command may be followed by."""
    return ghost_hint(buffer.text, buffer.cursor_position) if buffer.text else PLACEHOLDER


class Safe(Processor):
    """Paints nothing that must not reach the terminal; what was pasted may have it (R-088)."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return a line as it is painted, as long as it is."""
        fragments = transformation_input.fragments
        return Transformation([(style, blank_for_terminal(text)) for style, text, *_ in fragments])


class Bottom:
    """prompt-toolkit's layout of those rows. `rows` is what shows; whoever paints sets it before."""

    def __init__(self, buffer: Buffer, paint: Paint, state: Callable[[], UiState]) -> None:
        self.rows = Rows()
        self._paint = paint
        self._state = state
        hint = AfterInput(lambda: [(paint.name("placeholder"), _hint(buffer))])
        self._editor = BufferControl(buffer, input_processors=[Safe(), hint])
        editor = Window(
            self._editor,
            wrap_lines=True,
            height=lambda: Dimension.exact(self.rows.prompt),
            get_line_prefix=self._prefix,
            style=paint.name("text"),
        )
        self.layout = Layout(
            HSplit(
                [self._lines(lambda: self.rows.above), editor, self._lines(lambda: self.rows.below)],
                align=VerticalAlign.TOP,
            ),
            focused_element=editor,
        )

    def _lines(self, lines: Callable[[], list[Line]]) -> Window:
        control = FormattedTextControl(lambda: self._fragments(lines()), focusable=False)
        return Window(control, height=lambda: Dimension.exact(len(lines())), wrap_lines=False)

    def _fragments(self, lines: list[Line]) -> StyleAndTextTuples:
        return [*self._paint.fragments(lines)]

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        if line or wrapped:
            return [("", INDENT)]
        style = "prompt.shell" if self._state().draft.text.startswith("!") else "prompt"
        return [(self._paint.name(style), PROMPT_GLYPH)]
