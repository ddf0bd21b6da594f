"""What opens around the editor: the completion popup, the picker, the todo list, the help."""

from __future__ import annotations

import os

from tenuto.command.outcome import SURE, Choose, RowChanged
from tenuto.protocol.event import TrustWaitingEvent
from tenuto.text.figures import plural
from tenuto.tui.complete.commands import find_target, is_subsequence
from tenuto.tui.complete.paste import mark_at
from tenuto.tui.machine.approval import EMPTY_PAUSE, note_typing
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.prompt import send, unfold_paste
from tenuto.tui.machine.queue import apply_filter, put_prompt, remember_draft
from tenuto.tui.state.effects import ChoicePreviewed, Complete, RunCommand
from tenuto.tui.state.intents import (
    AcceptCompletion,
    ActOnRow,
    AnswerRow,
    CompleteShell,
    CompletionItem,
    CompletionOffered,
    CycleRowFilter,
    FilterChanged,
    HelpFilterChanged,
    MoveCompletion,
    MovePicker,
    OwnCommandsFound,
    PickChoice,
    RowAnswerChanged,
    ScrollPreview,
    ToggleHelp,
    ToggleTodo,
    UnfoldPaste,
)
from tenuto.tui.state.state import CompletionPopup, Picker, RowQuestion


@on(CompleteShell)
def complete_shell(change: Change, _intent: CompleteShell) -> None:
    """Look for what the word can be; at the mark of a paste show all of it, as elsewhere."""
    state = change.state
    if mark_at(state.draft.text, state.draft.cursor) is not None:
        unfold_paste(change, UnfoldPaste())
        return
    state.completion_generation += 1
    change.emit(Complete(state.completion_generation, state.draft.text, state.draft.cursor, in_shell=True))


def put_common(change: Change, intent: CompletionOffered) -> bool:
    """Put in what all completions begin with, as a shell does; say whether that was more than what stood there."""
    draft = change.state.draft
    inserts = [item.insert for item in intent.items]
    common = os.path.commonprefix(inserts)  # noqa: RUF071 - characters are what is to be compared
    if len(inserts) > 1 and (len(common) - len(common.rstrip("\\"))) % 2:
        common = common[:-1]  # half of an escaped character is none
    if not common.startswith(draft.text[intent.start : intent.end]) or len(common) <= intent.end - intent.start:
        return False
    rest = draft.text[intent.end :]
    if len(inserts) == 1 and rest[:1].isspace():
        common = common.rstrip(" ")
    change.set_draft(f"{draft.text[: intent.start]}{common}{rest}", intent.start + len(common))
    return True


ASKED_SECONDS = 2.0
"""Seconds in which a list is what the user waits for who sent a command; later they have gone on to a prompt."""
FILTER_CHARACTERS = 40
"""More than that typed meanwhile is a prompt."""
PREVIEW_COLUMNS = 40
"""No preview is taken for longer than in a column of so many cells."""


# --- completion ---


@on(OwnCommandsFound)
def learn_commands(change: Change, intent: OwnCommandsFound) -> None:
    """Know what users and projects bring, for completion and hints."""
    change.state.own_commands = intent.commands


@on(CompletionOffered)
def offer_completion(change: Change, intent: CompletionOffered) -> None:
    """Show what was found, if the draft is still the one that it was looked for."""
    state = change.state
    if intent.generation != state.completion_generation:
        return
    if intent.at_once and put_common(change, intent):
        return
    found = CompletionPopup(intent.start, intent.end, intent.items, generation=intent.generation)
    popup = found if intent.items else None
    if popup is not None or state.completion is not None:
        state.completion = popup
        change.panel()


@on(MoveCompletion)
def move_completion(change: Change, intent: MoveCompletion) -> None:
    """Select another one."""
    popup = change.state.completion
    if popup is not None:
        popup.selected = (popup.selected + intent.delta) % len(popup.items)
        popup.moved = True
        change.panel()


