"""What stands around transcript and editor, as lines: status, panels, popups, footer. Shared by both screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tenuto.config.settings import UiSettings
from tenuto.tui import panels
from tenuto.tui.chrome.footer import footer_line
from tenuto.tui.chrome.motion import motion_of
from tenuto.tui.keys.bindings import fit_phrases
from tenuto.tui.keys.keyboard import Keyboard
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.machine import intents
from tenuto.tui.machine.intents import Intent
from tenuto.tui.machine.state import UiState
from tenuto.tui.panels.chips import image_chips
from tenuto.tui.render.line import Line, Span
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.status import status_line

PLACEHOLDER = "Ask for something · / commands · @ files · ! shell · ? keys"
KEYS_HINT = "? keys"
TOAST_SECONDS = 4.0
FOCUS_SECONDS = 0.3
"""Seconds after the terminal got the focus in which a click is not taken for an answer."""
TOAST_STYLES = {"info": "dim", "warning": "warning", "error": "error"}
DIALOGS = frozenset({"approval", "feedback", "picker", "row", "help"})
"""What needs the room that the queue and the todo list take otherwise."""
WHOLE_FRAME = 4
"""Rows around what is read on the whole screen: the question, the selected answer, the keys, what is not shown."""
ABOVE_PROMPT = DIALOGS | {"search", "found", "block"}
"""What stands above the prompt; completions stand below it where the screen has room there."""


class ReadingPanels(NamedTuple):
    """What opens for somebody who reads: where the transcript is on the screen, hints alone; else what there is."""

    search: Callable[[UiState, int, int, LineEditor], panels.Panel]
    block: Callable[[UiState, int], panels.Panel]


def _search_hints(state: UiState, width: int, _rows: int, line: LineEditor) -> panels.Panel:
    return panels.search_panel(state, width, line)


MARKED = ReadingPanels(_search_hints, panels.block_panel)
"""For a screen that marks matches and blocks where they stand."""


class Machine(Protocol):
    """The state that is shown, and who takes the user's intents."""

    state: UiState

    def handle(self, intent: Intent) -> None:
        """Apply an intent."""
        ...


