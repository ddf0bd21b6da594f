"""What the user did, or what the front-end learned: the second kind of input of `step`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from tenuto.command.outcome import PassedOn, RowAct, Shown
from tenuto.command.registry import Command
from tenuto.protocol.part import ImagePart
from tenuto.tui.complete.history import NO_EXTRAS, Extras
from tenuto.tui.keys.bindings import Bindings, IntentBase
from tenuto.tui.state.item import BlockAction, GapEnd

Intent = IntentBase | Shown | PassedOn
"""What the machine takes in beside events: what a command asks of the screen is taken as it is."""


# --- approval ---


class MoveApproval(IntentBase, frozen=True):
    """Select another answer."""

    delta: int


class SwitchKind(IntentBase, frozen=True):
    """Have the answers for longer cover the next kind of calls: this exact command, commands like it."""


class AnswerApproval(IntentBase, frozen=True):
    """Give the answer at this place (number key, click); `None` gives the selected one (Enter)."""

    index: int | None = None


class AnswerApprovalWith(IntentBase, frozen=True):
    """Give the answer with this letter: y once, a session, n deny, f deny with feedback."""

    letter: str


class FeedbackChanged(IntentBase, frozen=True):
    """The text that goes to the model with a denial is now this."""

    text: str


class EditPlan(IntentBase, frozen=True):
    """Change the plan that asks for approval in one's own editor (Ctrl+G)."""


class PlanEdited(IntentBase, frozen=True):
    """What the editor made of the plan of that request."""

    request_id: str
    text: str


# --- picker ---


class ThemeChosen(IntentBase, frozen=True):
    """The user has chosen a theme, which is there."""

    name: str


class FilterChanged(IntentBase, frozen=True):
    """The picker's filter is now this."""

    text: str


class MovePicker(IntentBase, frozen=True):
    """Select another row of the picker; it stops at the ends."""

    delta: int


class CycleRowFilter(IntentBase, frozen=True):
    """Show the rows of the next row filter, where the picker has any."""

    delta: int


class ScrollPreview(IntentBase, frozen=True):
    """Scroll the preview of the selected row by so many lines."""

    delta: int


class PickChoice(IntentBase, frozen=True):
    """Take the row at this place among those shown; `None` takes the selected one."""

    index: int | None = None


class ActOnRow(IntentBase, frozen=True):
    """Do something else with the selected row, where the list has it; renaming and deleting are asked about first."""

    act: RowAct


class RowAnswerChanged(IntentBase, frozen=True):
    """The text in the question about the row is now this."""

    text: str


class AnswerRow(IntentBase, frozen=True):
    """Do what is asked about the row: keep its new text, delete it."""


# --- the editor ---


class DraftChanged(IntentBase, frozen=True):
    """The editor's text or cursor (an offset in characters) is now this. Sent for every key that changes it."""

    text: str
    cursor: int


class ImageAttached(IntentBase, frozen=True):
    """An image was pasted or dropped; it goes along with the draft."""

    image: ImagePart


class ImageDetached(IntentBase, frozen=True):
    """The image at this place among the draft's images is taken out; -1 is the newest."""

    index: int


class ImageRefused(IntentBase, frozen=True):
    """An image could not be attached, for this reason."""

    reason: str


class UnfoldPaste(IntentBase, frozen=True):
    """Put the paste whose mark is at the cursor into the draft as text (Tab)."""


class DraftRestored(IntentBase, frozen=True):
    """A draft that was being written when the program ended; `at` says when, in words. The stash comes with it."""

    text: str
    at: str
    extras: Extras = NO_EXTRAS
    stash: str = ""
    stash_extras: Extras = NO_EXTRAS


class SendDraft(IntentBase, frozen=True):
    """Send the draft (Enter). A backslash before the cursor makes a line break instead; with an empty draft, a queue
    that waits is sent.
    """


class SteerDraft(IntentBase, frozen=True):
    """Send the draft at the next tool boundary (Ctrl+S); with an empty draft, the oldest queued text."""


class SendText(IntentBase, frozen=True):
    """Send this text, as if it had been typed."""

    text: str
    images: tuple[ImagePart, ...] = ()


class SendFailed(IntentBase, frozen=True):
    """The prompt could not be handed over: it goes back into the editor."""

    text: str
    reason: str
    images: tuple[ImagePart, ...] = ()


class HistoryLoaded(IntentBase, frozen=True):
    """The prompts that were sent before, oldest first; `own` are this project's."""

    prompts: tuple[str, ...]
    own: frozenset[str] = frozenset()
    extras: Mapping[str, Extras] = {}


class HistoryPrevious(IntentBase, frozen=True):
    """Up on the first line: the queued text when the draft is empty and there is one, else the prompt before."""


class HistoryNext(IntentBase, frozen=True):
    """Down on the last line."""


class SearchHistory(IntentBase, frozen=True):
    """Pick a prompt from the history (Ctrl+R)."""


class EditDraft(IntentBase, frozen=True):
    """Open the draft in the user's editor (Ctrl+G)."""


# --- completion ---


class CompletionItem(msgspec.Struct, frozen=True):
    """One completion: what it puts in, how it shows, and a dim remark (a description, an argument hint).

    `runs` says that taking it makes a whole line that can be sent at once.
    """

    insert: str
    label: str
    detail: str = ""
    runs: bool = False


class OwnCommandsFound(IntentBase, frozen=True):
    """What users and projects bring to be typed as `/name`."""

    commands: tuple[Command, ...]


