"""What the user does in the transcript."""

from __future__ import annotations

from tenuto.command.outcome import MouseMode
from tenuto.tui.machine.intent.base import IntentBase
from tenuto.tui.machine.reading import BlockAction


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
    """Do something with the block under the cursor."""

    action: BlockAction


class LeaveTranscript(IntentBase, frozen=True):
    """Close the search, put the block cursor away: what is typed goes into the prompt again."""


class CopyOffered(IntentBase, frozen=True):
    """A command copies a text."""

    text: str


class PageOffered(IntentBase, frozen=True):
    """A command shows a file in the user's pager; it is removed afterwards."""

    path: str


class MouseChosen(IntentBase, frozen=True):
    """The mouse is to be used so."""

    mode: MouseMode
