"""What the person did, or what the front-end learned: the second kind of input of `step`.

Keys become intents by the table in `tui/keys.py`. Which box an arrow key belongs to is decided there, by the stack of
contexts; an intent means one thing only.
"""

from __future__ import annotations

from dataclasses import dataclass

from tenuto.command.outcome import Choice
from tenuto.protocol.entry import Level
from tenuto.protocol.part import ImagePart
from tenuto.tui.machine.state import CompletionItem

# --- the editor ---


@dataclass(frozen=True, slots=True)
class DraftChanged:
    """The editor's text or cursor (an offset in characters) is now this. Sent for every key that changes it."""

    text: str
    cursor: int


@dataclass(frozen=True, slots=True)
class ImageAttached:
    """An image was pasted or dropped; it goes along with the draft."""

    image: ImagePart


@dataclass(frozen=True, slots=True)
class ImageDetached:
    """The image at this place among the draft's images is taken out."""

    index: int


@dataclass(frozen=True, slots=True)
class SendDraft:
    """Send the draft (Enter). A backslash before the cursor makes a line break instead; with an empty draft, a queue
    that waits is sent.
    """


@dataclass(frozen=True, slots=True)
class SteerDraft:
    """Send the draft at the next tool boundary (Ctrl+S); with an empty draft, the oldest queued text."""


@dataclass(frozen=True, slots=True)
class SendText:
    """Send this text, as if it had been typed."""

    text: str
    images: tuple[ImagePart, ...] = ()


@dataclass(frozen=True, slots=True)
class SendFailed:
    """The prompt could not be handed over: it goes back into the editor."""

    text: str
    reason: str
    images: tuple[ImagePart, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryLoaded:
    """The prompts that were sent before, oldest first."""

    prompts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HistoryPrevious:
    """Up on the first line: the queued text when the draft is empty and there is one, else the prompt before."""


@dataclass(frozen=True, slots=True)
class HistoryNext:
    """Down on the last line."""


@dataclass(frozen=True, slots=True)
class SearchHistory:
    """Pick a prompt from the history (Ctrl+R)."""


@dataclass(frozen=True, slots=True)
class EditDraft:
    """Open the draft in the person's editor (Ctrl+G)."""


# --- completion ---


@dataclass(frozen=True, slots=True)
class CompletionOffered:
    """What `Complete` of this generation found for the characters `start` to `end` of the draft."""

    generation: int
    start: int
    end: int
    items: tuple[CompletionItem, ...]


@dataclass(frozen=True, slots=True)
class MoveCompletion:
    """Select another completion; it goes round at the ends."""

    delta: int


@dataclass(frozen=True, slots=True)
class AcceptCompletion:
    """Put the selected completion into the draft; with `send`, a command that needs no argument runs at once."""

    send: bool = False
    index: int | None = None


# --- escape, interrupt, quit ---


@dataclass(frozen=True, slots=True)
class Escape:
    """Esc: close the top context; with none open, interrupt; twice when idle, stash the draft."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ctrl+C: clear the draft, else interrupt, else ask to be pressed again to quit."""


@dataclass(frozen=True, slots=True)
class EndOfInput:
    """Ctrl+D on an empty draft: twice to quit."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Quit now (`/quit`, a signal)."""


# --- approval ---


@dataclass(frozen=True, slots=True)
class MoveApproval:
    """Select another answer."""

    delta: int


@dataclass(frozen=True, slots=True)
class AnswerApproval:
    """Give the answer at this place (number key, click); `None` gives the selected one (Enter)."""

    index: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerApprovalWith:
    """Give the answer with this letter: y once, a session, n deny, f deny with feedback."""

    letter: str


@dataclass(frozen=True, slots=True)
class FeedbackChanged:
    """The text that goes to the model with a denial is now this."""

    text: str


# --- picker ---


@dataclass(frozen=True, slots=True)
class ChoiceOffered:
    """A command asks which: picking runs `/<command> <value>`."""

    title: str
    command: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class FilterChanged:
    """The picker's filter is now this."""

    text: str


@dataclass(frozen=True, slots=True)
class MovePicker:
    """Select another row of the picker; it stops at the ends."""

    delta: int


@dataclass(frozen=True, slots=True)
class PickChoice:
    """Take the row at this place among those shown; `None` takes the selected one."""

    index: int | None = None


# --- panels and the rest ---


@dataclass(frozen=True, slots=True)
class CycleMode:
    """Go to the next approval mode (Shift+Tab)."""


@dataclass(frozen=True, slots=True)
class ToggleDetail:
    """Fold or unfold all items (Ctrl+O)."""


@dataclass(frozen=True, slots=True)
class ToggleItem:
    """Fold or unfold one item."""

    id: int


@dataclass(frozen=True, slots=True)
class ToggleTodo:
    """Show the whole todo list, or its head (Ctrl+T)."""


@dataclass(frozen=True, slots=True)
class ToggleHelp:
    """Show or hide the table of keys."""


@dataclass(frozen=True, slots=True)
class RepaintScreen:
    """Paint everything again (Ctrl+L)."""


@dataclass(frozen=True, slots=True)
class PickModel:
    """Ask for another model (Alt+P)."""


@dataclass(frozen=True, slots=True)
class Said:
    """A command answered."""

    text: str
    level: Level = "info"


@dataclass(frozen=True, slots=True)
class Failed:
    """Something of the front-end itself failed; one line that says what to do."""

    text: str


@dataclass(frozen=True, slots=True)
class ClearTranscript:
    """Take all items off the screen; the history stays."""


@dataclass(frozen=True, slots=True)
class BranchRead:
    """The git branch of the working directory (empty: none)."""

    branch: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed. A front-end sends it about ten times a second while `state.animating`, else not at all."""


Intent = (
    DraftChanged
    | ImageAttached
    | ImageDetached
    | SendDraft
    | SteerDraft
    | SendText
    | SendFailed
    | HistoryLoaded
    | HistoryPrevious
    | HistoryNext
    | SearchHistory
    | EditDraft
    | CompletionOffered
    | MoveCompletion
    | AcceptCompletion
    | Escape
    | Cancel
    | EndOfInput
    | Leave
    | MoveApproval
    | AnswerApproval
    | AnswerApprovalWith
    | FeedbackChanged
    | ChoiceOffered
    | FilterChanged
    | MovePicker
    | PickChoice
    | CycleMode
    | ToggleDetail
    | ToggleItem
    | ToggleTodo
    | ToggleHelp
    | RepaintScreen
    | PickModel
    | Said
    | Failed
    | ClearTranscript
    | BranchRead
    | Tick
)
