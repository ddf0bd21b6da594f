"""Answers to what is asked, and rows of lists."""

from __future__ import annotations

from tenuto.command.outcome import Choice, RowAct, RowFilter
from tenuto.tui.machine.intent.base import IntentBase

# --- approval ---


class MoveApproval(IntentBase, frozen=True):
    """Select another answer."""

    delta: int


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


class ChoiceOffered(IntentBase, frozen=True):
    """A command asks which: picking runs `/<command> <value>`. `live`: a selected row shows what it would do."""

    title: str
    command: str
    choices: tuple[Choice, ...]
    filters: tuple[RowFilter, ...] = ()
    in_order: bool = False
    live: bool = False
    acts: tuple[RowAct, ...] = ()


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


class RowReplaced(IntentBase, frozen=True):
    """What was a row of the list that `command` offered is another one now, or gone (`None`)."""

    command: str
    value: str
    row: Choice | None
