"""What a slash command asks of the front-end that ran it. Plain data, the same for every front-end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tenuto.protocol.entry import Level
from tenuto.protocol.part import ImagePart
from tenuto.protocol.usage import ContextReport

MouseMode = Literal["full", "wheel", "off"]
RowAct = Literal["rename", "delete", "fork", "end", "refuse"]
"""What can be done with a row of a list beside taking it; the word behind the row's value says so to the command."""
SURE = "yes"
"""What stands behind `delete` once the user has been asked."""


class Say(msgspec.Struct, frozen=True):
    """Show a text; it may have several lines."""

    text: str
    level: Level = "info"


class Choice(msgspec.Struct, frozen=True):
    """One row of a picker: what is passed on, what is shown, and a dim detail beside it.

    `present` is the row that holds now; a picker opens on it. `indent` moves the row in, `mark` is a sign before it.
    `kind` is what filters go by. `preview` is shown below the list while the row is selected. `title` is the text
    that renaming begins with. The list stays open where a row that `stays` is taken: what comes of it is a
    `RowChanged`.
    """

    value: str
    label: str
    detail: str = ""
    present: bool = False
    indent: int = 0
    mark: str = ""
    kind: str = ""
    preview: str = ""
    title: str = ""
    stays: bool = False


class RowFilter(msgspec.Struct, frozen=True):
    """A choice of rows that the user can switch to: those of these kinds; all of them when there are none."""

    name: str
    kinds: tuple[str, ...] = ()


class Choose(msgspec.Struct, frozen=True):
    """Show a picker; picking a row runs `/<command> <value>`. A row with an empty value does nothing.

    `filters` are the row filters, the first one holds at the beginning. Rows that are `in_order` keep their order
    under a typed filter, and have to contain its words. Each of `acts` runs `/<command> <value> <act>`, renaming with
    the new text behind it, deleting and ending with `SURE`; what comes of it is a `RowChanged`. `live`: the selected
    row shows what it would do. Nobody asked for a list that is `held`: it waits for an empty prompt, and gives way to
    whoever types.
    """

    title: str
    command: str
    choices: tuple[Choice, ...]
    filters: tuple[RowFilter, ...] = ()
    in_order: bool = False
    acts: tuple[RowAct, ...] = ()
    live: bool = False
    held: bool = False


class RowChanged(msgspec.Struct, frozen=True):
    """A row of the list that `command` offered is another one now, or gone (`None`); `value` is what it had."""

    command: str
    value: str
    row: Choice | None


class ChangeTheme(msgspec.Struct, frozen=True):
    """Show the screen in another theme, and keep that; without a name, let the user choose."""

    name: str


class Edit(msgspec.Struct, frozen=True):
    """Put a text, and images that go with it, into the editor, for the user to change and send.

    `sent` is what goes to the model in its place where there is no editor; empty: nothing does.
    """

    text: str
    images: tuple[ImagePart, ...] = ()
    sent: str = ""


class FindText(msgspec.Struct, frozen=True):
    """Open the search of the transcript with a text, at its newest match."""

    text: str


class ShowContext(msgspec.Struct, frozen=True):
    """Show what fills the window; `command/context_rows.py` draws it."""

    report: ContextReport

    @property
    def text(self) -> str:
        """The same as plain text, for front-ends without colours."""
        from tenuto.command.context_rows import MAX_WIDTH, context_rows

        rows = ("".join(text for text, _ in row).rstrip() for row in context_rows(self.report, MAX_WIDTH))
        return "\n".join(rows)


class ShowKeys(msgspec.Struct, frozen=True):
    """List the keys of the screen."""


class EditKeys(msgspec.Struct, frozen=True):
    """Open the file of the user's own keys in their editor."""


class EditFile(msgspec.Struct, frozen=True):
    """Open a file in the user's editor; it need not exist yet."""

    path: str


class ReadOwnFiles(msgspec.Struct, frozen=True):
    """Read again what belongs to the front-end alone: the user's keys."""


class Copy(msgspec.Struct, frozen=True):
    """Put a text on the clipboard."""

    text: str


class Page(msgspec.Struct, frozen=True):
    """Show a file in the user's pager; the front-end removes it then."""

    path: str


class SetMouse(msgspec.Struct, frozen=True):
    """Use the mouse so from now on."""

    mode: MouseMode


class Leave(msgspec.Struct, frozen=True):
    """Leave the program."""


Shown = Say | Choose | RowChanged | Edit | FindText | ShowContext
"""What changes what the screen shows: its state machine takes it in."""
PassedOn = EditFile | Copy | Page | SetMouse
"""What a screen just does: for its state machine these are effects, as they stand."""
CommandOutcome = Shown | PassedOn | ChangeTheme | ShowKeys | EditKeys | ReadOwnFiles | Leave


def is_warning(outcome: CommandOutcome) -> bool:
    """Say whether a command remarks something, or says why it did not do what was asked."""
    return isinstance(outcome, Say) and outcome.level != "info"


def refusal_of(outcomes: Sequence[CommandOutcome]) -> str:
    """Return why a command did not do what was asked, empty where it did: nothing but warnings came of it, or an error.

    A warning beside something else is a remark.
    """
    said = [outcome for outcome in outcomes if isinstance(outcome, Say) and outcome.level != "info"]
    if said and (len(said) == len(outcomes) or any(outcome.level == "error" for outcome in said)):
        return "\n".join(outcome.text for outcome in said)
    return ""