@on(AcceptCompletion)
def accept_completion(change: Change, intent: AcceptCompletion) -> None:
    """Put it in. With `send`, a whole command, or one that was typed out already, goes off at once.

    A list that answers an earlier draft counts as far as it fits what was typed since: else Enter sends the draft.
    """
    state = change.state
    popup = state.completion
    if popup is None:
        return
    place = popup.selected if intent.index is None else intent.index
    if not 0 <= place < len(popup.items):
        return
    item = popup.items[place]
    draft = state.draft
    # The word may have grown since the popup was filled.
    target = find_target(draft.text, draft.cursor, change.state.own_commands)
    end = target.end if target is not None and target.start == popup.start else popup.end
    typed = draft.text[popup.start : end]
    is_old = intent.index is None and popup.generation != state.completion_generation
    is_whole = intent.send and intent.index is None and _is_typed_in_full(typed, popup, draft.text)
    if is_whole or (is_old and not _still_fits(typed, item)):
        if intent.send:
            send(change, draft.text, draft.images)
        return
    # Behind a command a directory's name is whole without its slash: `/add-dir ../docs`
    typed_out = typed == item.insert.rstrip() or (draft.text.startswith("/") and f"{typed}/" == item.insert)
    rest = draft.text[end:]
    insert = item.insert.rstrip() if rest[:1].isspace() else item.insert
    change.set_draft(f"{draft.text[: popup.start]}{insert}{rest}", popup.start + len(insert))
    if intent.send and (item.runs or typed_out):
        send(change, draft.text, draft.images)
    elif not item.insert.endswith(" ") and not draft.text.startswith("!"):
        # A directory: go on with what is in it.
        change.emit(Complete(state.completion_generation, draft.text, draft.cursor))


def _is_typed_in_full(typed: str, popup: CompletionPopup, draft: str) -> bool:
    """Whether what stands behind a command is a whole folder, and nothing in it was chosen: `/add-dir ../docs/`."""
    return draft.startswith("/") and popup.start > 0 and typed.endswith("/") and typed[0] != "@" and not popup.moved


def _still_fits(typed: str, item: CompletionItem) -> bool:
    """Say whether an item is what the user may mean who has typed on since; what runs at once has to begin so."""
    word, insert = typed.casefold(), item.insert.casefold()
    return insert.startswith(word) if item.runs else is_subsequence(word, insert)


def close_completion(change: Change) -> None:
    """Close the popup; it stays closed for this word."""
    state = change.state
    if state.completion is not None:
        state.completion_closed_at = state.completion.start
        state.completion = None
        state.completion_generation += 1
        change.panel()


# --- picker ---


@on(Choose)
def open_picker(change: Change, intent: Choose) -> None:
    """Show the choices; what was typed while they were looked for is the filter, as it was meant."""
    picker = picker_of(intent)
    state = change.state
    if intent.held:
        state.held_picker = picker
        open_held(change)
        return
    asked, draft = state.ladder.asked_at, state.draft
    if draft.changed_at >= asked >= change.now - ASKED_SECONDS and 0 < len(draft.text) <= FILTER_CHARACTERS:
        picker.filter = draft.text
        apply_filter(picker)
        change.set_draft("")
    show_picker(change, picker)


def picker_of(intent: Choose) -> Picker:
    """Return the choices as a list on which the present one is selected."""
    picker = Picker(
        intent.title,
        intent.command,
        intent.choices,
        filters=intent.filters,
        in_order=intent.in_order,
        live=intent.live,
        acts=intent.acts,
        gives_way=intent.held,
    )
    apply_filter(picker)
    present = (row for row, place in enumerate(picker.shown) if picker.choices[place].present)
    picker.selected = next(present, 0)
    return picker


def show_picker(change: Change, picker: Picker) -> None:
    """Open a list."""
    change.state.picker = picker
    change.panel()


def open_held(change: Change) -> None:
    """Open the list that waits, once nothing is typed and nothing else is open: it steals no key."""
    state = change.state
    quiet = state.contexts[0] == "empty" and change.now - state.draft.changed_at >= EMPTY_PAUSE
    if state.held_picker is not None and quiet:
        picker, state.held_picker = state.held_picker, None
        show_picker(change, picker)


@on(FilterChanged)
def set_filter(change: Change, intent: FilterChanged) -> None:
    """Show the choices that match."""
    picker = change.state.picker
    if picker is not None and picker.gives_way and intent.text:
        _give_way(change, picker, intent.text)
    elif picker is not None and picker.filter != intent.text:
        note_typing(change)
        picker.filter = intent.text
        apply_filter(picker)
        show_selected(change, picker)


def _give_way(change: Change, picker: Picker, text: str) -> None:
    """Put the list away, with what was typed in the prompt, where it was meant to go; it comes again."""
    state = change.state
    state.picker, state.held_picker = None, picker
    change.panel()
    change.set_draft(text)


@on(MovePicker)
def move_picker(change: Change, intent: MovePicker) -> None:
    """Select another row."""
    picker = change.state.picker
    if picker is not None and picker.shown:
        note_typing(change)
        picker.selected = max(0, min(len(picker.shown) - 1, picker.selected + intent.delta))
        picker.scrolled = 0
        show_selected(change, picker)


