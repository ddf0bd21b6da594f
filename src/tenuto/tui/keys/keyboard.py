"""From a key to what it means, by the stack of open contexts (`tui/keys/keys.py`). Shared by both screens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from tenuto.protocol.approval import approval_options
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.tui.keys.bindings import CHORD_SECONDS, ContextName, Key, key_label, normal_key, typed_by
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.state.intents import (
    ActOnBlock,
    ActOnRow,
    AnswerApproval,
    AnswerApprovalWith,
    ChordChanged,
    EditingChanged,
    FeedbackChanged,
    FilterChanged,
    HelpFilterChanged,
    Intent,
    LeaveChild,
    LeaveQueue,
    LeaveTranscript,
    RowAnswerChanged,
    SearchChanged,
)
from tenuto.tui.state.item import block_actions, meant_action
from tenuto.tui.state.state import UiState

if TYPE_CHECKING:
    from tenuto.tui.keys.vim import Vim

LINE_CONTEXTS = ("picker", "row", "feedback", "help", "search")
READING_CONTEXTS = ("found", "block")
DIALOG_CONTEXTS = ("approval",)
PROMPT_CONTEXTS: tuple[ContextName, ...] = ("empty", "prompt", "edit")
TYPED_AWAY: dict[ContextName, Intent] = {
    **dict.fromkeys(READING_CONTEXTS, LeaveTranscript()),
    "queue": LeaveQueue(),
    "child": LeaveChild(),
}
"""Contexts that a key without a meaning there leaves: it was meant for the prompt."""
VIM_CONTEXTS: tuple[ContextName, ...] = ("empty", "command", "shell", "prompt", "completion")
VERTICAL = {"j": "down", "k": "up"}
"""What leads through the history at the first and last row, as the arrows do."""
STARTS_OVER = ("send", "steer", "completion.run")
ROW_KEYS = {"history.previous": "up", "history.next": "down"}
"""What the editors do for a key that goes through the history at the first and last row only."""


class Machine(Protocol):
    """What the keyboard needs of the runner."""

    state: UiState

    def handle(self, intent: Intent) -> None:
        """Take in an intent."""
        ...

    def fold_paste(self, text: str) -> str:
        """Return what the editor shows for a paste."""
        ...

    def take_images(self, text: str, insert: Callable[[str], None]) -> bool:
        """Attach the images that a paste names; `False` when it is text."""
        ...

    def paste_clipboard(self, insert: Callable[[str], None], otherwise: str = "") -> None:
        """Attach the image on the clipboard, or insert what is there."""
        ...


class Editor(Protocol):
    """What the keyboard needs of the editor that the prompt is written in."""

    @property
    def text(self) -> str:
        """What is written."""
        ...

    @property
    def cursor(self) -> int:
        """The cursor as an offset in characters."""
        ...

    def set_draft(self, text: str, cursor: int) -> None:
        """Put a text in, the cursor at `cursor`."""
        ...

    def tell(self) -> None:
        """Say what the draft is now."""
        ...

    def mark(self, span: tuple[int, int] | None) -> None:
        """Show these characters as selected; the cursor stays."""
        ...

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

    `vim` has the keys of the prompt first, for a user who wants vi's.

    `line` is the one-line editor of the open picker or feedback; it follows the state. `clock` is seconds.
    """

    def __init__(
        self,
        machine: Machine,
        editor: Callable[[], Editor],
        actions: Mapping[str, Callable[[], bool]],
        clock: Callable[[], float],
        vim: Vim | None = None,
    ) -> None:
        self._vim = vim
        self._marks = False
        self._machine = machine
        self._editor = editor
        self._actions = actions
        self._clock = clock
        self._chord: tuple[str, float] | None = None
        self.line = LineEditor()

    def begin(self) -> None:
        """Say which mode vi's keys begin in."""
        if self._vim is not None:
            self._machine.state.editing = self._vim.label

    def press(self, key: str, character: str | None = None) -> str | None:
        """Do what a key means now; return the key for the editor to edit with, `None` when there is nothing to edit.

        `character` is what the key types, `None` for a key that types nothing.
        """
        key = normal_key(key)
        character = typed_by(key, character)
        contexts, keys = self._machine.state.contexts, self._machine.state.keys
        if self._end_chord(contexts, key):
            return None
        if self._vim is not None and contexts[0] in VIM_CONTEXTS and self._press_vim(self._vim, key, character):
            return None
        if keys.begins_chord(contexts, key):
            self._chord = key, self._clock()
            self._machine.handle(ChordChanged(key_label(key)))
            return None
        return self._press_single(contexts, key, character)

    def _press_vim(self, vim: Vim, key: str, character: str | None) -> bool:
        """Do a key of vi's; `False` when it has its usual meaning."""
        state, editor = self._machine.state, self._editor()
        if key == "escape" and vim.mode == "insert" and state.contexts[0] == "completion":
            return False
        if vim.mode == "normal" and character in VERTICAL and not vim.keys:
            row = state.keys.find(state.contexts, VERTICAL[character])
            at_edge = editor.on_first_row if character == "k" else editor.on_last_row
            if at_edge and row is not None and self._do(row):
                return True
        if vim.mode == "normal" and character is not None and not vim.keys and not vim.knows(character):
            return self._machine.state.keys.find(state.contexts, key) is None and bool(editor.text)
        step = vim.press(key, character, editor.text, editor.cursor)
        if step is not None and (step.text, step.cursor) != (editor.text, editor.cursor):
            editor.set_draft(step.text, step.cursor)
            editor.tell()
        self._tell_vim(vim)
        return step is not None

    def _tell_vim(self, vim: Vim) -> None:
        editor = self._editor()
        if vim.is_selecting:
            editor.mark(vim.selected(editor.text, editor.cursor))
        elif self._marks:
            editor.mark(None)
        self._marks = vim.is_selecting
        self._machine.handle(EditingChanged(vim.label))

    def _end_chord(self, contexts: tuple[ContextName, ...], key: str) -> bool:
        """Do what a chord means; `False` when there is none, or its second key has only its own meaning."""
        if self._chord is None:
            return False
        (first, pressed_at), self._chord = self._chord, None
        self._machine.handle(ChordChanged(""))
        if self._clock() - pressed_at > CHORD_SECONDS:
            return False
        row = self._machine.state.keys.find(contexts, f"{first} {key}")
        if row is not None:
            self._do(row)
        return row is not None or key == "escape"

    def _press_single(self, contexts: tuple[ContextName, ...], key: str, character: str | None) -> str | None:
        row = self._machine.state.keys.find(contexts, key)
        if contexts[0] in LINE_CONTEXTS:
            if (row is None or self._edits_first(row)) and self._edit_line(key, character):
                return None
            if row is not None:
                self._do(row)
            return None
        if contexts[0] in DIALOG_CONTEXTS:
            if self._was_meant_for_draft(key, character):
                return key
            if row is not None:
                self._do(row)
            return None
        if contexts[0] in TYPED_AWAY and (row is None or not self._can_be_done(row)):
            is_prompts = row is None and self._machine.state.keys.find(PROMPT_CONTEXTS, key) is not None
            if character is None and not is_prompts:
                return None
            self._machine.handle(TYPED_AWAY[contexts[0]])
            return key if character is not None else self._press_single(self._machine.state.contexts, key, None)
        if row is not None and self._do(row):
            return None
        editing = ROW_KEYS.get(row.id) if row is not None else None
        return key if character is not None else editing or self._machine.state.keys.editing(key) or None

    def _edits_first(self, row: Key) -> bool:
        """Whether the one-line text has the first use of a key, if it has any.

        A key that acts on a row is the text's where the list has no such act, and before the end of what is typed.
        """
        if not isinstance(row.intent, ActOnRow):
            return row.context == "transcript"
        picker = self._machine.state.picker
        return picker is None or picker.act_meant(row.intent.act) is None or self.line.cursor < len(self.line.text)

    def paste(self, text: str) -> None:
        """Insert a paste: a long one as a mark that stands for every byte of it (R-099)."""
        away = TYPED_AWAY.get(self._machine.state.contexts[0])
        if away is not None:
            self._machine.handle(away)
        if self._machine.state.contexts[0] in LINE_CONTEXTS:
            self.line.insert(text)
            self._tell_line()
        elif not text:  # terminals paste nothing where there is only an image
            self.paste_clipboard()
        elif not self._machine.take_images(text, self._insert):
            self._insert(text)

    def paste_clipboard(self, otherwise: str = "") -> None:
        """Attach the image on the system's clipboard, or insert its text; `otherwise` is what was copied last here."""
        self._machine.paste_clipboard(self._insert, otherwise)

    def _insert(self, text: str) -> None:
        shown = self._machine.fold_paste(text)
        self._editor().insert_text(_typable(shown) if shown is text else shown)

    def follow_state(self) -> None:
        """Take over the filter or feedback that the state has."""
        state = self._machine.state
        if state.contexts[0] == "picker" and state.picker is not None:
            self.line.set(state.picker.filter)
        elif state.contexts[0] == "row" and state.picker is not None and state.picker.question is not None:
            self.line.set(state.picker.question.text)
        elif state.contexts[0] == "search" and state.search is not None:
            self.line.set(state.search.query)
        elif state.contexts[0] == "feedback":
            self.line.set(state.approvals.feedback or "")
        elif state.contexts[0] == "help":
            self.line.set(state.help_filter)
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
        if row.id == "image.detach" and (self._editor().cursor or not self._machine.state.draft.images):
            return False
        self._machine.handle(row.intent)
        if self._vim is not None and row.id in STARTS_OVER:
            self._vim.start_over()
            self._tell_vim(self._vim)
        return True

    def _edit_line(self, key: str, character: str | None) -> bool:
        if character is not None:
            self.line.insert(character)
        elif not self.line.press(self._machine.state.keys.editing(key)):
            return False
        self._tell_line()
        return True

    def _tell_line(self) -> None:
        match self._machine.state.contexts[0]:
            case "feedback":
                self._machine.handle(FeedbackChanged(self.line.text))
            case "help":
                self._machine.handle(HelpFilterChanged(self.line.text))
            case "row":
                self._machine.handle(RowAnswerChanged(self.line.text))
            case "search":
                self._machine.handle(SearchChanged(self.line.text))
            case _:
                self._machine.handle(FilterChanged(self.line.text))

    def _can_be_done(self, row: Key) -> bool:
        """Whether a key means something to the block that is looked at; else it is the beginning of a prompt."""
        if not isinstance(row.intent, ActOnBlock):
            return True
        state = self._machine.state
        item = state.transcript.get(state.looked_at)
        return meant_action(item, row.intent.action) in block_actions(item)

    def _was_meant_for_draft(self, key: str, character: str | None) -> bool:
        """Whether a key belongs to the editor although an approval is open.

        It was under way when that opened; or it types, and is no answer. Over a draft nothing that types is one.
        """
        state = self._machine.state
        if state.approvals.current is None:
            return False
        if self._clock() < state.approvals.accept_after:
            return character is not None or key == "backspace"
        row = state.keys.find(state.contexts, key)
        if character is None:
            return row is None and state.draft.begun
        if state.draft.begun:
            return True
        return row is None or row.context != "approval" or not _is_offered(row.intent, state.approvals.current)


def _is_offered(intent: Intent | None, request: ApprovalRequestedEvent) -> bool:
    """Say whether an intent means something to a request: the answers have letters, and as many numbers as they are."""
    options = approval_options(request)
    match intent:
        case AnswerApprovalWith(letter=letter):
            return any(option.letter == letter for option in options)
        case AnswerApproval(index=int(place)):
            return place < len(options)
        case _:
            return True


def _typable(text: str) -> str:
    """Return a short paste without control characters: the editor could not show them."""
    return "".join(
        character for character in text if character in "\n\t" or character.isprintable() or character > "\x9f"
    )
