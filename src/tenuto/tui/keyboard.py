"""From a key to what it means, by the stack of open contexts (`tui/keys.py`). Shared by both screens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from tenuto.tui.keys import Key, find_key
from tenuto.tui.line_editor import LineEditor
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


class Editor(Protocol):
    """What the keyboard needs of the editor that the prompt is written in."""

    @property
    def on_first_row(self) -> bool:
        """Whether Up has nowhere to go."""
        ...

    @property
    def on_last_row(self) -> bool:
        """Whether Down has nowhere to go."""
        ...

    def insert_text(self, text: str) -> None:
        """Insert at the cursor, and tell the machine."""
        ...


class Keyboard:
    """Routes keys and pastes. `actions` are the screen's own, by key id; one that returns `False` did not apply.

    `line` is the one-line editor of the open picker or feedback; it follows the state. `clock` is seconds.
    """

    def __init__(
        self,
        machine: Machine,
        editor: Callable[[], Editor],
        actions: Mapping[str, Callable[[], bool]],
        clock: Callable[[], float],
    ) -> None:
        self._machine = machine
        self._editor = editor
        self._actions = actions
        self._clock = clock
        self.line = LineEditor()

    def press(self, key: str, character: str | None = None) -> bool:
        """Do what a key means now; return whether it is one for the editor to edit with, which is left to the caller.

        `character` is what the key types, `None` for a key that types nothing.
        """
        state = self._machine.state
        context = state.contexts[0]
        row = find_key(state.contexts, key)
        if context in LINE_CONTEXTS:
            own = row is not None and row.context != "transcript"
            if row is not None and (own or not self._edit_line(key, character)):
                self._do(row)
            elif row is None:
                self._edit_line(key, character)
            return False
        if context in DIALOG_CONTEXTS:
            if self._was_meant_for_draft(key, character):
                return True
            if row is not None:
                self._do(row)
            return False
        return row is None or not self._do(row)

    def paste(self, text: str) -> None:
        """Insert a paste: a long one as a mark that stands for every byte of it (R-099)."""
        if self._machine.state.contexts[0] in LINE_CONTEXTS:
            self.line.insert(text)
            self._tell_line()
        elif text:
            shown = self._machine.fold_paste(text)
            self._editor().insert_text(_typable(shown) if shown is text else shown)

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
        if row.id == "history.previous" and not self._editor().on_first_row:
            return False
        if row.id == "history.next" and not self._editor().on_last_row:
            return False
        self._machine.handle(row.intent)
        return True

    def _edit_line(self, key: str, character: str | None) -> bool:
        if character is not None:
            self.line.insert(character)
        elif not self.line.press(key):
            return False
        self._tell_line()
        return True

    def _tell_line(self) -> None:
        if self._machine.state.contexts[0] == "feedback":
            self._machine.handle(FeedbackChanged(self.line.text))
        else:
            self._machine.handle(FilterChanged(self.line.text))

    def _was_meant_for_draft(self, key: str, character: str | None) -> bool:
        """Whether a key was under way to the editor when the approval opened: it goes where it was meant to go."""
        approvals = self._machine.state.approvals
        in_grace = approvals.current is not None and self._clock() < approvals.accept_after
        return in_grace and (character is not None or key == "backspace")


def _typable(text: str) -> str:
    """Return a short paste without control characters: the editor could not show them."""
    return "".join(
        character for character in text if character in "\n\t" or character.isprintable() or character > "\x9f"
    )
