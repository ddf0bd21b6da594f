"""What the state machine asks for. Frozen, comparable, free of any framework (DESIGN section 9).

Effects of the core side (`Submit`, `SubmitPrompt`, `RunCommand`, `StopCommands`, `Remember`, `Complete`) are carried
out by `tui/runner.py`; all others are the front-end's. A front-end reads what changed from the state: an effect only
says where to look.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tenuto.command.outcome import PassedOn
from tenuto.protocol.entry import Level
from tenuto.protocol.operation import AnyOperation
from tenuto.protocol.part import ImagePart
from tenuto.tui.complete.history import NO_EXTRAS, Extras

BellReason = Literal["approval", "finished", "failed", "compaction"]


class EffectBase(msgspec.Struct, frozen=True):
    """Base of the screen's effects: structs, because their classes are made ten times as fast as dataclasses."""


# --- the screen ---


class ItemAdded(EffectBase, frozen=True):
    """The item was put at the end of the transcript. A move is `ItemRemoved` and `ItemAdded` with the same id."""

    id: int


class ItemChanged(EffectBase, frozen=True):
    """The item has a new version."""

    id: int


class ItemRemoved(EffectBase, frozen=True):
    """The item is no longer in the transcript."""

    id: int


class EndWanted(EffectBase, frozen=True):
    """The user sent something: what comes of it is at the end of the transcript, wherever they were reading."""


class TranscriptReset(EffectBase, frozen=True):
    """Everything in the transcript may be different: read it anew."""


class OlderAdded(EffectBase, frozen=True):
    """Older items were put before the first one of the transcript."""


class PlaceKept(EffectBase, frozen=True):
    """Remember what is being read: somebody may want to come back to it."""


class PlaceRestored(EffectBase, frozen=True):
    """Go back to what was being read."""


class MatchShown(EffectBase, frozen=True):
    """Bring the present match of the open search on the screen."""


class BlockShown(EffectBase, frozen=True):
    """Bring the block under the cursor on the screen; or there is none any more."""


class OpenBlock(EffectBase, frozen=True):
    """Show all of an item in the user's pager."""

    id: int


class StatusChanged(EffectBase, frozen=True):
    """The status line, the spinner, the retry countdown or the hint changed."""


class PanelChanged(EffectBase, frozen=True):
    """The approval panel, the picker, the help, the completion popup, the queue or the todo list changed."""


class DraftSet(EffectBase, frozen=True):
    """Put this text into the editor; `cursor` is an offset in characters."""

    text: str
    cursor: int


class Toast(EffectBase, frozen=True):
    """Show a line for a few seconds."""

    text: str
    level: Level = "info"


class Bell(EffectBase, frozen=True):
    """Call the user, who may be elsewhere; the front-end knows whether the terminal has the focus.

    `approval` is a plan that waits as well; `compaction` is one that failed. `seconds` is how long the run took.
    """

    reason: BellReason
    seconds: float = 0.0


class Title(EffectBase, frozen=True):
    """Set the terminal's title."""

    text: str


class OpenEditor(EffectBase, frozen=True):
    """Open the user's editor on the text; the result comes back as `DraftChanged`, or as `PlanEdited`.

    `plan` is the id of the request whose plan the text is, empty for the draft.
    """

    text: str
    plan: str = ""


class ThemeChanged(EffectBase, frozen=True):
    """Show everything in this theme."""

    name: str


class ChoicePreviewed(EffectBase, frozen=True):
    """Show what picking this value would do, without doing it; an empty one ends that. `command` is the picker's."""

    command: str
    value: str


class Repaint(EffectBase, frozen=True):
    """Paint the whole screen again."""


class Quit(EffectBase, frozen=True):
    """Leave."""


# --- the core ---


class Submit(msgspec.Struct, frozen=True):
    """Hand the operation to the executor."""

    operation: AnyOperation


class SubmitPrompt(msgspec.Struct, frozen=True):
    """Hand the prompt to `submit_prompt()`; `steer` asks for delivery at the next tool boundary.

    It is queued in front of the queued prompt with the seq `before` (0: at the end).
    """

    text: str
    steer: bool = False
    images: tuple[ImagePart, ...] = ()
    before: int = 0


class RunCommand(msgspec.Struct, frozen=True):
    """Run a slash command, given as the whole line."""

    line: str


class StopCommands(msgspec.Struct, frozen=True):
    """End the slash commands at work that may be ended."""


class Remember(msgspec.Struct, frozen=True):
    """Put the text into the prompt history, with what else belongs to the prompt."""

    text: str
    extras: Extras = NO_EXTRAS


class Complete(msgspec.Struct, frozen=True):
    """Look for completions of the draft; the answer is a `CompletionOffered` with the same generation.

    `in_shell`: of the word of a `!command`, which was asked for by Tab.
    """

    generation: int
    text: str
    cursor: int
    in_shell: bool = False


TranscriptEffect = (
    ItemAdded
    | ItemChanged
    | ItemRemoved
    | EndWanted
    | TranscriptReset
    | OlderAdded
    | PlaceKept
    | PlaceRestored
    | MatchShown
    | BlockShown
)
ScreenEffect = (
    TranscriptEffect
    | OpenBlock
    | StatusChanged
    | PanelChanged
    | DraftSet
    | Toast
    | Bell
    | Title
    | OpenEditor
    | ThemeChanged
    | ChoicePreviewed
    | Repaint
    | Quit
    | PassedOn
)
"""`tui/screen.py` carries them out. What a command asks of a screen (`PassedOn`) is an effect as it stands."""
CoreEffect = Submit | SubmitPrompt | RunCommand | StopCommands | Remember | Complete
Effect = ScreenEffect | CoreEffect
