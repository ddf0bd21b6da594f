"""What can be done with a row of a list beside taking it: rename, delete, go on in a copy. Two of them ask first."""

from __future__ import annotations

from tenuto.command.outcome import SURE
from tenuto.tui.effects import RunCommand
from tenuto.tui.machine.approval import note_typing
from tenuto.tui.machine.change import Change, HandlerTable
from tenuto.tui.machine.intent import ActOnRow, AnswerRow, MovePicker, RowAnswerChanged, RowReplaced
from tenuto.tui.machine.panel import move_picker
from tenuto.tui.machine.picking import apply_filter
from tenuto.tui.machine.state import RowQuestion

TABLE = HandlerTable()


@TABLE.on(ActOnRow)
def act_on_row(change: Change, intent: ActOnRow) -> None:
    """Ask for the new text, or whether it is meant; a copy harms nobody and is opened at once.

    Among earlier prompts Ctrl+R, which opened them, goes on to the next older one, as in a shell.
    """
    picker = change.state.picker
    if picker is not None and not picker.command and intent.act == "rename":
        move_picker(change, MovePicker(1))
        return
    row = picker.current if picker is not None else None
    act = picker.act_meant(intent.act) if picker is not None else None
    if picker is None or row is None or act is None or not row.value or row.value == picker.busy:
        return
    if act == "fork":
        change.state.picker = None
        change.emit(RunCommand(f"/{picker.command} {row.value} fork"))
    else:
        picker.question = RowQuestion(act, row.title if act == "rename" else "")
    change.panel()


@TABLE.on(RowAnswerChanged)
def change_answer(change: Change, intent: RowAnswerChanged) -> None:
    """Take the new text over; the question about deleting has none."""
    picker = change.state.picker
    if picker is None or picker.question is None:
        return
    note_typing(change)
    if picker.question.act == "rename":
        picker.question.text = intent.text
    change.panel()


@TABLE.on(AnswerRow)
def answer_row(change: Change, _intent: AnswerRow) -> None:
    """Have it done; the row stays as it is until that is known. A text that is empty, or the same, changes nothing."""
    picker = change.state.picker
    if picker is None or picker.question is None:
        return
    row, question = picker.current, picker.question
    leave_question(change)
    text = " ".join(question.text.split())
    if row is None or (question.act == "rename" and text in ("", row.title)):
        return
    picker.busy = row.value
    act = f"rename {text}" if question.act == "rename" else f"{question.act} {SURE}"
    change.emit(RunCommand(f"/{picker.command} {row.value} {act}"))


def leave_question(change: Change) -> None:
    """Go back to the list with nothing done."""
    if change.state.picker is not None:
        change.state.picker.question = None
        change.panel()


@TABLE.on(RowReplaced)
def replace_row(change: Change, intent: RowReplaced) -> None:
    """Show the row as it is now; the selected one stays, or where it is gone the one in its place."""
    picker = change.state.picker
    if picker is None or picker.command != intent.command:
        return
    if picker.busy == intent.value:
        picker.busy = ""
    place = next((place for place, choice in enumerate(picker.choices) if choice.value == intent.value), None)
    if place is None:
        return
    row = (intent.row,) if intent.row is not None else ()
    selected = picker.current.value if picker.current is not None else ""
    before, scrolled = picker.selected, picker.scrolled
    picker.choices = (*picker.choices[:place], *row, *picker.choices[place + 1 :])
    if not picker.choices:
        change.state.picker = None
    apply_filter(picker)
    values = [picker.choices[shown].value for shown in picker.shown]
    if selected in values:
        picker.selected, picker.scrolled = values.index(selected), scrolled
    else:
        picker.selected, picker.question = max(0, min(before, len(values) - 1)), None
    change.panel()