class CompletionOffered(IntentBase, frozen=True):
    """What `Complete` of this generation found for the characters `start` to `end` of the draft.

    `at_once`: what all of them have in common goes in without being chosen.
    """

    generation: int
    start: int
    end: int
    items: tuple[CompletionItem, ...]
    at_once: bool = False


class CompleteShell(IntentBase, frozen=True):
    """Complete the word of a `!command` (Tab)."""


class MoveCompletion(IntentBase, frozen=True):
    """Select another completion; it goes round at the ends."""

    delta: int


class AcceptCompletion(IntentBase, frozen=True):
    """Put the selected completion into the draft; with `send`, a command that needs no argument runs at once."""

    send: bool = False
    index: int | None = None


# --- the queue ---


class FocusQueue(IntentBase, frozen=True):
    """Give the keyboard to the queue."""


class LeaveQueue(IntentBase, frozen=True):
    """Give it back to the prompt."""


class MoveInQueue(IntentBase, frozen=True):
    """Select another queued prompt; below the last one the keyboard goes back to the prompt."""

    delta: int


class ActOnQueued(IntentBase, frozen=True):
    """Do something to a queued prompt, the one with this seq, or the selected one (0)."""

    action: Literal["edit", "delete", "steer", "up", "down"]
    seq: int = 0


class Escape(IntentBase, frozen=True):
    """Esc: close the top context; with none open, interrupt; twice when idle, stash the draft, or go back."""


class Cancel(IntentBase, frozen=True):
    """Ctrl+C: clear the draft, else interrupt, else ask to be pressed again to quit."""


class EndOfInput(IntentBase, frozen=True):
    """Ctrl+D on an empty draft: twice to quit."""


class LeaveAsked(IntentBase, frozen=True):
    """The user asked to leave by a command; `word` says how."""

    word: str


class Leave(IntentBase, frozen=True):
    """Quit now (`/quit`, a signal)."""


class OpenSearch(IntentBase, frozen=True):
    """Look for words in the transcript (Ctrl+F). `at` is the last item on the screen, 0 where that is not known."""

    at: int = 0


class SearchChanged(IntentBase, frozen=True):
    """The text to look for is now this."""

    text: str


class MoveMatch(IntentBase, frozen=True):
    """Go to the match above (-1) or below (1)."""

    delta: int


class AcceptSearch(IntentBase, frozen=True):
    """Stay with the match that was found (Enter in the search field)."""


class MoveBlock(IntentBase, frozen=True):
    """Move the block cursor up (-1) or down (1). `at` is where it begins, 0: at the last block."""

    delta: int
    at: int = 0


class ActOnBlock(IntentBase, frozen=True):
    """Do something with the block under the cursor; "enter" is to read along with a sub-agent, else to fold."""

    action: BlockAction | Literal["enter"]


class ActOnChild(IntentBase, frozen=True):
    """Do something with the sub-agent whose transcript is open: read all of it in the pager, end it."""

    action: Literal["open", "stop"]


class LeaveChild(IntentBase, frozen=True):
    """Close the transcript of a sub-agent."""


class LeaveTranscript(IntentBase, frozen=True):
    """Close the search, put the block cursor away: what is typed goes into the prompt again."""


class CycleMode(IntentBase, frozen=True):
    """Go to the next approval mode (Shift+Tab)."""


class MoveToBackground(IntentBase, frozen=True):
    """Let the command that runs go on in the background (Ctrl+B)."""


class ToggleDetail(IntentBase, frozen=True):
    """Fold or unfold all items (Ctrl+O)."""


class ToggleItem(IntentBase, frozen=True):
    """Fold or unfold one item."""

    id: int


class ShowEarlier(IntentBase, frozen=True):
    """The user is at a stretch that is not loaded, the one of the item `gap` (0: the first one): show that end."""

    gap: int = 0
    end: GapEnd = "newest"


class ToggleTodo(IntentBase, frozen=True):
    """Show the whole todo list, put it away, show its head (Ctrl+T). `has_all`: the whole of it shows already."""

    has_all: bool = False


class HelpFilterChanged(IntentBase, frozen=True):
    """The text that is looked for in the help is now this."""

    text: str


class ToggleHelp(IntentBase, frozen=True):
    """Show or hide the table of keys."""


class KeysLoaded(IntentBase, frozen=True):
    """These are the keys from now on."""

    keys: Bindings


class KeyboardKnown(IntentBase, frozen=True):
    """Whether the terminal tells Shift+Enter from Enter."""

    tells_shift_enter: bool


class ChordChanged(IntentBase, frozen=True):
    """The first key of a chord was pressed, this one; empty: it is over."""

    pressed: str


class EditingChanged(IntentBase, frozen=True):
    """vi's keys are in another mode, as the footer says it."""

    label: str


class RepaintScreen(IntentBase, frozen=True):
    """Paint everything again (Ctrl+L)."""


class PickModel(IntentBase, frozen=True):
    """Ask for another model (Alt+P)."""


class PickEffort(IntentBase, frozen=True):
    """Ask for another effort of the model (Alt+T)."""


class CommandLasts(IntentBase, frozen=True):
    """A command takes longer than a moment; empty: it does not any more. `stoppable`: Esc may end it."""

    name: str
    stoppable: bool = False


class Failed(IntentBase, frozen=True):
    """Something of the front-end itself failed; one line that says what to do."""

    text: str


class BranchRead(IntentBase, frozen=True):
    """The git branch of the working directory (empty: none), and whether tracked files are not as committed."""

    branch: str
    dirty: bool = False


class Tick(IntentBase, frozen=True):
    """Time has passed. A front-end sends it about ten times a second while `state.animating`, else not at all."""
