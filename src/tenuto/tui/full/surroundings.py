"""Everything on the screen but the transcript and the editor: status, panels, popups, footer."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Size

from tenuto.config.settings import UiSettings
from tenuto.tui.full import panels
from tenuto.tui.full.keyboard import Keyboard
from tenuto.tui.full.palette import Palette
from tenuto.tui.full.rows import Rows
from tenuto.tui.full.status import footer_line, status_line
from tenuto.tui.machine import intent as intents
from tenuto.tui.render.line import Line, Span
from tenuto.tui.render.options import DEFAULT, glyphs_for
from tenuto.tui.runner import Runner

FRAME_SECONDS = 0.1
TOAST_SECONDS = 4.0
MIN_TRANSCRIPT_ROWS = 4
FIXED_ROWS = 3
"""The status line, the rule and the footer."""
DIALOGS = frozenset({"approval", "feedback", "picker", "help"})
"""What needs the room that the queue and the todo list take otherwise."""
PROMPT_GLYPH = "❯ "


class Surroundings:
    """The widgets, and what they show of the machine's state.

    `screen` gives the size of the screen and the rows of the editor; `clock` is seconds.
    """

    def __init__(
        self,
        runner: Runner,
        keyboard: Keyboard,
        palette: Palette,
        ui: UiSettings,
        home: str,
        *,
        screen: Callable[[], tuple[Size, int]],
        clock: Callable[[], float],
    ) -> None:
        self._runner = runner
        self._keyboard = keyboard
        self._ui = ui
        self._home = home
        self._screen = screen
        self._clock = clock
        self._glyphs = glyphs_for(DEFAULT)
        self._toast: tuple[Span, float] | None = None
        self._shown = ""
        self._full = False
        self._scroll = 0
        self._choices: dict[int, int] = {}
        self.status = Rows(palette, "status")
        self.side = Rows(palette, "side")
        self.rule = Rows(palette, "rule")
        self.panel = Rows(palette, "panel", click=self._click, scroll=self._wheel)
        self.glyph = Rows(palette, "glyph")
        self.footer = Rows(palette, "footer")

    # --- what is shown ---

    def show_all(self) -> None:
        """Show everything anew."""
        size, _ = self._screen()
        self.rule.show_lines([Line((("─" * max(1, size.width), "rule"),))])
        self.show_prompt(self._runner.state.draft.text)
        self.show_panels()

    def show_prompt(self, text: str) -> None:
        """Show what kind of prompt is being written."""
        style = "prompt.shell" if text.startswith("!") else "prompt"
        self.glyph.show_lines([Line(((PROMPT_GLYPH, style),))])
        self.show_status()

    def show_status(self) -> None:
        """Show the footer, and the line above the editor."""
        state, now = self._runner.state, self._clock()
        size, _ = self._screen()
        frame = None if self._ui.reduce_motion else int(now / FRAME_SECONDS)
        toast = self._toast[0] if self._toast is not None else None
        self.status.show_lines([status_line(state, now, size.width, frame, toast)])
        self.footer.show_lines([footer_line(state, size.width, self._home)])

    def show_panels(self) -> None:
        """Show what is open around the editor. The draft stays where it is."""
        state = self._runner.state
        size, editor_rows = self._screen()
        self._keyboard.follow_state()
        dialog = state.contexts[0] in DIALOGS
        self.side.show_lines(() if dialog else panels.side_panel(state, size.width, self._glyphs).lines)
        request = state.approvals.current
        shown = request.request_id if request is not None else state.contexts[0]
        if shown != self._shown:
            self._shown, self._full, self._scroll = shown, False, 0
        taken = FIXED_ROWS + len(self.side.lines) + editor_rows
        spare = min(MIN_TRANSCRIPT_ROWS, size.height // 6)
        panel = self._open_panel(size.width, max(4, size.height - taken - spare))
        self._scroll, self._choices = panel.scrolled, panel.choices
        self.panel.show_lines(panel.lines)
        self.show_status()

    def _open_panel(self, width: int, rows: int) -> panels.Panel:
        state, line = self._runner.state, self._keyboard.line
        match state.contexts[0]:
            case "approval" | "feedback":
                return panels.approval_panel(
                    state, width, rows, self._glyphs, line, full=self._full, scroll=self._scroll
                )
            case "picker":
                return panels.picker_panel(state, width, rows, line)
            case "help":
                return panels.help_panel(width, rows, self._scroll)
            case "completion":
                return panels.completion_panel(state, width, rows)
            case _:
                return panels.NOTHING

    # --- toasts ---

    @property
    def moving(self) -> bool:
        """Whether something here goes away with time."""
        return self._toast is not None

    def show_toast(self, text: str, style: str) -> None:
        """Show a line for a few seconds."""
        self._toast = ((text, style), self._clock() + TOAST_SECONDS)
        self.show_status()

    def pass_time(self) -> None:
        """Bring what depends on the time up to now."""
        if self._toast is not None and self._clock() >= self._toast[1]:
            self._toast = None
        self.show_status()

    # --- what the person does here ---

    def scroll_page(self, direction: int) -> bool:
        """Scroll the open panel by a page; `False` when it is not one that scrolls."""
        if not self._full and self._runner.state.contexts[0] != "help":
            return False
        self._wheel(direction * max(1, len(self.panel.lines) - 8))
        return True

    def show_whole_approval(self) -> bool:
        """Show all of the command or change, or its head again."""
        self._full = not self._full
        self._scroll = 0
        self.show_panels()
        return True

    def _wheel(self, rows: int) -> None:
        state = self._runner.state
        if state.contexts[0] == "picker":
            self._runner.handle(intents.MovePicker(rows))
        elif state.contexts[0] == "completion":
            self._runner.handle(intents.MoveCompletion(rows))
        else:
            self._full = state.approvals.current is not None
            self._scroll = max(0, self._scroll + rows)
            self.show_panels()

    def _click(self, row: int) -> None:
        place = self._choices.get(row)
        if place is None:
            return
        match self._runner.state.contexts[0]:
            case "approval":
                self._runner.handle(intents.AnswerApproval(place))
            case "picker":
                self._runner.handle(intents.PickChoice(place))
            case "completion":
                self._runner.handle(intents.AcceptCompletion(index=place))
            case _:
                pass