class Chrome:
    """Remembers what belongs to the screen alone: a toast, how far a panel is scrolled, whether it shows all.

    `command` is what the user's own status command printed.
    """

    def __init__(
        self,
        machine: Machine,
        keyboard: Keyboard,
        ui: UiSettings,
        home: str,
        *,
        glyphs: Glyphs,
        clock: Callable[[], float],
        reading: ReadingPanels = MARKED,
    ) -> None:
        self._reading = reading
        self._machine = machine
        self._keyboard = keyboard
        self._ui = ui
        self._motion = motion_of(ui)
        self._home = home
        self._glyphs = glyphs
        self._clock = clock
        self._toast: tuple[Span, float] | None = None
        self._shown = ""
        self.command: Sequence[Span] = ()
        self._full = False
        self._scroll = 0
        self._focused_since = float("-inf")
        self._panel = panels.NOTHING
        self._side = panels.NOTHING
        self._chips = panels.NOTHING
        self._chips_from = 0

    # --- what is shown ---

    def status(self, width: int) -> Line:
        """Return the line above the editor."""
        now = self._clock()
        frame = self._motion.frame(now)
        toast = self._toast[0] if self._toast is not None else None
        return status_line(self._machine.state, self._motion.shown_time(now), width, frame, toast)

    def footer(self, width: int) -> Line:
        """Return the last line of the screen."""
        return footer_line(self._machine.state, width, self._home, self._ui.status_items, self.command)

    def placeholder(self, width: int) -> str:
        """Return what the empty prompt says in `width` cells: nothing while what is typed goes elsewhere."""
        return fit_phrases(PLACEHOLDER, KEYS_HINT, width) if self.takes_typing else ""

    @property
    def takes_typing(self) -> bool:
        """Whether the prompt has the caret: not while a dialog, or the text of one, has the keyboard."""
        state = self._machine.state
        return state.contexts[0] not in ABOVE_PROMPT or (state.contexts[0] == "approval" and state.draft.begun)

    def side_share(self, height: int) -> int:
        """Return how many rows of the screen's the side may have: fewer while something is open above the prompt."""
        state = self._machine.state
        asked_for = state.todo_open or "queue" in state.contexts
        return height // (2 if asked_for else 6 if state.contexts[0] in ABOVE_PROMPT else 3)

    def side(self, width: int, rows: int, *, has_list: bool = False) -> Sequence[Line]:
        """Return the todo list, the queue, the images of the draft in at most `rows` rows; a dialog needs them all.

        `has_list`: the transcript has that list right above.
        """
        state = self._machine.state
        if state.contexts[0] in DIALOGS:
            self._side = self._chips = panels.NOTHING
            return ()
        self._chips = image_chips(state, width)
        todo = () if has_list else state.todo
        self._side = panels.side_panel(state, width, self._glyphs, rows - len(self._chips.lines), todo)
        self._chips_from = len(self._side.lines)
        return [*self._side.lines, *self._chips.lines]

    def choose_side_row(self, row: int) -> None:
        """Take back the queued prompt, or take out the image, that a row beside the editor shows."""
        queued = self._side.choices.get(row)
        if queued is not None:
            self._machine.handle(intents.ActOnQueued("edit", queued))
        place = self._chips.choices.get(row - self._chips_from)
        if place is not None:
            self._machine.handle(intents.ImageDetached(place))

    def panel(self, width: int, rows: int) -> Sequence[Line]:
        """Return what is open, in at most `rows` rows. The draft stays where it is."""
        state = self._machine.state
        self._keyboard.follow_state()
        request = state.approvals.current
        shown = request.request_id if request is not None else f"{state.contexts[0]}{state.help_filter}"
        if shown != self._shown:
            self._shown, self._full, self._scroll = shown, False, 0
        self._panel = self._open_panel(width, rows)
        self._scroll = self._panel.scrolled
        return self._panel.lines

    def _open_panel(self, width: int, rows: int) -> panels.Panel:
        state, line = self._machine.state, self._keyboard.line
        match state.contexts[0]:
            case "approval" | "feedback":
                return panels.approval_panel(
                    state, width, rows, self._glyphs, line, full=self._full, scroll=self._scroll
                )
            case "picker" | "row":
                return panels.picker_panel(state, width, rows, line)
            case "help":
                return panels.help_panel(state, width, rows, self._scroll, line)
            case "completion":
                return panels.completion_panel(state, width, rows)
            case "search" | "found":
                return self._reading.search(state, width, rows, line)
            case "block":
                return self._reading.block(state, width)
            case _:
                return panels.NOTHING

    @property
    def whole(self) -> bool:
        """Whether all of an approval is read, on the whole screen."""
        request = self._machine.state.approvals.current
        return self._full and request is not None and request.request_id == self._shown

    # --- toasts ---

    @property
    def moving(self) -> bool:
        """Whether something here goes away with time."""
        return self._toast is not None

    @property
    def moves_in(self) -> float:
        """Seconds until the toast is to go away."""
        return max(0.0, self._toast[1] - self._clock()) if self._toast is not None else float("inf")

    def show_toast(self, text: str, style: str) -> None:
        """Show a line for a few seconds, from the next time that the status is asked for."""
        self._toast = ((text, style), self._clock() + TOAST_SECONDS)

    def expire_toast(self) -> None:
        """Remove a toast whose time is over."""
        if self._toast is not None and self._clock() >= self._toast[1]:
            self._toast = None

    # --- what the user does here; what shows has to be asked for anew afterwards ---

    def scroll_page(self, direction: int) -> bool:
        """Scroll the open panel by a page; `False` when it is not one that scrolls."""
        state = self._machine.state
        if not self._full and state.contexts[0] != "help" and not state.approvals.plan:
            return False
        kept = 3 if state.contexts[0] == "help" else WHOLE_FRAME if self.whole else 8
        self.scroll(direction * max(1, len(self._panel.lines) - kept))
        return True

    def scroll_help(self, rows: int) -> bool:
        """Scroll the help by rows."""
        self.scroll(rows)
        return True

    def put_todo_away(self) -> bool:
        """Put the todo list away; `False` where more of it can be shown, or none is."""
        if not self._side.has_all:
            return False
        self._machine.handle(intents.ToggleTodo(has_all=True))
        return True

    def toggle_whole_approval(self) -> None:
        """Show all of the command or change, or its head again."""
        self._full = not self._full
        self._scroll = 0

    def leave_whole_approval(self) -> bool:
        """Show the head of the command or change again; `False` when that is what shows."""
        if not self.whole or self._machine.state.contexts[0] != "approval":
            return False
        self.toggle_whole_approval()
        return True

    def scroll(self, rows: int) -> None:
        """Scroll the open panel, or select another of its rows."""
        state = self._machine.state
        if state.contexts[0] == "picker":
            self._machine.handle(intents.MovePicker(rows))
        elif state.contexts[0] == "completion":
            self._machine.handle(intents.MoveCompletion(rows))
        else:
            self._full = state.approvals.current is not None
            self._scroll = max(0, self._scroll + rows)

    def set_focus(self, has_focus: bool) -> None:
        """Note when the terminal got the focus, or that it lost it."""
        self._focused_since = self._clock() if has_focus else float("inf")

    @property
    def _has_just_got_focus(self) -> bool:
        """Whether a click may have been the one that turned to this terminal; it answers nothing then."""
        return self._clock() - self._focused_since < FOCUS_SECONDS

    def choose_row(self, row: int) -> None:
        """Choose what stands in a row of the panel, if it is something to choose."""
        place = self._panel.choices.get(row)
        if place is None:
            return
        match self._machine.state.contexts[0]:
            case "approval" if not self._has_just_got_focus:
                self._machine.handle(intents.AnswerApproval(place))
            case "picker":
                self._machine.handle(intents.PickChoice(place))
            case "completion":
                self._machine.handle(intents.AcceptCompletion(index=place))
            case _:
                pass
