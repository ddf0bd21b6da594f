"""What panels show, and what the front-end learned."""

from __future__ import annotations

from tenuto.protocol.context import ContextReport
from tenuto.protocol.entry import Level
from tenuto.protocol.part import ImagePart
from tenuto.tui.bindings import Bindings
from tenuto.tui.machine.gap import GapEnd
from tenuto.tui.machine.intent.base import IntentBase


class CycleMode(IntentBase, frozen=True):
    """Go to the next approval mode (Shift+Tab)."""


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


class FileOffered(IntentBase, frozen=True):
    """A command opens a file of the user's in their editor."""

    path: str


class ChordChanged(IntentBase, frozen=True):
    """The first key of a chord was pressed, this one; empty: it is over."""

    pressed: str


class RepaintScreen(IntentBase, frozen=True):
    """Paint everything again (Ctrl+L)."""


class PickModel(IntentBase, frozen=True):
    """Ask for another model (Alt+P)."""


class Said(IntentBase, frozen=True):
    """A command answered."""

    text: str
    level: Level = "info"


class CommandLasts(IntentBase, frozen=True):
    """A command takes longer than a moment; empty: it does not any more. `stoppable`: Esc may end it."""

    name: str
    stoppable: bool = False


class Failed(IntentBase, frozen=True):
    """Something of the front-end itself failed; one line that says what to do."""

    text: str


class ContextShown(IntentBase, frozen=True):
    """A command shows what fills the window."""

    report: ContextReport


class TextOffered(IntentBase, frozen=True):
    """A command puts a text, and images with it, into the editor; what was there goes into the history."""

    text: str
    images: tuple[ImagePart, ...] = ()


class BranchRead(IntentBase, frozen=True):
    """The git branch of the working directory (empty: none), and whether tracked files are not as committed."""

    branch: str
    dirty: bool = False


class Tick(IntentBase, frozen=True):
    """Time has passed. A front-end sends it about ten times a second while `state.animating`, else not at all."""
