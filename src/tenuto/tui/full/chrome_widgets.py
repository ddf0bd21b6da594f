"""The widgets around the transcript and the editor. What they say comes from `tui/chrome.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tenuto.config.settings import UiSettings
from tenuto.tui.chrome import ABOVE_PROMPT, DIALOGS, Chrome
from tenuto.tui.full.palette import Palette
from tenuto.tui.keys.keyboard import Keyboard
from tenuto.tui.render.line import EMPTY, Line, Span
from tenuto.tui.render.options import DEFAULT, glyphs_for
from tenuto.tui.runner import Runner


class Rows(Widget, can_focus=False):
    """Paints lines as they are. Another number of lines is another height, the only thing that costs a layout.

    `click` gets the row that was clicked, `scroll` the rows that the wheel asks for.
    """

    def __init__(
        self,
        palette: Palette,
        name: str,
        *,
        click: Callable[[int], None] | None = None,
        scroll: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(id=name)
        self._palette = palette
        self._click = click
        self._scroll = scroll
        self.lines: Sequence[Line] = ()

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Show these; none at all takes the widget off the screen."""
        if lines == self.lines:
            return
        resized = len(lines) != len(self.lines) or bool(lines) != self.display
        self.lines = lines
        if resized:
            self.styles.height = len(lines)
            self.display = bool(lines)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one row."""
        width = self.size.width
        return self._palette.strip(self.lines[y], width) if y < len(self.lines) else Strip.blank(width)

    def on_click(self, event: events.Click) -> None:
        """Say which row was clicked."""
        event.stop()
        if self._click is not None:
            self._click(event.y)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll back, where there is something to scroll."""
        event.stop()
        if self._scroll is not None:
            self._scroll(-1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll on."""
        event.stop()
        if self._scroll is not None:
            self._scroll(1)


MIN_TRANSCRIPT_ROWS = 4
FIXED_ROWS = 3
"""The status line, the rule and the footer."""
LOW_ROWS = 8
"""With fewer, what is open takes the place of rule, status line and footer."""
SMALL_ROWS = 15
"""With fewer, the transcript keeps one row beside what is open."""
BARE_ROWS = 5
"""With fewer, rule, status line and footer are left out always."""
ROOMY_ROWS = 20
"""From so many rows on, an empty one keeps the status line from the transcript, and an open dialog from the prompt."""
PROMPT_GLYPH = "❯ "
PANELS = ABOVE_PROMPT | {"completion"}


class ChromeWidgets:
    """Shows what of the machine's state belongs here.

    `screen` gives the size of the screen and the rows of the editor; `invite` gets what the empty editor says, and
    whether it has the caret; `clock` is seconds.
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
        invite: Callable[[str, bool], None],
        clock: Callable[[], float],
    ) -> None:
        self._runner = runner
        self._screen = screen
        self._invite = invite
        self._chrome = Chrome(runner, keyboard, ui, home, glyphs=glyphs_for(DEFAULT), clock=clock)
        self.status = Rows(palette, "status")
        self.side = Rows(palette, "side", click=self._chrome.choose_side_row)
        self.rule = Rows(palette, "rule")
        self.panel = Rows(palette, "panel", click=self._chrome.choose_row, scroll=self._wheel)
        self.glyph = Rows(palette, "glyph")
        self.footer = Rows(palette, "footer")

    def show_all(self) -> None:
        """Show everything anew."""
        self.show_prompt(self._runner.state.draft.text)
        self.show_panels()

    def show_prompt(self, text: str) -> None:
        """Show what kind of prompt is being written."""
        style = "prompt.shell" if text.startswith("!") else "prompt"
        self.glyph.show_lines([Line(((PROMPT_GLYPH, style),))])
        size, _ = self._screen()
        self._invite(self._chrome.placeholder(size.width - len(PROMPT_GLYPH)), self._chrome.takes_typing)
        self.show_status()

    def show_status(self) -> None:
        """Show the footer, and the line above the editor."""
        size, _ = self._screen()
        status = self._chrome.status(size.width)
        bare = self._is_bare(size.height)
        # At rest the status line's own row keeps the todo list from the transcript; with words it has one above it.
        apart = size.height >= ROOMY_ROWS and (bool(status.spans) or not self.side.lines)
        self.status.show_lines([] if bare else [EMPTY, status] if apart else [status])
        self.rule.show_lines([] if bare else [Line((("─" * max(1, size.width), "rule"),))])
        self.footer.show_lines([] if bare else [self._chrome.footer(size.width)])

    def _is_bare(self, height: int) -> bool:
        """Whether there is room for what is open and the prompt alone."""
        is_open = height < LOW_ROWS and self._runner.state.contexts[0] in PANELS
        return height < BARE_ROWS or is_open or self._chrome.whole

    def show_panels(self) -> None:
        """Show what is open around the editor. The draft stays where it is."""
        size, editor_rows = self._screen()
        whole = self._chrome.whole
        roomy, bare = size.height >= ROOMY_ROWS and not whole, self._is_bare(size.height)
        taken = (0 if bare else FIXED_ROWS + 2 * roomy) + editor_rows
        spare = 1 if size.height < SMALL_ROWS or whole else min(MIN_TRANSCRIPT_ROWS, size.height // 6)
        free = max(0, size.height - taken - spare)
        beside = free - (self._runner.state.contexts[0] in PANELS)
        self.side.show_lines(self._chrome.side(size.width, min(beside, self._chrome.side_share(size.height))))
        most = max(1, free - len(self.side.lines))
        panel = self._chrome.panel(size.width, most)[:most]
        apart = roomy and panel and self._runner.state.contexts[0] in DIALOGS
        self.panel.show_lines([*panel, EMPTY] if apart else panel)
        self.show_prompt(self._runner.state.draft.text)

    # --- toasts ---

    @property
    def moving(self) -> bool:
        """Whether something here goes away with time."""
        return self._chrome.moving

    def show_toast(self, text: str, style: str) -> None:
        """Show a line for a few seconds."""
        self._chrome.show_toast(text, style)
        self.show_status()

    def show_command(self, spans: Sequence[Span]) -> None:
        """Show what the user's own status command printed."""
        self._chrome.show_command(spans)
        self.show_status()

    def expire_toast(self) -> None:
        """Bring what depends on the time up to now."""
        self._chrome.expire_toast()
        self.show_status()

    # --- what the user does here ---

    def scroll_page(self, direction: int) -> bool:
        """Scroll the open panel by a page; `False` when it is not one that scrolls."""
        scrolled = self._chrome.scroll_page(direction)
        if scrolled:
            self.show_panels()
        return scrolled

    def scroll_help(self, rows: int) -> bool:
        """Scroll the help by rows."""
        self._wheel(rows)
        return True

    def put_todo_away(self) -> bool:
        """Put the todo list away; `False` where more of it can be shown, or none is."""
        return self._chrome.put_todo_away()

    def show_whole_approval(self) -> bool:
        """Show all of the command or change, or its head again."""
        self._chrome.show_whole_approval()
        self.show_panels()
        return True

    def leave_whole_approval(self) -> bool:
        """Show the head of the command or change again; `False` when that is what shows."""
        left = self._chrome.leave_whole_approval()
        if left:
            self.show_panels()
        return left

    def set_focus(self, has_focus: bool) -> None:
        """Note when the terminal got the focus, or that it lost it."""
        self._chrome.set_focus(has_focus)

    def _wheel(self, rows: int) -> None:
        self._chrome.scroll(rows)
        self.show_panels()
