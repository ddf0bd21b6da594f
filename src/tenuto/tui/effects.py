"""What the state machine asks for. Frozen, comparable, free of any framework (DESIGN section 9).

Effects of the core side (`Submit`, `SubmitPrompt`, `RunCommand`, `Remember`, `Complete`) are carried out by
`tui/runner.py`; all others are the front-end's. A front-end reads what changed from the state: an effect only says
where to look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tenuto.protocol.entry import Level
from tenuto.protocol.operation import AnyOperation
from tenuto.protocol.part import ImagePart

BellReason = Literal["approval", "finished", "failed"]


# --- the screen ---


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """The item was put at the end of the transcript. A move is `ItemRemoved` and `ItemAdded` with the same id."""

    id: int


@dataclass(frozen=True, slots=True)
class ItemChanged:
    """The item has a new version."""

    id: int


@dataclass(frozen=True, slots=True)
class ItemRemoved:
    """The item is no longer in the transcript."""

    id: int


@dataclass(frozen=True, slots=True)
class TranscriptReset:
    """Everything in the transcript may be different: read it anew."""


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """The status line, the spinner, the retry countdown or the hint changed."""


@dataclass(frozen=True, slots=True)
class PanelChanged:
    """The approval panel, the picker, the help, the completion popup, the queue or the todo list changed."""


@dataclass(frozen=True, slots=True)
class DraftSet:
    """Put this text into the editor; `cursor` is an offset in characters."""

    text: str
    cursor: int


@dataclass(frozen=True, slots=True)
class Toast:
    """Show a line for a few seconds."""

    text: str
    level: Level = "info"


@dataclass(frozen=True, slots=True)
class Bell:
    """Call the person, who may be elsewhere; the front-end knows whether the terminal has the focus."""

    reason: BellReason


@dataclass(frozen=True, slots=True)
class Title:
    """Set the terminal's title."""

    text: str


@dataclass(frozen=True, slots=True)
class CopyText:
    """Put the text on the clipboard."""

    text: str


@dataclass(frozen=True, slots=True)
class OpenEditor:
    """Open the person's editor on the text; the result comes back as `DraftChanged`."""

    text: str


@dataclass(frozen=True, slots=True)
class Repaint:
    """Paint the whole screen again."""


@dataclass(frozen=True, slots=True)
class Quit:
    """Leave."""


# --- the core ---


@dataclass(frozen=True, slots=True)
class Submit:
    """Hand the operation to the executor."""

    operation: AnyOperation


@dataclass(frozen=True, slots=True)
class SubmitPrompt:
    """Hand the prompt to `submit_prompt()`; `steer` asks for delivery at the next tool boundary."""

    text: str
    steer: bool = False
    images: tuple[ImagePart, ...] = ()


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a slash command, given as the whole line."""

    line: str


@dataclass(frozen=True, slots=True)
class Remember:
    """Put the text into the prompt history."""

    text: str


@dataclass(frozen=True, slots=True)
class Complete:
    """Look for completions of the draft; the answer is a `CompletionOffered` with the same generation."""

    generation: int
    text: str
    cursor: int


ScreenEffect = (
    ItemAdded
    | ItemChanged
    | ItemRemoved
    | TranscriptReset
    | StatusChanged
    | PanelChanged
    | DraftSet
    | Toast
    | Bell
    | Title
    | CopyText
    | OpenEditor
    | Repaint
    | Quit
)
CoreEffect = Submit | SubmitPrompt | RunCommand | Remember | Complete
Effect = ScreenEffect | CoreEffect