@on(CycleRowFilter)
def cycle_row_filter(change: Change, intent: CycleRowFilter) -> None:
    """Show the rows of the next row filter; the selected row stays selected, or the nearest one before it."""
    picker = change.state.picker
    if picker is None or not picker.filters:
        return
    place = picker.shown[picker.selected] if picker.shown else 0
    picker.row_filter = (picker.row_filter + intent.delta) % len(picker.filters)
    apply_filter(picker)
    picker.selected = max(0, sum(shown <= place for shown in picker.shown) - 1)
    show_selected(change, picker)


@on(ScrollPreview)
def scroll_preview(change: Change, intent: ScrollPreview) -> None:
    """Scroll the preview; the panel knows where it ends."""
    picker = change.state.picker
    if picker is not None and picker.current is not None and picker.current.preview:
        lines = picker.current.preview.count("\n") + len(picker.current.preview) // PREVIEW_COLUMNS
        picker.scrolled = max(0, min(lines, picker.scrolled + intent.delta))
        change.panel()


@on(PickChoice)
def pick_choice(change: Change, intent: PickChoice) -> None:
    """Take a row: run the command with it, or put it into the editor."""
    state = change.state
    picker = state.picker
    if picker is None:
        return
    place = picker.selected if intent.index is None else intent.index
    if not 0 <= place < len(picker.shown):
        return
    choice = picker.choices[picker.shown[place]]
    if choice.value and choice.value == picker.busy:
        return
    # What is taken goes on showing until the command has done it.
    if choice.stays:
        picker.busy = choice.value
    else:
        state.picker = None
    change.panel()
    if picker.command and choice.value:
        change.emit(RunCommand(f"/{picker.command} {choice.value}"))
    elif not picker.command:
        draft = state.draft
        if draft.images or not picker.filter.startswith(draft.text):  # else it was what was looked for
            remember_draft(change, draft.text, draft.images)
        put_prompt(change, choice.value)


def show_selected(change: Change, picker: Picker) -> None:
    """Another row is selected: show it, and in a live picker what it would do."""
    change.panel()
    if picker.live and picker.current is not None:
        change.emit(ChoicePreviewed(picker.command, picker.current.value))


def close_picker(change: Change) -> None:
    """Close it, with nothing taken."""
    picker, change.state.picker = change.state.picker, None
    change.panel()
    if picker is not None and picker.live:
        change.emit(ChoicePreviewed(picker.command, ""))


@on(TrustWaitingEvent)
def tell_waiting(change: Change, event: TrustWaitingEvent) -> None:
    """Say it to whoever types; the list itself waits until nobody does."""
    if change.state.contexts[0] != "empty":
        change.toast(f"{plural(event.count, 'thing')} of this project: /trust decides", "info")


# --- todo and help ---


@on(ToggleTodo)
def toggle_todo(change: Change, intent: ToggleTodo) -> None:
    """Show all of the todo list, then put it away, then show what is open of it again."""
    state = change.state
    if not state.shows_todo:
        state.todo_away, state.todo_open = False, False
        state.todo_open = not state.shows_todo
    elif state.todo_open or intent.has_all:
        state.todo_away, state.todo_open = True, False
    else:
        state.todo_open = True
    change.panel()


@on(ToggleHelp)
def toggle_help(change: Change, _intent: ToggleHelp) -> None:
    """Show or hide the keys."""
    change.state.help_open = not change.state.help_open
    change.state.help_filter = ""
    change.panel()


@on(HelpFilterChanged)
def filter_help(change: Change, intent: HelpFilterChanged) -> None:
    """Look for something in the help; its own key, which is a character, closes it as long as nothing is looked for."""
    state = change.state
    note_typing(change)
    found = state.keys.find(("empty",), intent.text)
    if not state.help_filter and found is not None and isinstance(found.intent, ToggleHelp):
        toggle_help(change, ToggleHelp())
        return
    state.help_filter = intent.text
    change.panel()


@on(ActOnRow)
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
    elif act == "refuse":
        picker.busy = row.value
        change.emit(RunCommand(f"/{picker.command} {row.value} refuse"))
    else:
        picker.question = RowQuestion(act, row.title if act == "rename" else "")
    change.panel()


@on(RowAnswerChanged)
def change_answer(change: Change, intent: RowAnswerChanged) -> None:
    """Take the new text over; the question about deleting has none."""
    picker = change.state.picker
    if picker is None or picker.question is None:
        return
    note_typing(change)
    if picker.question.act == "rename":
        picker.question.text = intent.text
    change.panel()


@on(AnswerRow)
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


@on(RowChanged)
def replace_row(change: Change, intent: RowChanged) -> None:
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
