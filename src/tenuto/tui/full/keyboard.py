"""From a key to what it means, by the stack of open contexts (`tui/keys.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from textual import events

from tenuto.tui.full.composer import Composer
from tenuto.tui.full.line_editor import LineEditor
from tenuto.tui.keys import Key, find_key
from tenuto.tui.machine.intent import FeedbackChanged, FilterChanged, Intent
from tenuto.tui.machine.state import UiState

LINE_CONTEXTS = ("picker", "feedback")
DIALOG_CONTEXTS = ("approval", "help")


class Machine(Protocol):
    """What the keyboard needs of the runner."""

    state: UiState

    def handle(self, intent: Intent) -> None:
        """Take in an intent."""
        ...

    def fold_paste(self, text: str) -> str:
        """Return what the editor shows for a paste."""
        ...


class Keyboard:
    """Routes keys and pastes. `actions` are the screen's own, by key id; one that returns `False` did not apply.

    `line` is the one-line editor of the open picker or feedback; it follows the state.
    """

    def __init__(
        self,
        machine: Machine,
        composer: Callable[[], Composer],
        actions: Mapping[str, Callable[[], bool]],
        clock: Callable[[], float],
    ) -> None:
        self._machine = machine
        self._composer = composer
        self._actions = actions
        self._clock = clock
        self.line = LineEditor()

    async def press(self, event: events.Key) -> None:
        """Do what a key means now."""
        state = self._machine.state
        context = state.contexts[0]
        row = find_key(state.contexts, event.key)
        if context in LINE_CONTEXTS:
            own = row is not None and row.context != "transcript"
            if row is not None and (own or not self._edit_line(event)):
                self._do(row)
            elif row is None:
                self._edit_line(event)
        elif context in DIALOG_CONTEXTS:
            if self._was_meant_for_draft(event):
                await self._composer().press(event)
            elif row is not None:
                self._do(row)
        elif row is None or not self._do(row):
            await self._composer().press(event)

    def paste(self, text: str) -> None:
        """Insert a paste: a long one as a mark that stands for every byte of it (R-099)."""
        if self._machine.state.contexts[0] in LINE_CONTEXTS:
            self.line.insert(text)
            self._tell_line()
        elif text:
            shown = self._machine.fold_paste(text)
            self._composer().insert_text(_typable(shown) if shown is text else shown)

    def follow_state(self) -> None:
        """Take over the filter or feedback that the state has."""
        state = self._machine.state
        if state.contexts[0] == "picker" and state.picker is not None:
            self.line.set(state.picker.filter)
        elif state.contexts[0] == "feedback":
            self.line.set(state.approvals.feedback or "")
        else:
            self.line.set("")

    def _do(self, row: Key) -> bool:
        """Do what a binding says; `False` when the key has its plain meaning after all."""
        action = self._actions.get(row.id)
        if action is not None and action():
            return True
        if row.intent is None:
            return False
        if row.id == "history.previous" and not self._composer().on_first_row:
            return False
        if row.id == "history.next" and not self._composer().on_last_row:
            return False
        self._machine.handle(row.intent)
        return True

    def _edit_line(self, event: events.Key) -> bool:
        if event.is_printable and event.character:
            self.line.insert(event.character)
        elif not self.line.press(event.key):
            return False
        self._tell_line()
        return True

    def _tell_line(self) -> None:
        if self._machine.state.contexts[0] == "feedback":
            self._machine.handle(FeedbackChanged(self.line.text))
        else:
            self._machine.handle(FilterChanged(self.line.text))

    def _was_meant_for_draft(self, event: events.Key) -> bool:
        """Whether a key was under way to the editor when the approval opened: it goes where it was meant to go."""
        approvals = self._machine.state.approvals
        in_grace = approvals.current is not None and self._clock() < approvals.accept_after
        return in_grace and (event.is_printable or event.key == "backspace")


def _typable(text: str) -> str:
    """Return a short paste without control characters: the editor could not show them."""
    return "".join(
        character for character in text if character in "\n\t" or character.isprintable() or character > "\x9f"
    )
