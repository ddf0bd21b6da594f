"""What the user does in the editor and with the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tenuto.protocol.part import ImagePart
from tenuto.tui.complete.history import NO_EXTRAS, Extras
from tenuto.tui.machine.intent.base import IntentBase
from tenuto.tui.machine.state import CompletionItem

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
